"""The last stages of a search: passages are fetched in scope, reranked and highlighted."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from dtrag.core.documents import SearchResult
from dtrag.core.text.analysis import Analyzer
from dtrag.ports import Index, QueryPack
from dtrag.retrieval.highlight import highlights
from dtrag.retrieval.hybrid import Ranking
from dtrag.retrieval.request import SearchTarget
from dtrag.retrieval.rerank import CrossEncoderReranker, HeuristicScore

GRACE_SECONDS = 0.1
"""How much later than its time limit a reranker may return before its result is discarded."""


class ResultReranker(Protocol):
    """Reorders results, such as `CrossEncoderReranker`."""

    @property
    def id(self) -> str:
        """Identifies the model in cache keys."""

    def applies(self, query: str) -> bool:
        """Whether a model supports the language of this query."""

    async def attempt(
        self,
        query: str,
        results: Sequence[SearchResult],
        top_k: int | None,
        timeout: float,  # noqa: ASYNC109 - it checks the clock itself
    ) -> tuple[list[SearchResult], bool]:
        """The `top_k` best results, best first, with `rerank_score`; and whether a model has read every candidate."""


@dataclass(frozen=True, slots=True)
class RerankOutcome:
    """The results, best first; `scores` of the passages that the reranker has read, and whether it failed."""

    results: list[SearchResult]
    scores: Mapping[str, float] = field(default_factory=dict)
    failed: bool = False


class Passages:
    """Fetches, reranks and highlights the passages of one engine's searches."""

    def __init__(
        self, index: Index, analyzer: Analyzer, reranker: ResultReranker | None, pack: QueryPack | None = None
    ) -> None:
        self._index = index
        self._pack = pack
        self._analyzer = analyzer
        self.reranker: ResultReranker = reranker if reranker is not None else CrossEncoderReranker()

    async def of_day(self, chunk_ids: Sequence[str], target: SearchTarget) -> dict[str, SearchResult]:
        """Chunk id -> passage, as `Index.fetch`; as of a day, without the words that are known to be newer."""
        passages = await self._index.fetch(
            chunk_ids, target.scope, target.snapshot.taxonomy, target.filters, version=target.version
        )
        day = target.scope.as_of
        if day is None or self._pack is None:
            return passages
        return {key: self._pack.of_day(passage, day) for key, passage in passages.items()}

    async def fetch(self, chunk_ids: Sequence[str], target: SearchTarget, ranking: Ranking) -> list[SearchResult]:
        """The passages with the scores of the ranking, in the order of the ids; without those deleted since.

        Raises `IndexChanged` where the target requires its version, also for no ids.
        """
        if not chunk_ids and target.version is None:
            return []
        passages = await self.of_day(chunk_ids, target)
        lexical, vector = ranking.lexical.scores, ranking.vector.scores
        return [
            passages[key].with_scores(lexical.get(key, 0.0), vector.get(key, 0.0), ranking.fused.get(key, 0.0))
            for key in chunk_ids
            if key in passages
        ]

    async def rerank(
        self, query: str, passages: Sequence[SearchResult], top_k: int, seconds: float | None
    ) -> RerankOutcome:
        """The named boundary where the reranker may fail or be late: then the heuristic decides.

        Without `seconds` the order stays, and `rerank_score` is that of the heuristic (D18).
        """
        if seconds is None or not passages:
            return RerankOutcome(_with_heuristic_scores(query, passages[:top_k]))
        try:
            async with asyncio.timeout(seconds + GRACE_SECONDS):
                best, is_complete = await self.reranker.attempt(query, passages, None, seconds)
            if not all(math.isfinite(result.rerank_score) for result in best):
                raise ValueError("the reranker returned a score that is not finite")
        except Exception:  # noqa: BLE001 - the boundary: the failure is reported as `degraded`
            best = sorted(_with_heuristic_scores(query, passages), key=lambda result: -result.rerank_score)
            return RerankOutcome(best[:top_k], failed=True)
        is_late = not is_complete and self.reranker.applies(query)
        return RerankOutcome(best[:top_k], {result.chunk_id: result.rerank_score for result in best}, is_late)

    def highlight(self, query: str, results: Sequence[SearchResult]) -> list[SearchResult]:
        """The results with the spans that match words of the query."""
        return [replace(result, highlights=highlights(query, result.text, self._analyzer)) for result in results]


def _with_heuristic_scores(query: str, passages: Sequence[SearchResult]) -> list[SearchResult]:
    score = HeuristicScore(query, passages)
    return [
        passage.with_scores(passage.bm25_score, passage.vector_score, passage.hybrid_score, score)
        for passage in passages
    ]
