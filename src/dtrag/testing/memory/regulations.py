"""Regulations in memory: `RegulationStore`."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable

from dtrag.core.access.scope import Scope
from dtrag.core.documents import Chunk
from dtrag.core.provisions import RegulationText, provisions_of
from dtrag.ports import valid_day
from dtrag.testing.memory.state import MemoryState, StoredDocument

KIND = "regulation"


class MemoryRegulations:
    """The documents of the kind `regulation` of one state."""

    def __init__(self, state: MemoryState):
        self._state = state

    async def versions(self, scope: Scope) -> dict[uuid.UUID, bytes]:
        """The regulations in scope, ordered by name, each with a fingerprint that changes with its text."""
        return {
            stored.written.document_id: stored.written.fingerprint + _valid_version(stored, scope)
            for stored in self._regulations(scope)
        }

    async def read(self, document_ids: Collection[uuid.UUID], scope: Scope) -> list[RegulationText]:
        """Those of the regulations that are in scope, ordered by name."""
        return [
            _regulation(
                stored,
                (
                    indexed.chunk
                    for indexed in stored.written.chunks
                    if stored.holds_valid(indexed.chunk.ordinal, scope)
                ),
            )
            for stored in self._regulations(scope)
            if stored.written.document_id in document_ids
        ]

    async def editions(self, document_ids: Collection[uuid.UUID], scope: Scope) -> list[RegulationText]:
        """All editions in scope of the works of these documents, with all their provisions, the oldest first."""
        texts = [
            _regulation(stored, (indexed.chunk for indexed in stored.written.chunks))
            for stored in self._state.seen(scope)
            if stored.validity is not None and stored.written.document.metadata.get("kind") == KIND
        ]
        works = {text.work_id for text in texts if text.document_id in document_ids}
        of_works = [text for text in texts if text.work_id in works]
        return sorted(of_works, key=lambda text: (str(text.work_id), str(text.effective_from)))

    def _regulations(self, scope: Scope) -> list[StoredDocument]:
        regulations = [
            stored
            for stored in self._state.seen(scope)
            if stored.written.document.metadata.get("kind") == KIND and stored.is_listed(scope)
        ]
        return sorted(regulations, key=lambda stored: (stored.written.document.title, not stored.is_valid(scope)))


def _valid_version(stored: StoredDocument, scope: Scope) -> bytes:
    """Changes with the passages that are valid on the day of the scope."""
    if stored.validity is None:
        return b""
    day = valid_day(scope)
    parts = [(part.first, part.last) for part in stored.validity.passages if part.admits(day)]
    return repr((parts, stored.validity.end)).encode()


def _regulation(stored: StoredDocument, chunks: Iterable[Chunk]) -> RegulationText:
    document, edition, valid = stored.written.document, stored.written.edition, stored.validity
    return RegulationText(
        stored.written.document_id,
        document.title,
        str(document.metadata.get("code") or ""),
        document.text,
        provisions_of(chunks),
        edition.work_id if edition is not None else None,
        valid.start if valid is not None else None,
        valid.end if valid is not None else None,
    )
