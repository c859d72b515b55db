"""Port of the vectors: which passages wait for one, and storing it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from dtrag.core.access.scope import Scope
from dtrag.core.documents import Vector
from dtrag.ports.models import Embedder


@dataclass(frozen=True, slots=True)
class WaitingPassage:
    """A passage without a vector of the model for its language; `title` and `breadcrumb` are embedded with the text."""

    document_id: uuid.UUID
    ordinal: int
    language: str
    title: str
    breadcrumb: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class WaitingBatch:
    """The newest documents that may wait for vectors, each with the time at which it was written, and their passages.

    `passages` are the first that wait; `unassigned` are languages that no model was assigned to yet.
    """

    documents: Mapping[uuid.UUID, datetime]
    passages: tuple[WaitingPassage, ...]
    unassigned: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class WaitingQuestion:
    """An imagined question (ports/imagined.py) without a vector; the hash of its passage's text and `number` name it.

    `created_at` distinguishes it from one that replaced it.
    """

    document_id: uuid.UUID
    text_hash: bytes
    number: int
    language: str
    text: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class QuestionBatch:
    """Imagined questions that wait for vectors, and languages of such questions that no model was assigned to yet."""

    questions: tuple[WaitingQuestion, ...]
    unassigned: frozenset[str] = frozenset()


class VectorTurn(Protocol):
    """A process that may fill: one at a time does."""

    async def begin(self) -> bool:
        """Begin to fill; False while another process does."""

    async def end(self) -> None:
        """Let another process fill."""


class VectorStore(Protocol):
    """The vectors of the passages, one each, of the space of the model that made it.

    All methods raise `DatabaseUnavailable`, and `put` and `assign` also `StorageFull`.
    """

    def turn(self, *, serves: bool = False) -> AbstractAsyncContextManager[VectorTurn]:
        """This process as one that may fill, while the block is open. `serves`: a service, which fills what others
        leave to it."""

    async def served(self) -> bool:
        """Whether a service fills this index."""

    async def languages(self) -> frozenset[str]:
        """The languages that have been assigned."""

    async def assign(self, models: Mapping[str, Embedder | None]) -> None:
        """Record the model of each of these languages, None for no model; the passages whose model changes wait again.

        Raises `InvalidInput` for models of different dimensions. When these change, all vectors are deleted.
        """

    async def waiting(self, limit: int) -> WaitingBatch | None:
        """Up to `limit` passages of the newest documents that wait; None when no document does."""

    async def put(self, batch: WaitingBatch, vectors: Sequence[Vector | None]) -> int:
        """Store the vectors of the passages of a batch in one transaction; returns how many.

        None: no model speaks the passage's language any more, and its vector is deleted. Documents that were deleted,
        replaced or are being changed are left out; those without further waiting passages do not wait any more.
        """

    async def pending(self, scope: Scope) -> int:
        """How many passages in scope wait for a vector."""

    async def waiting_questions(self, limit: int) -> QuestionBatch | None:
        """Up to `limit` imagined questions that wait for a vector of the model of their language; None without any.

        Those of languages without a model do not wait.
        """

    async def put_questions(self, batch: QuestionBatch, vectors: Sequence[Vector | None]) -> int:
        """Store the vectors of imagined questions in one transaction; returns how many. Deleted ones are left out."""
