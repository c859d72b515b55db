"""Hybrid retrieval: the lexical and the vector retriever run at the same time, and their candidates are fused."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dtrag.core.text.questions import analyze_query
from dtrag.errors import DatabaseUnavailable
from dtrag.retrieval.config import PACK_NEAREST, EngineConfig, TimeLimits
from dtrag.retrieval.imagined import ImaginedMatches, ImaginedRetriever
from dtrag.retrieval.request import SearchArguments, SearchTarget
from dtrag.retrieval.retrievers import Retriever, RetrieverOutcome

MIN_SCORE = 1e-6
"""Hybrid score of the last candidate of both retrievers: every candidate has a score above 0."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The outcomes of both retrievers, and the passages found by their imagined questions."""

    lexical: RetrieverOutcome
    vector: RetrieverOutcome
    imagined: ImaginedMatches = field(default_factory=lambda: ImaginedMatches(skipped=True))

    def failed(self) -> list[str]:
        """Names of the retrievers that failed."""
        outcomes = (("lexical", self.lexical), ("vector", self.vector), ("imagined", self.imagined))
        return [name for name, outcome in outcomes if outcome.failure is not None]

    def require_any(self, seconds: float | None = None) -> None:
        """Raise `DatabaseUnavailable` when a retriever failed and the other one has no candidates to rank.

        With a time limit of `seconds` that the first of them exceeded, raise `TimeoutError`.
        """
        outcomes = (self.lexical, self.vector)
        failures = [outcome.failure for outcome in outcomes if outcome.failure is not None]
        if not failures or any(outcome.candidates is not None for outcome in outcomes):
            return
        cause = failures[0]
        if isinstance(cause, DatabaseUnavailable):
            raise cause
        if seconds is not None and isinstance(cause, TimeoutError):
            raise TimeoutError(f"The search was not finished in {seconds:g} s") from cause
        raise DatabaseUnavailable(reason=f"no search could be made ({type(cause).__name__}).") from cause


@dataclass(frozen=True, slots=True)
class HybridRetriever:
    """Runs both retrievers for one request, and compares it with imagined questions."""

    lexical: Retriever
    vector: Retriever
    imagined: ImaginedRetriever | None = None

    async def retrieve(self, request: SearchArguments, target: SearchTarget, limits: TimeLimits) -> Candidates:
        """The candidates of both; a retriever that fails has none."""
        if request.mode != "hybrid":  # only one of them has anything to do
            vector, imagined = await self._by_meaning(request, target, limits)
            return Candidates(await self.lexical.retrieve(request, target, limits), vector, imagined)
        by_meaning = asyncio.create_task(self._by_meaning(request, target, limits))
        try:
            await asyncio.sleep(0)  # its thread and the database work while the terms of the query are counted here
            lexical = await self.lexical.retrieve(request, target, limits)
            return Candidates(lexical, *await by_meaning)
        finally:
            by_meaning.cancel()

    async def _by_meaning(
        self, request: SearchArguments, target: SearchTarget, limits: TimeLimits
    ) -> tuple[RetrieverOutcome, ImaginedMatches]:
        vector = await self.vector.retrieve(request, target, limits)
        if self.imagined is None:
            return vector, ImaginedMatches(skipped=True)
        return vector, await self.imagined.retrieve(request, target, limits, vector)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates of both retrievers in one order, best first, with their fused scores."""

    lexical: RetrieverOutcome
    vector: RetrieverOutcome
    fused: Mapping[str, float]
    order: Sequence[str]
    imagined: ImaginedMatches = field(default_factory=lambda: ImaginedMatches(skipped=True))

    @classmethod
    def of(cls, candidates: Candidates, request: SearchArguments, config: EngineConfig) -> Ranking:
        """Fuse the scores of both retrievers in mode `hybrid`; in other modes keep those of the one that ran."""
        lexical, vector = candidates.lexical, candidates.vector
        if request.mode == "hybrid":
            fusion = config.score_fusion()
            if config.adaptive:
                fusion = fusion.adapted(analyze_query(request.query))
            scores = fusion.fuse(*_with_imagined(candidates), config.fusion)
            fused = {
                key: score if MIN_SCORE < score < 1.0 else min(1.0, max(MIN_SCORE, score))
                for key, score in scores.items()
            }
        else:
            fused = dict((vector if request.mode == "vector" else lexical).scores)
        order = sorted(sorted(fused), key=fused.__getitem__, reverse=True)  # equal scores: in the order of the ids
        return cls(lexical, vector, fused, order, candidates.imagined)

    def words_and_nearest(self, limit: int) -> list[str]:
        """The `limit` best passages by words (by fused scores without them) and the nearest ones, in the fused order.

        For a pack, whose first scores are lexical.
        """
        by_words = list(self.lexical.scores)[:limit] or self.order[:limit]
        chosen = {*by_words, *list(self.vector.scores)[:PACK_NEAREST], *self.imagined.scores}
        return [key for key in self.order if key in chosen]

    def with_similarities(self, similarities: Mapping[str, float]) -> Ranking:
        """The ranking with the vector scores of further passages, which are no candidates of the vector retriever."""
        vector = replace(self.vector, scores={**similarities, **self.vector.scores})
        return replace(self, vector=vector)


def _with_imagined(candidates: Candidates) -> tuple[dict[str, float] | None, dict[str, float] | None]:
    """Lexical and vector scores to fuse: an imagined question counts for its passage as the passage itself would."""
    lexical, vector, imagined = candidates.lexical.candidates, candidates.vector.candidates, candidates.imagined
    if imagined.candidates and imagined.by_words:
        return _highest(lexical, imagined.scores), vector
    if imagined.candidates:
        return lexical, _highest(vector, imagined.scores)
    return lexical, vector


def _highest(scores: Mapping[str, float] | None, others: Mapping[str, float]) -> dict[str, float]:
    merged = dict(scores or {})
    for key, score in others.items():
        merged[key] = max(score, merged.get(key, 0.0))
    return merged
