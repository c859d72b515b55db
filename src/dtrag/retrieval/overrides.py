"""Retrievers made of overridden engine methods.

A program may override `_perform_bm25_search` or `_perform_vector_search` of an engine, in a subclass or on the object
(SPEC-SEARCH-001, AC-003). Searches then take their candidates from the override. Its results are fetched in the
caller's scope like any candidates, so an override cannot widen a scope.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from dtrag.core.documents import SearchMetrics, SearchResult
from dtrag.retrieval.request import SearchArguments, SearchTarget
from dtrag.retrieval.retrievers import QueryEmbedder, RetrieverOutcome
from dtrag.retrieval.time_limits import TimeLimits

SearchMethod = Callable[..., Awaitable[tuple[Sequence[SearchResult], SearchMetrics]]]


@dataclass(frozen=True, slots=True)
class LexicalOverride:
    """Takes lexical candidates from an override of `_perform_bm25_search`."""

    method: SearchMethod

    async def retrieve(self, request: SearchArguments, target: SearchTarget, limits: TimeLimits) -> RetrieverOutcome:
        """See `Retriever.retrieve`."""
        outcome = RetrieverOutcome(skipped=request.mode == "vector")
        if not outcome.skipped:
            async with outcome.isolated(limits.lexical):
                results, _ = await self.method(
                    request.query, request.bm25_candidates, request.filter_values, scope=request.scope
                )
                outcome.scores = outcome.raw_scores = {result.chunk_id: result.bm25_score for result in results}
        return outcome


@dataclass(frozen=True, slots=True)
class VectorOverride:
    """Takes vector candidates from an override of `_perform_vector_search`."""

    method: SearchMethod
    embedder: QueryEmbedder

    async def retrieve(self, request: SearchArguments, target: SearchTarget, limits: TimeLimits) -> RetrieverOutcome:
        """See `Retriever.retrieve`."""
        outcome = RetrieverOutcome(skipped=request.mode not in {"hybrid", "vector"})
        if not outcome.skipped:
            outcome.note = self.embedder.unsupported_reason(request.query)
        if outcome.skipped or outcome.note:
            return outcome
        async with outcome.isolated(limits.vector):
            vector = await self.embedder.embed(request.query, limits.embedding)
            results, _ = await self.method(
                vector, request.vector_candidates, request.filter_values, scope=request.scope
            )
            outcome.scores = outcome.raw_scores = {result.chunk_id: result.vector_score for result in results}
        return outcome
