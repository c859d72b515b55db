"""Ports of vectors, and of the imagined questions that a search compares with a question."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

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
    """An imagined question without a vector; the hash of its passage's text and `number` name it.

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


class VectorTurns(Protocol):
    """Which process makes the vectors: one at a time does."""

    async def served(self) -> bool:
        """Whether a service makes those that other processes leave to it."""

    def take(self) -> AbstractAsyncContextManager[VectorStore | None]:
        """The store for this process while it is the one; None while another process is."""


class VectorStore(Protocol):
    """The vectors of the passages, one each, of the space of the model that made it.

    All methods raise `DatabaseUnavailable`, and `put` and `assign` also `StorageFull`.
    """

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

    async def waiting_sentences(self, limit: int) -> WaitingBatch | None:
        """Up to `limit` passages of the newest documents that have all their vectors, whose sentences have none of a
        model that decides; None when no document waits for these. They have no `title` and no `breadcrumb`.
        """

    async def put_sentences(self, batch: WaitingBatch, packed: Sequence[bytes]) -> None:
        """Store the vectors of the sentences of a batch (`core/answers/sentence_vectors.py`) in one transaction.

        Documents that were deleted, replaced or are being changed are left out.
        """

    async def waiting_questions(self, limit: int) -> QuestionBatch | None:
        """Up to `limit` imagined questions that wait for a vector of the model of their language; None without any.

        Those of languages without a model do not wait.
        """

    async def put_questions(self, batch: QuestionBatch, vectors: Sequence[Vector | None]) -> int:
        """Store the vectors of imagined questions in one transaction; returns how many. Deleted ones are left out."""


Passages = Literal["all", "with", "without"]
"""All passages, or those with or without imagined questions."""


@dataclass(frozen=True, slots=True)
class ImaginedPassage:
    """A passage with its imagined questions; `origin` is the id of the model that wrote them, or where they are from.

    `metadata` is that of the passage and its document.
    """

    document_id: uuid.UUID
    ordinal: int
    title: str
    breadcrumb: tuple[str, ...]
    text: str
    language: str
    source_uri: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    questions: tuple[str, ...] = ()
    origin: str = ""

    @property
    def chunk_id(self) -> str:
        """The id of the passage."""
        return f"{self.document_id}:{self.ordinal}"


@dataclass(frozen=True, slots=True)
class NewQuestion:
    """An imagined question with its language and the ids of its terms."""

    text: str
    language: str
    terms: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ImaginedCounts:
    """Imagined questions, the passages that have some, those without, and the characters of the latter."""

    questions: int = 0
    passages: int = 0
    missing: int = 0
    characters: int = 0


class ImaginedStore(Protocol):
    """Imagined questions. They belong to the text of a passage: a replaced document keeps those of unchanged texts, a
    deleted one none. All methods raise `DatabaseUnavailable`, and `put` also `StorageFull`.
    """

    async def passages(
        self, which: Passages, scope: Scope, limit: int, after: ImaginedPassage | None = None
    ) -> list[ImaginedPassage]:
        """The next passages in scope after a passage, by document and ordinal.

        Passages of superseded editions are among those with questions only.
        """

    async def counts(self, scope: Scope) -> ImaginedCounts:
        """The numbers in scope."""

    async def put(
        self, questions: Sequence[tuple[ImaginedPassage, Sequence[NewQuestion]]], origin: str, scope: Scope
    ) -> int:
        """Replace the questions of these passages in one transaction; returns how many were stored.

        Those of passages that are outside the scope or have another text by now are left out.
        """

    async def drop(self, scope: Scope, documents: Collection[uuid.UUID] | None = None) -> int:
        """Delete the questions in scope, of these documents only; returns how many."""
