"""Hybrid search: the lexical and the vector leg side by side, fused, then the passages fetched in scope."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from dtrag.core.documents import SearchMetrics, SearchResult
from dtrag.core.fusion import fuse
from dtrag.core.query import weighted_terms
from dtrag.core.scope import Scope, SearchFilters
from dtrag.core.scoring import LexicalQuery
from dtrag.core.text import Analyzer, clean, language
from dtrag.errors import DatabaseUnavailable, InvalidInput
from dtrag.ports import Embedder, Index, IndexSnapshot, check_identity, speaks

Mode = Literal["hybrid", "lexical", "strict", "vector"]
MODES: tuple[str, ...] = get_args(Mode)
MAX_QUERY = 10_000
MAX_TOP_K = 1_000


@dataclass(slots=True)
class _Leg:
    """One side of a search: its candidates (chunk id -> score, best first), its time, what went wrong."""

    scores: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    embedding_seconds: float = 0.0
    failure: Exception | None = None
    note: str = ""


class HybridSearchEngine:
    """Searches one index.

    `embedding_service` may be None: then there are no vectors, and results say so. The weights are brought to sum 1.
    """

    def __init__(
        self,
        embedding_service: Embedder | None,
        db_manager: Index,
        *,
        bm25_weight: float = 0.5,
        vector_weight: float = 0.5,
        analyzer: Analyzer = Analyzer(),
    ):
        total = bm25_weight + vector_weight
        if not (bm25_weight >= 0 and vector_weight >= 0 and 0 < total < float("inf")):
            raise InvalidInput("The weights must be at least 0, and one of them above 0.")
        self._embedder = embedding_service
        self._index = db_manager
        self._analyzer = analyzer
        self.bm25_weight = bm25_weight / total
        self.vector_weight = vector_weight / total

    async def search(
        self,
        query: str,
        top_k: int = 5,
        filters: Mapping[str, Any] | None = None,
        bm25_candidates: int = 50,
        vector_candidates: int = 50,
        *,
        scope: Scope,
        mode: str = "hybrid",
    ) -> tuple[list[SearchResult], SearchMetrics]:
        """The best `top_k` passages in scope, best first, and how the search went.

        Raises `InvalidInput` for a bad argument, `IndexMismatch` for an index that was built otherwise, and
        `DatabaseUnavailable` when no leg could be searched. One leg that fails is named in `metrics.degraded`, and
        the other decides.
        """
        started = time.perf_counter()
        query = _checked(query, top_k, mode)
        parsed = SearchFilters.parse(filters)
        if not query.strip():
            return [], SearchMetrics(mode=mode)
        snapshot = await self._index.snapshot()
        check_identity(snapshot.settings, self._analyzer.id, self._embedder)
        narrowed = parsed.scope(snapshot.taxonomy, scope)
        wanted_lexical, wanted_vector = max(bm25_candidates, top_k), max(vector_candidates, top_k)
        reach = (narrowed, parsed)
        lexical, vector = await asyncio.gather(
            self._lexical_leg(query, snapshot, reach, wanted_lexical, mode),
            self._vector_leg(query, reach, wanted_vector, mode),
        )
        _raise_if_nothing_worked(lexical, vector, mode)
        fusing = time.perf_counter()
        fused = fuse(lexical.scores, vector.scores, lexical_weight=self.bm25_weight, vector_weight=self.vector_weight)
        best = sorted(fused, key=lambda key: (-fused[key], key))[:top_k]
        fetching = time.perf_counter()
        passages = await self._index.fetch(best, narrowed, snapshot.taxonomy) if best else {}
        done = time.perf_counter()
        results = [_scored(passages[key], key, lexical, vector, fused) for key in best if key in passages]
        failed = [name for name, leg in (("lexical", lexical), ("vector", vector)) if leg.failure is not None]
        metrics = SearchMetrics(
            mode=mode,
            total_time=done - started,
            bm25_time=lexical.seconds,
            vector_time=vector.seconds,
            embedding_time=vector.embedding_seconds,
            fusion_time=fetching - fusing,
            fetch_time=done - fetching,
            bm25_candidates=len(lexical.scores),
            vector_candidates=len(vector.scores),
            final_results=len(results),
            degraded=tuple(failed),
            notes=tuple(note for note in (_rebuilding(snapshot), lexical.note, vector.note) if note),
        )
        return results, metrics

    async def _lexical_leg(
        self, query: str, snapshot: IndexSnapshot, reach: tuple[Scope, SearchFilters], wanted: int, mode: str
    ) -> _Leg:
        async def run(leg: _Leg) -> None:
            scope, filters = reach
            if mode == "strict":
                leg.scores = await self._index.strict(query, scope, filters, wanted)
                return
            asked = LexicalQuery.of(weighted_terms(query, self._analyzer), snapshot.statistics)
            found = await self._index.lexical(asked, scope, filters, wanted)
            leg.scores = {key: min(1.0, score / asked.ceiling) for key, score in found.items()}

        return await _timed(run, skip=mode == "vector")

    async def _vector_leg(self, query: str, reach: tuple[Scope, SearchFilters], wanted: int, mode: str) -> _Leg:
        embedder = self._embedder

        async def run(leg: _Leg) -> None:
            if embedder is None:
                leg.note = "No embedder is available: lexical search only. See `dtrag models list`."
                return
            code = language(query)
            if not speaks(embedder, code):
                leg.note = f"The embedder {embedder.id} does not speak the query's language ({code}): lexical only."
                return
            started = time.perf_counter()
            vector = (await asyncio.to_thread(embedder.embed_queries, [query]))[0]
            leg.embedding_seconds = time.perf_counter() - started
            if not np.isfinite(vector).all():
                raise ValueError("the embedder returned a vector with a number that is not finite")
            scope, filters = reach
            leg.scores = await self._index.vectors(vector, scope, filters, wanted)

        return await _timed(run, skip=mode not in {"hybrid", "vector"})


def _scored(passage: SearchResult, key: str, lexical: _Leg, vector: _Leg, fused: Mapping[str, float]) -> SearchResult:
    return replace(
        passage,
        bm25_score=lexical.scores.get(key, 0.0),
        vector_score=min(1.0, max(0.0, vector.scores.get(key, 0.0))),
        hybrid_score=min(1.0, fused[key]),
    )


def _rebuilding(snapshot: IndexSnapshot) -> str:
    if snapshot.settings.get("rebuilding"):
        return "The index is being built anew and not complete yet; if no `dtrag reindex` is running, run it again."
    return ""


async def _timed(run: Callable[[_Leg], Awaitable[None]], *, skip: bool) -> _Leg:
    """The named seam where one leg of a search may fail without the other."""
    leg = _Leg()
    if skip:
        return leg
    started = time.perf_counter()
    try:
        await run(leg)
    except Exception as error:  # noqa: BLE001 - the seam: the failure is kept, shown, and raised if nothing worked
        leg.failure = error
        leg.scores = {}
    leg.seconds = time.perf_counter() - started
    return leg


def _raise_if_nothing_worked(lexical: _Leg, vector: _Leg, mode: str) -> None:
    needed = [leg for leg, used in ((lexical, mode != "vector"), (vector, mode in {"hybrid", "vector"})) if used]
    failures = [leg.failure for leg in needed if leg.failure is not None]
    if failures and not any(leg.failure is None and not leg.note for leg in needed):
        cause = failures[0]
        if isinstance(cause, DatabaseUnavailable):
            raise cause
        raise DatabaseUnavailable(reason=f"no search could be made ({type(cause).__name__}).") from cause


def _checked(query: object, top_k: object, mode: object) -> str:
    if not isinstance(query, str):
        raise InvalidInput("The query must be text.")
    if len(query) > MAX_QUERY:
        raise InvalidInput(f"The query has {len(query):,} characters; at most {MAX_QUERY:,} are taken.")
    if isinstance(top_k, bool) or not isinstance(top_k, int) or not 1 <= top_k <= MAX_TOP_K:
        raise InvalidInput(f"top_k must be a whole number from 1 to {MAX_TOP_K}.")
    if mode not in MODES:
        raise InvalidInput(f"There is no search mode {str(mode)[:20]!r}. Modes: {', '.join(MODES)}.")
    return clean(query)
