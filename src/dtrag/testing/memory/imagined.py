"""Imagined questions in memory; they belong to a text of a document, as long as the document contains it."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime

from dtrag.core.access.scope import Scope
from dtrag.ports import ImaginedCounts, ImaginedPassage, NewQuestion, Passages
from dtrag.testing.memory.state import ImaginedText, MemoryState


class MemoryImagined:
    """The imagined questions of one state."""

    def __init__(self, state: MemoryState):
        self._state = state

    async def passages(
        self, which: Passages, scope: Scope, limit: int, after: ImaginedPassage | None = None
    ) -> list[ImaginedPassage]:
        """The next passages in scope after a passage, by document and ordinal."""
        last = (after.document_id, after.ordinal) if after is not None else None
        chosen = [
            passage
            for passage, current in self._all(scope)
            if (last is None or (passage.document_id, passage.ordinal) > last)
            and (current or which == "with")
            and (which == "all" or (which == "with") == self._has(passage))
        ]
        return chosen[:limit]

    async def counts(self, scope: Scope) -> ImaginedCounts:
        """The numbers in scope."""
        having = await self.passages("with", scope, 10**9)
        missing = await self.passages("without", scope, 10**9)
        return ImaginedCounts(
            sum(len(passage.questions) for passage in having),
            len(having),
            len(missing),
            sum(len(passage.text) for passage in missing),
        )

    async def put(
        self, questions: Sequence[tuple[ImaginedPassage, Sequence[NewQuestion]]], origin: str, scope: Scope
    ) -> int:
        """Replace the questions of these passages; returns how many were stored."""
        current = {(passage.chunk_id, passage.text) for passage, _ in self._all(scope)}
        stored = 0
        for passage, asked in questions:
            if (passage.chunk_id, passage.text) in current:
                digest = hashlib.sha256(passage.text.encode()).digest()
                key = passage.document_id, digest
                self._state.imagined[key] = ImaginedText(passage.text, tuple(asked), origin, datetime.now(UTC))
                stored += len(asked)
        self._state.settings["vectors"] += 1
        return stored

    async def drop(self, scope: Scope, documents: Collection[uuid.UUID] | None = None) -> int:
        """Delete the questions in scope, of these documents only; returns how many."""
        dropped = 0
        for key, imagined in list(self._state.imagined.items()):
            stored = self._state.documents.get(key[0])
            if stored is not None and stored.in_scope(scope) and (documents is None or key[0] in documents):
                dropped += len(imagined.questions)
                del self._state.imagined[key]
        self._state.settings["vectors"] += 1
        return dropped

    def _has(self, passage: ImaginedPassage) -> bool:
        return (passage.document_id, hashlib.sha256(passage.text.encode()).digest()) in self._state.imagined

    def _all(self, scope: Scope) -> Iterator[tuple[ImaginedPassage, bool]]:
        """The passages in scope, and whether each is valid on the day of the scope."""
        for stored in self._state.seen(scope):
            written = stored.written
            for indexed in written.chunks:
                chunk = indexed.chunk
                digest = hashlib.sha256(chunk.text.encode()).digest()
                imagined = self._state.imagined.get((written.document_id, digest))
                passage = ImaginedPassage(
                    written.document_id,
                    chunk.ordinal,
                    written.document.title,
                    chunk.breadcrumb,
                    chunk.text,
                    indexed.language,
                    written.source_uri,
                    {**written.document.metadata, **chunk.metadata},
                    tuple(question.text for question in imagined.questions) if imagined else (),
                    imagined.origin if imagined else "",
                )
                yield passage, stored.holds_valid(chunk.ordinal, scope)
