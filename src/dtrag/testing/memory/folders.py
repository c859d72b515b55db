"""The files that the documents came from, in memory: `FolderStore`."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urldefrag

from dtrag.core.access.scope import EVERYTHING
from dtrag.core.documents import Draft
from dtrag.ports import StoredFile
from dtrag.testing.memory.index_writer import draft_of
from dtrag.testing.memory.state import MemoryState


class MemoryFolders:
    """The files of one state."""

    def __init__(self, state: MemoryState):
        self._state = state

    async def files_below(self, prefix: str) -> list[StoredFile]:
        """Files whose addresses begin with `prefix` and that have documents, in the order of their addresses."""
        addresses: dict[uuid.UUID, list[str]] = defaultdict(list)
        for stored in self._state.documents.values():
            if stored.written.source_uri.startswith(prefix) and not stored.retained:
                addresses[stored.written.source_id].append(stored.written.source_uri)
        documents = {source_id: len(uris) for source_id, uris in addresses.items()}
        for listed in self._state.edition_sources.values():
            for source_id, read in listed.items():
                if read.source_uri.startswith(prefix):
                    addresses[source_id].append(read.source_uri)
        files = []
        for source_id, uris in addresses.items():
            source = self._state.sources.get(source_id)
            fingerprint = source.fingerprint if source is not None else b""
            files.append(StoredFile(source_id, urldefrag(min(uris)).url, fingerprint, documents.get(source_id, 0)))
        return sorted(files, key=lambda file: file.uri)

    async def drafts_of(self, source_id: uuid.UUID, after: uuid.UUID | None, limit: int) -> list[Draft]:
        """Documents of a file as they were written, in the order of their ids, from the first after `after`."""
        drafts = [
            draft_of(stored)
            for stored in self._state.seen(EVERYTHING)
            if stored.written.source_id == source_id and (after is None or stored.written.document_id > after)
        ]
        return drafts[:limit]

    async def copy_vectors(self, moved: Mapping[uuid.UUID, uuid.UUID]) -> None:
        """Copy the vectors of old documents to new ones."""
        for old, new in moved.items():
            if new in self._state.documents:
                self._state.vectors[new] = self._state.vectors.get(old, {}) | self._state.vectors.get(new, {})
                for (document, digest), imagined in list(self._state.imagined.items()):
                    if document == old:
                        self._state.imagined.setdefault((new, digest), imagined)
                self._state.follow_texts(new)

    async def move_review_state(self, moved: Mapping[uuid.UUID, uuid.UUID]) -> None:
        """Decisions, placements and review items of old ids belong to the new ids."""
        decided, placements, items = self._state.decided_nodes, self._state.placements, self._state.review_items
        for old, new in moved.items():
            if old in decided:
                decided[new] = decided.pop(old)
            if old in placements:
                placements[new] = placements.pop(old)
        for key, item in list(items.items()):
            if item.document_id is not None and item.document_id in moved:
                items[key] = replace(item, document_id=moved[item.document_id])

    async def retained_below(self, prefix: str) -> list[uuid.UUID]:
        """Superseded editions from files with such addresses that do not contain them any more."""
        return [
            key
            for key, stored in sorted(self._state.documents.items())
            if stored.retained and stored.written.source_uri.startswith(prefix)
        ]
