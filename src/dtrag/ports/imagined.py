"""Port of the imagined questions: everyday questions that passages answer, which a search compares with a question."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from dtrag.core.access.scope import Scope

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
