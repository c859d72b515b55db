"""The vectors of the in-memory index."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from dtrag.core.access.scope import Scope
from dtrag.core.documents import IndexedChunk, Vector
from dtrag.errors import InvalidInput
from dtrag.ports import Embedder, QuestionBatch, WaitingBatch, WaitingPassage, WaitingQuestion
from dtrag.testing.memory.state import MemoryState, StoredDocument


class MemoryTurn:
    """The right to fill one state; one at a time has it."""

    def __init__(self, state: MemoryState):
        self._state = state
        self._is_held = False

    async def begin(self) -> bool:
        """Begin to fill; False while another turn does."""
        if self._state.is_filling:
            return self._is_held
        self._state.is_filling = self._is_held = True
        return True

    async def end(self) -> None:
        """Let another turn fill."""
        if self._is_held:
            self._state.is_filling = self._is_held = False


class MemoryVectors:
    """The vectors of one state."""

    def __init__(self, state: MemoryState):
        self._state = state

    @asynccontextmanager
    async def turn(self, *, serves: bool = False) -> AsyncIterator[MemoryTurn]:
        """See `VectorStore`."""
        turn = MemoryTurn(self._state)
        self._state.services += serves
        try:
            yield turn
        finally:
            self._state.services -= serves
            await turn.end()

    async def served(self) -> bool:
        """Whether a service has a turn."""
        return self._state.services > 0

    async def languages(self) -> frozenset[str]:
        """The languages that have been assigned."""
        return frozenset(self._spaces())

    async def assign(self, models: Mapping[str, Embedder | None]) -> None:
        """Record the model of each of these languages; the passages of one whose model changes wait again."""
        dims = {model.dim for model in models.values() if model is not None}
        if len(dims) > 1:
            raise InvalidInput(f"The models of an embedder must have one dimension, not {sorted(dims)}.")
        ids = {code: model.id if model is not None else "" for code, model in models.items()}
        changed = {code for code, id_ in ids.items() if self._spaces().get(code, id_) != id_}
        for key, stored in self._state.documents.items():
            if any(indexed.language in changed for indexed in stored.written.chunks):
                self._state.waiting.add(key)
        for vectors in self._state.vectors.values():
            for ordinal in [each for each, (_, vector) in vectors.items() if dims and len(vector) not in dims]:
                del vectors[ordinal]
        for imagined in self._state.imagined.values():
            for number, (_, vector) in list(imagined.vectors.items()):
                if imagined.questions[number].language in changed or (dims and len(vector) not in dims):
                    del imagined.vectors[number]
        self._state.settings["spaces"] = self._spaces() | ids
        self._state.settings["vectors"] += 1

    async def waiting(self, limit: int) -> WaitingBatch | None:
        """Up to `limit` passages of the newest documents that wait; None when no document does."""
        stored = [self._state.documents[key] for key in self._state.waiting]
        stored.sort(key=lambda each: (-each.processed_at.timestamp(), each.written.document_id))
        if not stored:
            return None
        passages = [(each, indexed) for each in stored for indexed in self._unmade(each)][:limit]
        return WaitingBatch(
            {each.written.document_id: each.processed_at for each in stored},
            tuple(_waiting(each, indexed) for each, indexed in passages if indexed.language in self._spaces()),
            frozenset(indexed.language for _, indexed in passages) - self._spaces().keys(),
        )

    async def put(self, batch: WaitingBatch, vectors: Sequence[Vector | None]) -> int:
        """Store the vectors of a batch; returns how many."""
        count = 0
        for passage, vector in zip(batch.passages, vectors, strict=True):
            if not self._is_current(batch, passage):
                continue
            made = self._state.vectors.setdefault(passage.document_id, {})
            made.pop(passage.ordinal, None)
            if vector is not None:
                made[passage.ordinal] = self._spaces()[passage.language], vector
                count += 1
        for key in batch.documents.keys() & self._state.waiting:
            if not self._unmade(self._state.documents[key]):
                self._state.waiting.discard(key)
        self._state.settings["vectors"] += 1
        return count

    async def waiting_questions(self, limit: int) -> QuestionBatch | None:
        """Up to `limit` imagined questions that wait for a vector of the model of their language; None without any."""
        waiting = [
            WaitingQuestion(*key, number, question.language, question.text, imagined.created_at)
            for key, imagined in sorted(self._state.imagined.items())
            for number, question in enumerate(imagined.questions)
            if number not in imagined.vectors
        ]
        unassigned = frozenset(question.language for question in waiting) - self._spaces().keys()
        spoken = tuple(question for question in waiting if self._spaces().get(question.language))
        return QuestionBatch(spoken[:limit], unassigned) if spoken or unassigned else None

    async def put_questions(self, batch: QuestionBatch, vectors: Sequence[Vector | None]) -> int:
        """Store the vectors of imagined questions; returns how many."""
        count = 0
        for question, vector in zip(batch.questions, vectors, strict=True):
            imagined = self._state.imagined.get((question.document_id, question.text_hash))
            if imagined is not None and imagined.created_at == question.created_at and vector is not None:
                imagined.vectors[question.number] = self._spaces()[question.language], vector
                count += 1
        self._state.settings["vectors"] += 1
        return count

    async def pending(self, scope: Scope) -> int:
        """How many passages in scope wait for a vector."""
        stored = [self._state.documents[key] for key in self._state.waiting]
        return sum(len(self._unmade(each)) for each in stored if each.in_scope(scope))

    def _spaces(self) -> dict[str, str]:
        spaces: dict[str, str] = self._state.settings.get("spaces", {})
        return spaces

    def _is_current(self, batch: WaitingBatch, passage: WaitingPassage) -> bool:
        stored = self._state.documents.get(passage.document_id)
        return stored is not None and stored.processed_at == batch.documents[passage.document_id]

    def _unmade(self, stored: StoredDocument) -> list[IndexedChunk]:
        made = self._state.vectors.get(stored.written.document_id, {})
        return [
            indexed
            for indexed in stored.written.chunks
            if made.get(indexed.chunk.ordinal, ("",))[0] != self._spaces().get(indexed.language)
        ]


def _waiting(stored: StoredDocument, indexed: IndexedChunk) -> WaitingPassage:
    document, chunk = stored.written, indexed.chunk
    return WaitingPassage(
        document.document_id, chunk.ordinal, indexed.language, document.document.title, chunk.breadcrumb, chunk.text
    )
