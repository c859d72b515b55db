"""Follows citations from the articles of a result list to those that they cite, in at most two hops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dtrag.packs.regulation_ko.citations import cited_texts

MAX_HOPS = 2
MIN_RELEVANCE = 0.5
"""Cited passages less relevant to the question than this are left out (SPEC-RAG-SEARCH-001, TAG-004)."""
MAX_SOURCES = 20
"""Passages whose citations are followed in one hop."""


class RelevanceStore(Protocol):
    """Scores how relevant passages are to a question."""

    def similarity(self, query: str, ids: Sequence[str]) -> Mapping[str, float]:
        """Id -> relevance in [0, 1]; an unknown id may be missing."""


class ChunkStore(Protocol):
    """Contains passages, and resolves citations to passages."""

    def get(self, chunk_id: str) -> str | None:
        """The text of a passage; None when it is not in scope."""

    def resolve(self, citation: str, source_id: str) -> str | None:
        """The id of the passage that `citation` (`제15조`, `학칙 제20조`) in the passage `source_id` means, or None."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A passage that a citation leads to: `citation` is the text of the citation in the passage `source_id`."""

    chunk_id: str
    source_id: str
    citation: str
    relevance: float
    number: int


@dataclass(frozen=True, slots=True)
class MultiHopResult:
    """`all_results` are the initial results and then those of the hops, each once; `hop_results` the latter."""

    initial_results: tuple[str, ...]
    hop_results: tuple[str, ...] = ()
    hops_performed: int = 0
    hops: tuple[Hop, ...] = field(default=())

    @property
    def all_results(self) -> list[str]:
        """Ids, the initial results first."""
        return [*self.initial_results, *self.hop_results]


class MultiHopRetriever:
    """Follows the citations of passages; cycles end because no passage is read twice."""

    def __init__(
        self,
        vector_store: RelevanceStore,
        chunk_store: ChunkStore,
        *,
        cited: Callable[[str], Iterable[str]] = cited_texts,
        max_hops: int = MAX_HOPS,
        least_relevance: float = MIN_RELEVANCE,
    ) -> None:
        self._vector_store = vector_store
        self._chunk_store = chunk_store
        self._cited = cited
        self._max_hops = min(max_hops, MAX_HOPS)
        self._min_relevance = least_relevance

    def retrieve(self, query: str, initial_results: Sequence[str]) -> MultiHopResult:
        """The results with the passages that they cite, the more relevant first within a hop."""
        initial = tuple(dict.fromkeys(initial_results))
        visited, frontier, hops = set(initial), list(initial), list[Hop]()
        performed = 0
        for number in range(1, self._max_hops + 1):
            reached = self._reached(query, frontier[:MAX_SOURCES], visited, number)
            if not reached:
                break
            performed = number
            hops += reached
            frontier = [hop.chunk_id for hop in reached]
            visited |= set(frontier)
        return MultiHopResult(initial, tuple(hop.chunk_id for hop in hops), performed, tuple(hops))

    def _reached(self, query: str, sources: Sequence[str], visited: set[str], number: int) -> list[Hop]:
        targets: dict[str, tuple[str, str]] = {}
        for source in sources:
            for citation in self._cited(self._chunk_store.get(source) or ""):
                target = self._chunk_store.resolve(citation, source)
                if target is not None and target not in visited:
                    targets.setdefault(target, (source, citation))
        if not targets:
            return []
        relevance = self._vector_store.similarity(query, list(targets))
        reached = [
            Hop(target, source, citation, relevance.get(target, 0.0), number)
            for target, (source, citation) in targets.items()
            if relevance.get(target, 0.0) >= self._min_relevance
        ]
        return sorted(reached, key=lambda hop: (-hop.relevance, hop.chunk_id))
