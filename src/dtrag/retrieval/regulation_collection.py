"""Reads and caches the regulations that a caller may see, as citations need them: names and outlines, no texts."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Hashable, Sequence

from cachetools import LRUCache

from dtrag.core.access.scope import Scope
from dtrag.core.provisions import RegulationText
from dtrag.packs.regulation_ko.collection import Collection, Regulation
from dtrag.ports import IndexSnapshot, RegulationStore, valid_day

CACHED_COLLECTIONS = 64
"""Scopes whose collections are cached."""
CACHED_REGULATIONS = 20_000
"""Regulations that are cached without their texts, for all scopes together."""
READ_AT_ONCE = 64
"""Regulations per read: what has been read stays cached when the caller's time limit ends the rest."""


class CollectionReader:
    """Collections by state of the index and scope.

    After every change of the index or the taxonomy, the database lists the regulations of a scope again. A regulation
    itself is read again only when its text has changed.
    """

    def __init__(self, store: RegulationStore) -> None:
        self._store = store
        self._collections: LRUCache[Hashable, Collection] = LRUCache(CACHED_COLLECTIONS)
        self._regulations: LRUCache[tuple[uuid.UUID, bytes], Regulation] = LRUCache(CACHED_REGULATIONS)
        self._reading = asyncio.Lock()

    @property
    def store(self) -> RegulationStore:
        """Where the regulations are read from."""
        return self._store

    async def read(self, snapshot: IndexSnapshot, scope: Scope) -> Collection:
        """The regulations in scope."""
        key = (snapshot.generation, snapshot.taxonomy.version, scope.nodes, valid_day(scope))
        if key not in self._collections:
            async with self._reading:  # a hundred questions after a start read them once, not a hundred times
                if key not in self._collections:
                    self._collections[key] = await self._read(scope)
        return self._collections[key]

    async def _read(self, scope: Scope) -> Collection:
        versions = await self._store.versions(scope)
        regulations = {
            key: regulation
            for key, version in versions.items()
            if (regulation := self._regulations.get((key, version))) is not None
        }
        unread = [key for key in versions if key not in regulations]
        for first in range(0, len(unread), READ_AT_ONCE):
            texts = await self._store.read(unread[first : first + READ_AT_ONCE], scope)
            for regulation in await asyncio.to_thread(_without_texts, texts):
                regulations[regulation.document_id] = regulation
                self._regulations[regulation.document_id, versions[regulation.document_id]] = regulation
        present = [regulations[key] for key in versions if key in regulations]
        return await asyncio.to_thread(Collection.of, present)


def _without_texts(texts: Sequence[RegulationText]) -> list[Regulation]:
    return [Regulation.of(text) for text in texts]
