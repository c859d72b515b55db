"""Hybrid search: words and vectors side by side, fused, then the passages fetched in scope and reranked."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import ModuleType
from typing import Any, Unpack

from dtrag.core.access.scope import Viewer
from dtrag.core.documents import Absence, SearchMetrics, SearchResult
from dtrag.core.metrics.ranking import diversity_ratio
from dtrag.core.text.analysis import Analyzer
from dtrag.core.text.questions import analyze_query
from dtrag.current_app import active
from dtrag.errors import DtragError
from dtrag.ports import Embedder, Index, QueryPack
from dtrag.retrieval.cache import ResultCache, cache_key
from dtrag.retrieval.config import EngineChanges, EngineConfig, EngineOptions
from dtrag.retrieval.explain import Explainer
from dtrag.retrieval.hybrid import TwoLegs
from dtrag.retrieval.model_loading import ModelLoader
from dtrag.retrieval.multihop import FIRST_PLACE, inserted, mentioned
from dtrag.retrieval.regulation_hops import cited_mentions
from dtrag.retrieval.request import MAX_QUERY, MAX_TOP_K, MODES, Asked, Mode, Reach, ScopedSearchOptions
from dtrag.retrieval.results import LEAST, Ranking, ResultReranker
from dtrag.retrieval.retrievers import Leg, raise_if_nothing_worked
from dtrag.retrieval.time_limits import TimeLimits

__all__ = ["MAX_QUERY", "MAX_TOP_K", "MODES", "HybridSearchEngine", "Mode"]

RERANKED = 50
"""Passages that a reranker reads, unless more are asked for."""
RANKED_BY_PACK = 120
"""Passages that a pack ranks, unless more are asked for."""


class HybridSearchEngine(TwoLegs):
    """Searches one index.

    Without `db_manager` it is the index, embedder and analyzer of the open app; the module `dtrag.embedding_service` as
    `embedding_service` is the open app's embedder, too. With one, `embedding_service` may be
    None: then there are no vectors, and results say so. `scope` is for searches that name none; without it they are the
    owner's (core/access/confinement.py). `filter_keys` are the
    facts of documents that may be filtered by. `on_search` is told of every search that was answered. The other
    arguments are those of `EngineConfig`.

    Results are kept under all that they depend on, the generation of the index included: every search asks for the
    generation first (one short round trip), so a write by any process is seen by the next search, and a search that
    was made already costs nothing more. Raises `InvalidInput`, and `NoActiveApp`.
    """

    def __init__(  # noqa: PLR0917 - the acceptance texts name them in this order
        self,
        embedding_service: Embedder | ModuleType | None = None,
        db_manager: Index | None = None,
        enable_caching: bool = True,
        enable_reranking: bool = True,
        bm25_weight: float = 0.5,
        vector_weight: float = 0.5,
        normalization: str = "min_max",
        *,
        analyzer: Analyzer | None = None,
        reranker: ResultReranker | None = None,
        scope: Viewer | None = None,
        filter_keys: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
        on_search: Callable[[SearchMetrics], None] | None = None,
        pack: QueryPack | None = None,
        **config: Unpack[EngineOptions],
    ):
        named: dict[str, Any] = {"enable_caching": enable_caching, "enable_reranking": enable_reranking}
        named |= {"bm25_weight": bm25_weight, "vector_weight": vector_weight, "normalization": normalization}
        self._config = EngineConfig().changed({**named, **config})
        if isinstance(embedding_service, ModuleType):  # `dtrag.embedding_service`, which works with the open app's
            embedding_service = active().embedder
        if db_manager is None:
            app = active()
            db_manager, embedding_service = app.index, embedding_service or app.embedder
            analyzer, filter_keys = analyzer or app.analyzer, filter_keys or app.engine.filter_keys
        super().__init__(
            embedding_service,
            db_manager,
            analyzer or Analyzer(),
            reranker=reranker,
            scope=scope,
            filter_keys=filter_keys,
        )
        self._clock = clock
        self._cache = self._new_cache()
        self._tally = Tally()
        self._loader = ModelLoader()
        self._pack = pack
        self._on_search = on_search

    @property
    def bm25_weight(self) -> float:
        """The share of the lexical leg; the two sum to 1."""
        return self._config.bm25_weight

    @property
    def vector_weight(self) -> float:
        """The share of the vector leg."""
        return self._config.vector_weight

    async def search(  # noqa: PLR0917 - the acceptance texts name them in this order
        self,
        query: str,
        top_k: int = 5,
        filters: Mapping[str, Any] | None = None,
        bm25_candidates: int = 50,
        vector_candidates: int = 50,
        correlation_id: str | None = None,
        *,
        scope: Viewer | None = None,
        mode: str = "hybrid",
        explain: bool = False,
        explain_documents: Sequence[str] = (),
        highlight: bool = True,
        exact_candidates: bool = False,
        seconds: float | None = None,
    ) -> tuple[list[SearchResult], SearchMetrics]:
        """The best `top_k` passages in scope, best first, and how the search went.

        A blank query finds nothing. One leg that fails is named in `metrics.degraded`, and the other decides.
        Each leg proposes `top_k` passages at least; with `exact_candidates` it is held to its number.
        With `seconds` the search takes no longer: parts that are late are left out and named in `metrics.degraded`,
        and where neither words nor vectors were in time it raises `TimeoutError`.
        `highlight` marks the words of the query in the passages, which takes about .1 ms for each.
        `explain` tells of each passage why it stands where it stands, and `metrics.absent` of each of
        `explain_documents` why it is not found. Raises `InvalidInput` for a bad argument,
        `IndexMismatch` for an index that was built otherwise, and `DatabaseUnavailable` when no leg could be searched.
        """
        await self.load(query, mode)
        started = time.perf_counter()
        try:
            asked = Asked.parse(
                query,
                top_k,
                filters,
                bm25_candidates=bm25_candidates,
                vector_candidates=vector_candidates,
                correlation_id=correlation_id,
                scope=self._viewer(scope),
                mode=mode,
                explain=explain,
                explain_documents=explain_documents,
                highlight=highlight,
                keys=self.filter_keys,
                exact_candidates=exact_candidates,
            )
            results, metrics = await self._answered(asked, seconds)
        except DtragError as error:
            self._tally.failed(error)
            raise
        metrics = replace(
            metrics, total_time=time.perf_counter() - started, correlation_id=asked.correlation_id, mode=asked.mode
        )
        self._tally.answered(metrics)
        if self._on_search is not None:
            self._on_search(metrics)
        return results, metrics

    async def load(self, query: str | None = None, mode: str = "hybrid") -> None:
        """Wait until the models are loaded that a search for this query uses (None: all that the engine has).

        Every search does so before its time begins. What cannot be loaded shows when it is used.
        """
        if self._pack is not None and mode == "hybrid" and (query is None or isinstance(query, str)):
            await self._pack.load(query)
        embedder = self._embedder.embedder
        if query is None:
            await self._loader.wait(embedder, self._passages.reranker, self._analyzer.more)
        elif isinstance(query, str) and query.strip():
            reranks = self._config.enable_reranking and mode == "hybrid" and self._passages.reranker.applies(query)
            await self._loader.wait(
                embedder if mode in ("hybrid", "vector") and not self._embedder.cannot(query) else None,
                self._passages.reranker if reranks else None,
                None if query.isascii() else self._analyzer.more,
            )

    async def keyword_only_search(
        self,
        query: str,
        top_k: int = 5,
        filters: Mapping[str, Any] | None = None,
        **options: Unpack[ScopedSearchOptions],
    ) -> tuple[list[SearchResult], SearchMetrics]:
        """`search` by words alone; the hybrid score is the lexical one."""
        return await self.search(query, top_k, filters, mode="lexical", **options)

    async def vector_only_search(
        self,
        query: str,
        top_k: int = 5,
        filters: Mapping[str, Any] | None = None,
        **options: Unpack[ScopedSearchOptions],
    ) -> tuple[list[SearchResult], SearchMetrics]:
        """`search` by meaning alone; the hybrid score is the cosine."""
        return await self.search(query, top_k, filters, mode="vector", **options)

    def get_config(self) -> dict[str, Any]:
        """The values of `EngineConfig`, what the engine works with, and `cache_stats`."""
        embedder = self._embedder.embedder
        return {
            **self._config.as_dict(),
            "analyzer": self._analyzer.id,
            "embedder": embedder.id if embedder is not None else None,
            "reranker": self._passages.reranker_id,
            "cache_stats": self._cache.stats(),
        }

    def update_config(self, **changes: Unpack[EngineChanges]) -> None:
        """Change values of `EngineConfig` for the next searches; what the cache holds goes. Raises `InvalidInput`."""
        self._config = self._config.changed(changes)
        self._cache.clear()
        if not {"cache_size", "cache_ttl"}.isdisjoint(changes):
            self._cache = self._new_cache()

    def clear_cache(self) -> None:
        """Forget the results of earlier searches."""
        self._cache.clear()

    def performance(self) -> dict[str, Any]:
        """How the searches of this engine went so far: see `Tally.figures`."""
        return self._tally.figures()

    def _new_cache(self) -> ResultCache:
        return ResultCache(self._config.cache_size, self._config.cache_ttl, self._clock)

    async def _answered(self, asked: Asked, seconds: float | None) -> tuple[list[SearchResult], SearchMetrics]:
        """From the cache, or from the index."""
        if not asked.query.strip():
            return [], SearchMetrics()
        config = self._config
        limits = TimeLimits(config, seconds)
        reach = await self._reach(asked.filters, asked.scope)
        if not config.enable_caching or asked.explain:
            return await self._found(asked, reach, config, limits)
        how = (asked.mode, asked.bm25_candidates, asked.vector_candidates, asked.highlight, config)
        models = (self._analyzer.id, getattr(self._embedder.embedder, "id", None), self._passages.reranker_id)
        pack = self._pack.id if self._pack is not None else None
        # A search without a limit may take longer than a caller who has one can wait for it.
        key = cache_key(asked.query, None, asked.top_k, (how, models, pack, reach.identity(), seconds is None))
        results, metrics, hit = await self._cache.once(key, lambda: self._found(asked, reach, config, limits))
        if hit:
            metrics = SearchMetrics(
                bm25_candidates=metrics.bm25_candidates,
                vector_candidates=metrics.vector_candidates,
                final_results=metrics.final_results,
                diversity_ratio=metrics.diversity_ratio,
                cache_hit=True,
                degraded=metrics.degraded,
                notes=metrics.notes,
            )
        return results, metrics

    async def _found(
        self, asked: Asked, reach: Reach, config: EngineConfig, limits: TimeLimits
    ) -> tuple[list[SearchResult], SearchMetrics]:
        reading = None
        if self._pack is not None and asked.mode == "hybrid":
            reading = await self._pack.read(asked.query, reach.snapshot, reach.scope)
        # The vector first: its thread and the database are at work while the words are counted up here.
        vector, lexical, _ = await asyncio.gather(
            self._vector_leg(asked, reach, limits),
            self._lexical_leg(asked, reach, limits, reading.added if reading is not None else ()),
            self._pack_prepared(reach, limits, needed=reading is not None),
        )
        raise_if_nothing_worked([lexical, vector], limits.seconds)
        fusing = time.perf_counter()
        ranking = _fused(asked, config, lexical, vector)
        fetching = time.perf_counter()
        rerank = config.enable_reranking and asked.mode == "hybrid"
        wanted = ranking.order[: max(asked.top_k, RANKED_BY_PACK if reading is not None else RERANKED if rerank else 0)]
        passages = await self._passages.fetched(wanted, reach, ranking)
        left_out = [name for name, leg in (("lexical", lexical), ("vector", vector)) if leg.failure is not None]
        if reading is not None and self._pack is not None:
            passages = await self._pack.ranked(reading, passages, reach.caller)
            passages = passages[: max(asked.top_k, RERANKED)]
            try:
                async with asyncio.timeout(limits.citations):
                    passages = await self._with_cited(self._pack, passages, reach, ranking, config)
            except (TimeoutError, DtragError):
                left_out.append("citations")
        elif config.hops > 1 and asked.mode == "hybrid" and len(wanted) > FIRST_PLACE:
            try:
                async with asyncio.timeout(limits.following):
                    passages = await self._with_mentioned(passages, reach, ranking, len(wanted), config)
            except TimeoutError:
                left_out.append("mentions")
        fetched = time.perf_counter()
        reranking = limits.reranking if rerank else None
        ordered = await self._passages.ordered(asked.query, passages, asked.top_k, reranking)
        reranked = time.perf_counter()
        if lexical.note:  # incomplete, so it must not be kept
            left_out.append("lexical")
        left_out += ["rerank"] if ordered.failed else []
        results = self._passages.highlighted(asked.query, ordered.results) if asked.highlight else ordered.results
        absent: tuple[Absence, ...] = ()
        if asked.explain:
            explainer = Explainer(self._index, self._analyzer, asked, reach, ranking, ordered.scores)
            results, absent = await explainer.of(results), await explainer.absences(results)
        metrics = SearchMetrics(
            bm25_time=lexical.seconds,
            vector_time=vector.seconds,
            embedding_time=vector.embedding_seconds,
            fusion_time=fetching - fusing,
            fetch_time=fetched - fetching,
            rerank_time=reranked - fetched if rerank else 0.0,
            bm25_candidates=len(lexical.scores),
            vector_candidates=len(vector.scores),
            final_results=len(results),
            diversity_ratio=diversity_ratio([str(result.metadata.get("document_id", "")) for result in results]),
            degraded=tuple(left_out),
            notes=tuple(note for note in (_rebuilding(reach), lexical.note, vector.note) if note),
            absent=absent,
        )
        return results, metrics

    async def _pack_prepared(self, reach: Reach, limits: TimeLimits, *, needed: bool) -> None:
        """Let the pack read what it needs for citations; if that fails or is late, the search goes on without them."""
        if self._pack is None or not needed:
            return
        with suppress(TimeoutError, DtragError):
            async with asyncio.timeout(limits.words):
                await self._pack.prepare(reach.snapshot, reach.caller)

    async def _with_cited(
        self, pack: QueryPack, passages: list[SearchResult], reach: Reach, ranking: Ranking, config: EngineConfig
    ) -> list[SearchResult]:
        """The passages with the provisions among them that the first of them cite."""
        cited = await pack.cited(passages, reach.snapshot, reach.caller)
        weights = (config.bm25_weight, config.vector_weight)
        found = await cited_mentions(self._index, reach, ranking, passages, cited, weights=weights)
        return await inserted(self._index, reach, passages, found)

    async def _with_mentioned(
        self, passages: list[SearchResult], reach: Reach, ranking: Ranking, most: int, config: EngineConfig
    ) -> list[SearchResult]:
        """The passages with those among them that the first of them mention."""
        weights = (config.bm25_weight, config.vector_weight)
        found = await mentioned(self._index, reach, ranking, passages, weights)
        return (await inserted(self._index, reach, passages, found))[:most]


def _fused(asked: Asked, config: EngineConfig, lexical: Leg, vector: Leg) -> Ranking:
    """The candidates of both legs in one order; those of a single leg keep the scores that they have."""
    if asked.mode == "hybrid":
        weighing = config.weighing()
        if config.adaptive:
            weighing = weighing.adapted(analyze_query(asked.query))
        fused = weighing.fuse(lexical.candidates, vector.candidates, config.fusion)
        fused = {key: min(1.0, max(LEAST, score)) for key, score in fused.items()}
    else:
        fused = dict((vector if asked.mode == "vector" else lexical).scores)
    return Ranking(lexical, vector, fused, sorted(fused, key=lambda key: (-fused[key], key)))


def _rebuilding(reach: Reach) -> str:
    if reach.rebuilding:
        return "The index is being built anew and not complete yet; if no `dtrag reindex` is running, run it again."
    return ""


class Tally:
    """Counts since the engine was made. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._modes: Counter[str] = Counter()
        self._degraded: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()
        self._cache_hits = 0
        self._seconds = 0.0

    def answered(self, metrics: SearchMetrics) -> None:
        """Count a search that was answered."""
        with self._lock:
            self._modes[metrics.mode] += 1
            self._degraded.update(metrics.degraded)
            self._cache_hits += metrics.cache_hit
            self._seconds += metrics.total_time

    def failed(self, error: Exception) -> None:
        """Count a search that gave an error, by its class."""
        with self._lock:
            self._errors[type(error).__name__] += 1

    def figures(self) -> dict[str, Any]:
        """Searches and errors by kind; `mean_seconds` over the answered ones, `error_rate` in [0, 1]."""
        with self._lock:
            searches, errors = self._modes.total(), self._errors.total()
            return {
                "searches": searches,
                "by_mode": dict(self._modes),
                "cache_hits": self._cache_hits,
                "degraded": dict(self._degraded),
                "errors": dict(self._errors),
                "error_rate": errors / (searches + errors) if searches + errors else 0.0,
                "mean_seconds": self._seconds / searches if searches else 0.0,
            }
