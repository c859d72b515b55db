"""Reads the regulations that a caller may see, and keeps what citations need to know of them."""

from __future__ import annotations

import uuid
from collections.abc import Hashable

from dtrag.core.access.scope import Scope
from dtrag.packs.regulation_ko.collection import Collection, Regulation
from dtrag.ports import IndexSnapshot, RegulationStore

MOST_SCOPES = 64
"""Scopes whose collections are kept."""
MOST_REGULATIONS = 20_000
"""Regulations that are kept without their texts, for all scopes together."""
READ_AT_ONCE = 64
"""Regulations of one reading: what has been read stays when the caller's time is over."""


class CollectionReader:
    """Collections by state of the index and scope.

    The database says which regulations a scope holds, each time the index or the tree has changed; a regulation that
    was read before is read again only when its text has changed.
    """

    def __init__(self, store: RegulationStore) -> None:
        self._store = store
        self._collections: dict[Hashable, Collection] = {}
        self._regulations: dict[tuple[uuid.UUID, bytes], Regulation] = {}

    async def read(self, snapshot: IndexSnapshot, scope: Scope) -> Collection:
        """The regulations in scope."""
        key = (snapshot.generation, snapshot.taxonomy.version, scope.nodes)
        collection = self._collections.get(key)
        if collection is None:
            collection = await self._read(scope)
            if len(self._collections) >= MOST_SCOPES:
                self._collections.clear()
            self._collections[key] = collection
        return collection

    async def _read(self, scope: Scope) -> Collection:
        versions = await self._store.versions(scope)
        if len(self._regulations) + len(versions) > MOST_REGULATIONS:
            self._regulations.clear()
        regulations = {
            key: known for key, version in versions.items() if (known := self._regulations.get((key, version)))
        }
        unread = [key for key in versions if key not in regulations]
        for first in range(0, len(unread), READ_AT_ONCE):
            for text in await self._store.read(unread[first : first + READ_AT_ONCE], scope):
                regulation = Regulation.of(text)
                regulations[text.document_id] = regulation
                self._regulations[text.document_id, versions[text.document_id]] = regulation
        return Collection.of(regulations[key] for key in versions if key in regulations)
