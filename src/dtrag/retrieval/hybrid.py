"""What an engine searches with: each leg on its own, the filters they share, and the state of the index they see."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

from dtrag.core.access import confinement
from dtrag.core.access.scope import SearchFilters, Viewer
from dtrag.core.documents import SearchMetrics, SearchResult, Vector
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.core.text.analysis import Analyzer
from dtrag.core.text.questions import QueryCharacteristics, analyze_query
from dtrag.ports import Embedder, Index, check_identity
from dtrag.retrieval import retrievers
from dtrag.retrieval.request import Asked, Reach, required, text, whole
from dtrag.retrieval.results import Passages, Ranking, ResultReranker
from dtrag.retrieval.retrievers import Leg, QueryEmbedder, attempt
from dtrag.retrieval.time_limits import TimeLimits

PACK_CANDIDATES = 200
"""Passages that the lexical side proposes to a pack, which ranks them a second time."""


class TwoLegs:
    """The two legs over one index.

    A search runs `_perform_bm25_search` and `_perform_vector_search` side by side; either can be called alone.
    """

    def __init__(
        self,
        embedder: Embedder | None,
        index: Index,
        analyzer: Analyzer,
        *,
        reranker: ResultReranker | None,
        scope: Viewer | None,
        filter_keys: Collection[str],
    ) -> None:
        self._index = index
        self._embedder = QueryEmbedder(embedder)
        self._analyzer = analyzer
        self._passages = Passages(index, analyzer, reranker)
        self._scope = required(scope) if scope is not None else None
        self._taxonomy = Taxonomy("")
        self.filter_keys = frozenset(filter_keys)

    async def _lexical_leg(
        self, asked: Asked, reach: Reach, limits: TimeLimits, added: Sequence[tuple[int, float]] = ()
    ) -> Leg:
        leg = Leg(skipped=asked.mode == "vector")
        if leg.skipped:
            return leg
        candidates = max(asked.bm25_candidates, PACK_CANDIDATES) if added else asked.bm25_candidates
        return await attempt(
            leg,
            lambda: self._perform_bm25_search(asked.query, candidates, reach, mode=asked.mode, leg=leg, added=added),
            limits.words,
        )

    async def _vector_leg(self, asked: Asked, reach: Reach, limits: TimeLimits) -> Leg:
        leg = Leg(skipped=asked.mode not in {"hybrid", "vector"})
        if not leg.skipped:
            leg.note = self._embedder.cannot(asked.query)
        if leg.note and self._embedder.embedder is None:
            await attempt(leg, lambda: self._embedder.told_not_configured(asked.query), limits.embedding)
            leg.seconds = 0.0
        if leg.skipped or leg.note:
            return leg

        async def run() -> None:
            started = time.perf_counter()
            vector = await self._embedder.embed(asked.query, limits.embedding)
            leg.embedding_seconds = time.perf_counter() - started
            await self._perform_vector_search(vector, asked.vector_candidates, reach, leg=leg)

        return await attempt(leg, run, limits.vectors)

    async def _perform_bm25_search(
        self,
        query: str,
        top_k: int = 10,
        filters: Mapping[str, Any] | Reach | None = None,
        *,
        scope: Viewer | None = None,
        mode: str = "lexical",
        leg: Leg | None = None,
        added: Sequence[tuple[int, float]] = (),
    ) -> tuple[list[SearchResult], SearchMetrics]:
        """The passages that hold words of the query, or `added` terms.

        Inside a search (`leg`) it leaves the candidates there instead.
        """
        asked = text(query)

        async def fill(reach: Reach, into: Leg) -> None:
            wanted = whole("top_k", top_k)
            await retrievers.lexical(
                self._index, self._analyzer, asked, reach, into, wanted=wanted, mode=mode, added=added
            )

        own, results = await self._one_leg(fill, filters, scope, leg)
        return results, SearchMetrics(
            mode=mode, bm25_time=own.seconds, bm25_candidates=len(own.scores), final_results=len(results)
        )

    async def _perform_vector_search(
        self,
        query_embedding: Vector | Sequence[float],
        top_k: int = 10,
        filters: Mapping[str, Any] | Reach | None = None,
        *,
        scope: Viewer | None = None,
        leg: Leg | None = None,
    ) -> tuple[list[SearchResult], SearchMetrics]:
        """The passages nearest to the vector. Inside a search (`leg`) it leaves the candidates there instead."""
        embedder = self._embedder.embedder
        vector = retrievers.as_vector(query_embedding, embedder.dim if embedder is not None else None)

        async def fill(reach: Reach, into: Leg) -> None:
            await retrievers.nearest(self._index, vector, reach, into, wanted=whole("top_k", top_k))

        own, results = await self._one_leg(fill, filters, scope, leg)
        return results, SearchMetrics(
            mode="vector", vector_time=own.seconds, vector_candidates=len(own.scores), final_results=len(results)
        )

    async def _reach(self, filters: SearchFilters, scope: Viewer) -> Reach:
        snapshot = await self._index.snapshot()
        check_identity(snapshot.settings, self._analyzer.id, self._embedder.embedder)
        self._taxonomy = snapshot.taxonomy
        return Reach.of(snapshot, filters, scope)

    async def _one_leg(
        self,
        fill: Callable[[Reach, Leg], Awaitable[None]],
        filters: Mapping[str, Any] | Reach | None,
        scope: Viewer | None,
        leg: Leg | None,
    ) -> tuple[Leg, list[SearchResult]]:
        """The filled leg and, unless a search has more to do with it, its passages."""
        if leg is not None and isinstance(filters, Reach):
            await fill(filters, leg)
            return leg, []
        assert not isinstance(filters, Reach)  # noqa: S101 - comes with a leg
        parsed = SearchFilters.parse(filters, self.filter_keys)
        reach = await self._reach(parsed, self._viewer(scope))
        own, started = Leg(), time.perf_counter()
        await fill(reach, own)
        own.seconds = time.perf_counter() - started
        lexical, vector = (Leg(), own) if own.vector is not None else (own, Leg())
        ranking = Ranking(lexical, vector, own.scores, list(own.scores))
        return own, await self._passages.fetched(ranking.order, reach, ranking)

    def _viewer(self, scope: Viewer | None) -> Viewer:
        """The scope to search with: the given one, else the engine's, else the owner's."""
        wanted = scope if scope is not None else self._scope
        return confinement.bounded(required(wanted) if wanted is not None else None)

    def _analyze_query(self, query: str) -> QueryCharacteristics:
        """What the query is like."""
        return analyze_query(text(query))

    def _build_filter_clause(
        self, filters: Mapping[str, Any] | None, scope: Viewer | None = None
    ) -> tuple[str, dict[str, object]]:
        """The condition that the filters become, and its parameters; no value is ever in the text.

        Category paths become nodes of the tree as the last search saw it. Raises `InvalidInput`.
        """
        parsed = SearchFilters.parse(filters, self.filter_keys)
        caller = self._viewer(scope)
        return self._index.filter_clause(parsed, parsed.scope(self._taxonomy, caller.resolved(self._taxonomy)))
