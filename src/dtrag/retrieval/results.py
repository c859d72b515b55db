"""From the candidates of a search to its results: the passages fetched, scored, put into their last order, marked."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from dtrag.core.documents import SearchResult
from dtrag.core.text.analysis import Analyzer
from dtrag.ports import Index
from dtrag.retrieval.highlight import highlights
from dtrag.retrieval.request import Reach
from dtrag.retrieval.rerank import CrossEncoderReranker, heuristic_scores
from dtrag.retrieval.retrievers import Leg

LEAST = 1e-6
"""Hybrid score of a candidate that is the last of both lists: it was found, and what was found is above 0."""
GRACE = 0.1
"""Seconds that a reranker may be late by its own clock, before it is left alone."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """How the candidates of both legs were brought into one order, best first."""

    lexical: Leg
    vector: Leg
    fused: Mapping[str, float]
    order: Sequence[str]


class ResultReranker(Protocol):
    """Puts results into a better order; `CrossEncoderReranker` is one."""

    @property
    def id(self) -> str:
        """What tells the orders of one model from another's."""

    def applies(self, query: str) -> bool:
        """Whether there is a model for this query."""

    async def attempt(
        self,
        query: str,
        results: Sequence[SearchResult],
        top_k: int | None,
        timeout: float,  # noqa: ASYNC109 - it looks at the clock itself
    ) -> tuple[list[SearchResult], bool]:
        """The best of them, best first, with their `rerank_score`; and whether a model has read every candidate."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """The results, best first; `scores` of what the reranker has read, and whether it failed."""

    results: list[SearchResult]
    scores: Mapping[str, float] = field(default_factory=dict)
    failed: bool = False


class Passages:
    """What happens to the passages of one engine's searches."""

    def __init__(self, index: Index, analyzer: Analyzer, reranker: ResultReranker | None) -> None:
        self._index = index
        self._analyzer = analyzer
        self.reranker: ResultReranker = reranker if reranker is not None else CrossEncoderReranker()

    @property
    def reranker_id(self) -> str:
        """What tells this reranker's orders from another's."""
        return self.reranker.id

    async def fetched(self, chunk_ids: Sequence[str], reach: Reach, ranking: Ranking) -> list[SearchResult]:
        """The passages with the scores of the ranking; one that has gone meanwhile is left out."""
        if not chunk_ids:
            return []
        there = await self._index.fetch(chunk_ids, reach.scope, reach.snapshot.taxonomy, reach.filters)
        lexical, vector = ranking.lexical.scores, ranking.vector.scores
        return [
            replace(
                there[key],
                bm25_score=lexical.get(key, 0.0),
                vector_score=vector.get(key, 0.0),
                hybrid_score=ranking.fused[key],
            )
            for key in chunk_ids
            if key in there
        ]

    async def ordered(self, query: str, passages: Sequence[SearchResult], top_k: int, seconds: float | None) -> Ordered:
        """The named seam where the reranker may fail or be late: then the heuristic decides.

        Without `seconds` no reranker is asked, the order stays, and `rerank_score` is the heuristic one (D18).
        """
        if seconds is None or not passages:
            return Ordered(_heuristic(query, passages[:top_k]))
        try:
            async with asyncio.timeout(seconds + GRACE):
                best, read = await self.reranker.attempt(query, passages, None, seconds)
            if not all(math.isfinite(result.rerank_score) for result in best):
                raise ValueError("the reranker returned a score that is not finite")
        except Exception:  # noqa: BLE001 - the seam: the failure is shown as `degraded`
            best = sorted(_heuristic(query, passages), key=lambda result: -result.rerank_score)
            return Ordered(best[:top_k], failed=True)
        late = not read and self.reranker.applies(query)
        return Ordered(best[:top_k], {result.chunk_id: result.rerank_score for result in best}, late)

    def highlighted(self, query: str, results: Sequence[SearchResult]) -> list[SearchResult]:
        """The results, each with the spans that hold words of the query."""
        return [replace(result, highlights=highlights(query, result.text, self._analyzer)) for result in results]


def _heuristic(query: str, passages: Sequence[SearchResult]) -> list[SearchResult]:
    scores = heuristic_scores(query, passages)
    return [replace(passage, rerank_score=score) for passage, score in zip(passages, scores, strict=True)]
