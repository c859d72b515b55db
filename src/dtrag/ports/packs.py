"""Ports of the packs: knowledge of one kind of documents (regulations) that a search uses."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dtrag.core.access.scope import Scope
from dtrag.core.documents import PackFindings, SearchResult
from dtrag.core.provisions import RegulationText
from dtrag.ports.index import IndexSnapshot


class QueryReading(Protocol):
    """A query as a pack interprets it."""

    @property
    def added(self) -> Sequence[tuple[int, float]]:
        """Additional search terms: term ids with weights in (0, 1]."""

    @property
    def note(self) -> str:
        """What the caller should know about the interpretation, as a sentence; "" for nothing."""


@dataclass(frozen=True, slots=True)
class PackRanking:
    """Passages in the pack's order; `findings` is None when the passages are not of the pack's kind."""

    passages: list[SearchResult]
    findings: PackFindings | None = None


@dataclass(frozen=True, slots=True)
class CitedProvision:
    """The provision `name` (`학칙 제20조`) with its passages, cited by the provision `source`."""

    name: str
    source: str
    chunk_ids: tuple[str, ...]


class QueryPack(Protocol):
    """Expands queries and orders results with the knowledge of one kind of documents."""

    @property
    def id(self) -> str:
        """Identifies the pack and its configuration; part of the key of cached results."""

    async def load(self, query: str | None) -> None:
        """Load what interpreting this query needs (None: any query), before the time limit of the question starts."""

    async def read(self, query: str, snapshot: IndexSnapshot, scope: Scope) -> QueryReading | None:
        """The query as the pack interprets it; None when the pack does not apply to the documents in scope."""

    async def ranked(self, reading: QueryReading, passages: Sequence[SearchResult], caller: Scope) -> PackRanking:
        """The passages in the pack's order; fragments of one provision are joined. Statistics are those in `caller`."""

    async def prepare(self, snapshot: IndexSnapshot, caller: Scope) -> None:
        """Read what `cited` needs; runs concurrently with the retrieval."""

    async def cited(
        self, passages: Sequence[SearchResult], snapshot: IndexSnapshot, caller: Scope
    ) -> list[CitedProvision]:
        """Provisions that the first passages cite, in one or two hops, as far as they are in the scope `caller`."""


class RegulationStore(Protocol):
    """Documents of the kind `regulation`. Every read takes the caller's scope."""

    async def versions(self, scope: Scope) -> dict[uuid.UUID, bytes]:
        """Document id -> fingerprint of its text, for the regulations in scope, ordered by name."""

    async def read(self, document_ids: Sequence[uuid.UUID], scope: Scope) -> list[RegulationText]:
        """The regulations with these ids that are in scope, ordered by name."""
