"""The search engine: the public API of search, its configuration and its result cache."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from functools import partial
from types import ModuleType
from typing import Any, Unpack

from dtrag.core.access import confinement
from dtrag.core.access.scope import SearchFilters, Viewer
from dtrag.core.documents import FollowedCitation, SearchMetrics, SearchResult, Vector
from dtrag.core.editions import ChangedText
from dtrag.core.statements import Statement
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.core.text.analysis import Analyzer
from dtrag.core.text.questions import QueryCharacteristics, analyze_query
from dtrag.current_app import active
from dtrag.errors import InvalidInput
from dtrag.ports import Embedder, Index, IndexChanged, NamedPassages, QueryPack, check_identity, model_for
from dtrag.retrieval.cache import ResultCache, cache_key
from dtrag.retrieval.config import EngineChanges, EngineConfig, EngineOptions, TimeLimits
from dtrag.retrieval.engine_statistics import EnginePerformance, EngineStatistics
from dtrag.retrieval.hybrid import HybridRetriever, Ranking
from dtrag.retrieval.imagined import ImaginedRetriever
from dtrag.retrieval.model_loading import ModelLoader
from dtrag.retrieval.request import (
    MAX_QUERY,
    MAX_TOP_K,
    MODES,
    Mode,
    ScopedSearchOptions,
    SearchArguments,
    SearchTarget,
    WeightChoice,
    is_earlier,
    passage_count,
    query_text,
    require_scope,
)
from dtrag.retrieval.results import Passages, ResultReranker
from dtrag.retrieval.retrievers import (
    LexicalOverride,
    LexicalRetriever,
    QueryEmbedder,
    RetrieverOutcome,
    VectorOverride,
    VectorRetriever,
    parse_vector,
)
from dtrag.retrieval.search_runner import Results, Search, SearchRunner

__all__ = ["MAX_QUERY", "MAX_TOP_K", "MODES", "HybridSearchEngine", "Mode"]


LAST_ATTEMPT = 2
"""Number of the attempt of a search, from 0, that is not repeated when the index changes meanwhile."""


class EngineDescription(EngineChanges):
    """The values of `EngineConfig`, the names of the models, and the figures of the cache."""

    analyzer: str
    embedder: str | None
    reranker: str
    cache_stats: dict[str, float]


class HybridSearchEngine:
    """Searches one index.

    Without `db_manager` these are the index, embedder and analyzer of the open app; the module
    `dtrag.embedding_service` as `embedding_service` also means the embedder of the open app. With `db_manager`,
    `embedding_service` may be None: then there are no vectors, and the results say so. `scope` is the default of
    searches; without it the owner's is used (core/access/confinement.py). `filter_keys` are the metadata fields that
    can be filtered by. `on_search` is called with the metrics of every answered search. Other arguments are those of
    `EngineConfig`.

    Cache keys hold everything that results depend on, including the generation of the index. A search begins with the
    snapshot in memory and reads the generation together with the texts; if that is newer, it starts again. So it sees
    the writes of all processes, in one round trip. Before a cached result is returned, the generation is read alone.
    Raises `InvalidInput`, and `NoActiveApp`.
    """

    def __init__(  # noqa: PLR0917 - the order of the acceptance documents
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
        **options: Unpack[EngineOptions],
    ):
        self._config = EngineConfig(
            enable_caching=enable_caching,
            enable_reranking=enable_reranking,
            bm25_weight=bm25_weight,
            vector_weight=vector_weight,
            normalization=normalization,
        ).changed(options)
        if isinstance(embedding_service, ModuleType):
            embedding_service = active().embedder
        if db_manager is None:
            app = active()
            db_manager, embedding_service = app.index, embedding_service or app.embedder
            analyzer, filter_keys = analyzer or app.analyzer, filter_keys or app.engine.filter_keys
        if not all(callable(getattr(db_manager, method, None)) for method in ("snapshot", "lexical", "fetch")):
            raise InvalidInput(
                f"db_manager is a {type(db_manager).__name__}, which is not an index. Pass the index of an open app "
                "(db_manager=app.index), or omit it inside `async with dtrag.open():` to search that app."
            )
        self.filter_keys = frozenset(filter_keys)
        self._index = db_manager
        self._analyzer = analyzer or Analyzer()
        self._embedder = QueryEmbedder(embedding_service)
        self._lexical = LexicalRetriever(db_manager, self._analyzer)
        self._vector = VectorRetriever(db_manager, self._embedder)
        self._imagined = ImaginedRetriever(db_manager, self._analyzer)
        self._passages = Passages(db_manager, self._analyzer, reranker, pack)
        self._pack = pack
        self._runner = SearchRunner(db_manager, self._analyzer, self._passages, pack)
        self._scope = require_scope(scope) if scope is not None else None
        self._taxonomy = Taxonomy("")
        self._clock = clock
        self._cache = self._new_cache()
        self._statistics = EngineStatistics()
        self._loader = ModelLoader()
        self._on_search = on_search

    @property
    def bm25_weight(self) -> float:
        """The weight of the lexical score; both weights sum to 1."""
        return self._config.bm25_weight

    @property
    def vector_weight(self) -> float:
        """The weight of the vector score."""
        return self._config.vector_weight

    async def search(  # noqa: PLR0917 - the order of the acceptance documents
        self,
        query: str,
        top_k: int | None = 5,
        filters: Mapping[str, Any] | None = None,
        bm25_candidates: int = 50,
        vector_candidates: int = 50,
        correlation_id: str | None = None,
        *,
        scope: Viewer | None = None,
        mode: str = "hybrid",
        seconds: float | None = None,
        explain: bool = False,
        explain_documents: Sequence[str] = (),
        highlight: bool = True,
        exact_candidates: bool = False,
        as_of: date | str | None = None,
        official_words: Sequence[str] = (),
        choose_weights: WeightChoice | None = None,
        at_least: int = 0,
    ) -> Results:
        """The `top_k` best passages in scope, best first, and the metrics of the search.

        With None the number is chosen (`metrics.top_k`): by the pack that ranked them, else `DEFAULT_TOP_K`. There are
        `at_least` that many results.
        A blank query has none. If one retriever fails, it is named in `metrics.degraded` and the other one decides.
        With `seconds` late stages are left out and named there; without candidates in time it raises `TimeoutError`.
        `choose_weights` decides the weights of the two scores from the numbers of candidates; nothing is cached then.
        `as_of` (2024-03-01) searches the editions that were valid on that day, instead of today's.
        `highlight` marks the words of the query in the passages, about .1 ms for each.
        `explain` explains the rank of each passage; `metrics.absent` explains why `explain_documents` are missing.
        Raises `InvalidInput`, `IndexMismatch` (built with another analyzer), and `DatabaseUnavailable`.
        """
        with self._statistics.counting_errors():
            await self.load(query, mode, scope=scope)
            started = time.perf_counter()
            request = SearchArguments.parse(
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
                filter_keys=self.filter_keys,
                exact_candidates=exact_candidates,
                as_of=as_of,
                official_words=official_words,
                choose_weights=choose_weights,
                at_least=at_least,
            )
            if not request.query.strip():
                return self._answered(request, started, [], SearchMetrics())
            return self._answered(request, started, *await self._results(request, TimeLimits(self._config, seconds)))

    async def _results(self, request: SearchArguments, limits: TimeLimits) -> Results:
        """The results of the request in a state of the index that is not older than the call.

        The first attempt takes the snapshot in memory, later ones that of the index then. The last one takes what
        row-level security shows, though the index changes during it.
        """
        for attempt in itertools.count():
            from_memory = not attempt and request.choose_weights is None  # whose first call decides
            target = await self._target(request.filters, request.scope, from_memory=from_memory)
            if attempt < LAST_ATTEMPT:
                target = replace(target, version=target.snapshot.version)
            search = Search(request, target, self._config, limits)
            run = partial(self._runner.run, search, self._retriever())
            with suppress(IndexChanged):
                if not search.config.enable_caching or request.explain or request.choose_weights is not None:
                    return await run()
                key = self._cache_key(search)
                if attempt or not self._cache.holds(key):
                    results, metrics, is_hit = await self._cache.get_or_search(key, run)
                    if attempt or not is_hit:
                        return results, _metrics_of_hit(metrics) if is_hit else metrics
        raise AssertionError("unreachable")

    @property
    def pack(self) -> QueryPack | None:
        """The pack that may apply to a search."""
        return self._pack

    async def pack_applies(
        self, query: str, filters: Mapping[str, Any] | None = None, *, scope: Viewer | None = None
    ) -> bool:
        """Whether the pack interprets this query: there are documents of its kind in scope."""
        if self._pack is None:
            return False
        target = await self._target(SearchFilters.parse(filters, self.filter_keys), self._viewer(scope))
        return await self._pack.read(query, target.snapshot, target.scope) is not None

    async def named(
        self,
        query: str,
        filters: Mapping[str, Any] | None = None,
        *,
        scope: Viewer | None = None,
        earlier: Sequence[str] = (),
        documents: Collection[str] = (),
    ) -> tuple[NamedPassages, list[SearchResult]] | None:
        """The provisions in scope that a question names (학칙 제21조), and their passages; None when it names nothing.

        `earlier` are the earlier questions of its conversation, `documents` the ids of those behind the answers.
        """
        if self._pack is None or not self._pack.may_name(query, earlier):
            return None
        target = await self._target(SearchFilters.parse(filters, self.filter_keys), self._viewer(scope))
        named = await self._pack.named(query, target.snapshot, target.scope, earlier=earlier, documents=documents)
        if named is None:
            return None
        passages = await self._passages.of_day(named.chunk_ids, target)
        return named, [replace(passages[key], hybrid_score=1.0) for key in named.chunk_ids if key in passages]

    async def followed(
        self, passages: Sequence[SearchResult], filters: Mapping[str, Any] | None = None, *, scope: Viewer | None = None
    ) -> tuple[list[FollowedCitation], list[SearchResult]]:
        """The citations in these passages, which a search has just returned, and the passages that they cite, in scope.

        The metadata `cited_by` of a cited passage is the first provision that cites it.
        """
        if self._pack is None or not passages:
            return [], []
        parsed = SearchFilters.parse(filters, self.filter_keys)
        target = await self._target(parsed, self._viewer(scope), from_memory=True)
        followed = await self._pack.followed(passages, target.snapshot, target.scope)
        sources = {key: each.source for each in reversed(followed) for key in each.cited}
        cited = await self._passages.of_day(list(sources), target)
        return followed, [
            replace(passage, metadata={**passage.metadata, "cited_by": sources[key]}) for key, passage in cited.items()
        ]

    async def named_later(
        self,
        query: str,
        filters: Mapping[str, Any] | None = None,
        *,
        scope: Viewer | None = None,
        earlier: Sequence[str] = (),
        documents: Collection[str] = (),
    ) -> tuple[NamedPassages, list[ChangedText]] | None:
        """What a question names today, with what of it is not the text of the scope's earlier day; else None.

        A deleted provision has no text of a day before its deletion.
        """
        viewer = self._viewer(scope)
        if self._pack is None or viewer.as_of is None:
            return None
        target = await self._target(SearchFilters.parse(filters, self.filter_keys), viewer)
        if not is_earlier(target.scope):
            return None
        today, snapshot = target.today(), target.snapshot
        named = await self._pack.named(query, snapshot, today.scope, earlier=earlier, documents=documents)
        if named is None:
            return None
        if named.deleted_on is not None and named.deleted_on > viewer.as_of.isoformat():
            return named, [ChangedText(named.absent, named.deleted_on, 0, 0, deleted=True)]
        passages = await self._index.fetch(named.chunk_ids, today.scope, snapshot.taxonomy, today.filters)
        changed = await self._pack.changed(list(passages.values()), snapshot, target.scope)
        return named, [text for key in named.chunk_ids for text in changed.get(key, ())]

    async def load(self, query: str | None = None, mode: str = "hybrid", *, scope: Viewer | None = None) -> None:
        """Wait until the models are loaded that a search for this query uses (None: all models of the engine).

        Every search does so before its time limit starts. A model that cannot be loaded fails when it is used.
        """
        if self._pack is not None and mode == "hybrid" and (query is None or isinstance(query, str)):
            await self._pack.load(query, self._viewer(scope))
        embedder, reranker = self._embedder.embedder, self._passages.reranker
        if query is None:
            await self._loader.wait(embedder, reranker, self._analyzer.more)
        elif isinstance(query, str) and query.strip():
            embeds = mode in ("hybrid", "vector") and not self._embedder.unsupported_reason(query)
            reranks = self._config.enable_reranking and mode == "hybrid" and reranker.applies(query)
            await self._loader.wait(
                self._embedder.model(query) if embeds else None,
                reranker if reranks else None,
                None if query.isascii() else self._analyzer.more,
            )

    async def warm(self, searches: int) -> None:
        """Run concurrent searches that are neither counted nor cached nor reranked: later ones find everything ready.

        Raises the errors of `search`.
        """
        request = SearchArguments.parse(
            "warm",
            5,
            None,
            bm25_candidates=50,
            vector_candidates=50,
            scope=self._viewer(None),
            mode="hybrid",
            filter_keys=self.filter_keys,
        )
        config = replace(self._config, enable_reranking=False)
        target = await self._target(request.filters, request.scope)
        search = Search(request, target, config, TimeLimits(config, None))
        await asyncio.gather(*(self._runner.run(search, self._retriever()) for _ in range(searches)))

    async def notes_on(
        self, query: str, passages: Sequence[SearchResult], scope: Viewer
    ) -> Mapping[str, Sequence[Statement]]:
        """Chunk id -> what a pack has to say to the reader of an answer from these passages."""
        if self._pack is None or not passages:
            return {}
        return await self._pack.notes(query, passages, confinement.bounded(scope).resolved(self._taxonomy))

    async def keyword_only_search(
        self,
        query: str,
        top_k: int = 5,
        filters: Mapping[str, Any] | None = None,
        **options: Unpack[ScopedSearchOptions],
    ) -> Results:
        """`search` with the lexical retriever only; the hybrid score is the lexical one."""
        return await self.search(query, top_k, filters, mode="lexical", **options)

    async def vector_only_search(
        self,
        query: str,
        top_k: int = 5,
        filters: Mapping[str, Any] | None = None,
        **options: Unpack[ScopedSearchOptions],
    ) -> Results:
        """`search` with the vector retriever only; the hybrid score is the cosine."""
        return await self.search(query, top_k, filters, mode="vector", **options)

    async def _perform_bm25_search(
        self, query: str, top_k: int = 10, filters: Mapping[str, Any] | None = None, *, scope: Viewer | None = None
    ) -> Results:
        """The `top_k` best passages of the lexical retriever alone, with their text.

        An override of this method supplies the lexical candidates of every search (retrieval/retrievers.py).
        """
        request = SearchArguments.parse(
            query,
            top_k,
            filters,
            bm25_candidates=top_k,
            vector_candidates=top_k,
            scope=self._viewer(scope),
            mode="lexical",
            filter_keys=self.filter_keys,
        )
        target = await self._target(request.filters, request.scope)
        outcome = await self._lexical.retrieve(request, target, TimeLimits(self._config, None))
        results = await self._fetch_alone(target, outcome, RetrieverOutcome(skipped=True))
        return results, SearchMetrics(
            mode="lexical",
            bm25_time=outcome.seconds,
            bm25_candidates=len(outcome.scores),
            final_results=len(results),
        )

    async def _perform_vector_search(
        self,
        query_embedding: Vector | Sequence[float],
        top_k: int = 10,
        filters: Mapping[str, Any] | None = None,
        *,
        scope: Viewer | None = None,
    ) -> Results:
        """The `top_k` passages nearest to the vector, with their text.

        The vector is one of the model for English where the embedder has several. An override of this method supplies
        the vector candidates of every search (retrieval/retrievers.py).
        """
        embedder = self._embedder.embedder
        vector = parse_vector(query_embedding, embedder.dim if embedder is not None else None)
        limit = passage_count("top_k", top_k)
        target = await self._target(SearchFilters.parse(filters, self.filter_keys), self._viewer(scope))
        outcome = RetrieverOutcome(model=model_for(embedder, "en") or embedder)
        async with outcome.isolated(None):
            await self._vector.nearest(vector, limit, target, outcome)
        results = await self._fetch_alone(target, RetrieverOutcome(skipped=True), outcome)
        return results, SearchMetrics(
            mode="vector",
            vector_time=outcome.seconds,
            vector_candidates=len(outcome.scores),
            final_results=len(results),
        )

    def _analyze_query(self, query: str) -> QueryCharacteristics:
        """The characteristics of the query that adaptive weights depend on."""
        return analyze_query(query_text(query))

    def _build_filter_clause(
        self, filters: Mapping[str, Any] | None, scope: Viewer | None = None
    ) -> tuple[str, dict[str, object]]:
        """The SQL condition for the filters, and its parameters; the text never contains a value.

        Category paths are resolved in the taxonomy of the last search. Raises `InvalidInput`.
        """
        parsed = SearchFilters.parse(filters, self.filter_keys)
        viewer = self._viewer(scope)
        return self._index.filter_clause(parsed, parsed.scope(self._taxonomy, viewer.resolved(self._taxonomy)))

    def get_config(self) -> EngineDescription:
        """The configuration, the names of the models, and the figures of the cache."""
        embedder, config = self._embedder.embedder, self._config
        return {
            "bm25_weight": config.bm25_weight,
            "vector_weight": config.vector_weight,
            "normalization": config.normalization,
            "fusion": config.fusion,
            "adaptive": config.adaptive,
            "hops": config.hops,
            "enable_caching": config.enable_caching,
            "enable_reranking": config.enable_reranking,
            "cache_size": config.cache_size,
            "cache_ttl": config.cache_ttl,
            "embedding_timeout": config.embedding_timeout,
            "rerank_timeout": config.rerank_timeout,
            "analyzer": self._analyzer.id,
            "embedder": embedder.id if embedder is not None else None,
            "reranker": self._passages.reranker.id,
            "cache_stats": self._cache.stats(),
        }

    def update_config(self, **changes: Unpack[EngineChanges]) -> None:
        """Change values of `EngineConfig` for later searches and clear the cache. Raises `InvalidInput`."""
        self._config = self._config.changed(changes)
        self._cache.clear()
        if not {"cache_size", "cache_ttl"}.isdisjoint(changes):
            self._cache = self._new_cache()

    def clear_cache(self) -> None:
        """Delete the cached results."""
        self._cache.clear()

    def performance(self) -> EnginePerformance:
        """Counts of this engine's searches so far."""
        return self._statistics.performance()

    def _new_cache(self) -> ResultCache:
        return ResultCache(self._config.cache_size, self._config.cache_ttl, self._clock)

    def _viewer(self, scope: Viewer | None) -> Viewer:
        """The scope of a search: the argument, else the engine's, else the owner's."""
        chosen = scope if scope is not None else self._scope
        return confinement.bounded(require_scope(chosen) if chosen is not None else None)

    async def _target(self, filters: SearchFilters, viewer: Viewer, *, from_memory: bool = False) -> SearchTarget:
        """The target in the present state of the index, or in the one in memory, which may be outdated."""
        snapshot = self._index.latest if from_memory else None
        if snapshot is None or snapshot.settings.get("analyzer", self._analyzer.id) != self._analyzer.id:
            snapshot = await self._index.snapshot()
        check_identity(snapshot.settings, self._analyzer.id)
        self._taxonomy = snapshot.taxonomy
        return SearchTarget.of(snapshot, filters, viewer)

    def _cache_key(self, search: Search) -> object:
        request = search.request
        candidates = (request.bm25_candidates, request.vector_candidates, request.official_words)
        chooses = (request.chooses_top_k, request.at_least)
        options = (request.mode, candidates, request.highlight, search.config, chooses)
        models = (self._analyzer.id, getattr(self._embedder.embedder, "id", None), self._passages.reranker.id)
        pack = self._pack.id if self._pack is not None else None
        # A search without a time limit may take longer than a caller with one can wait for it.
        limited = search.limits.seconds is None
        return cache_key(
            request.query, None, request.top_k, (options, models, pack, search.target.cache_key(), limited)
        )

    def _answered(
        self, request: SearchArguments, started: float, results: list[SearchResult], metrics: SearchMetrics
    ) -> Results:
        metrics = replace(
            metrics,
            total_time=time.perf_counter() - started,
            correlation_id=request.correlation_id,
            mode=request.mode,
        )
        self._statistics.count_answer(metrics)
        if self._on_search is not None:
            self._on_search(metrics)
        return results, metrics

    def _retriever(self) -> HybridRetriever:
        lexical, vector = self._perform_bm25_search, self._perform_vector_search
        own = HybridSearchEngine
        return HybridRetriever(
            LexicalOverride(lexical) if _overrides(lexical, own._perform_bm25_search) else self._lexical,
            VectorOverride(vector, self._embedder) if _overrides(vector, own._perform_vector_search) else self._vector,
            self._imagined,
        )

    async def _fetch_alone(
        self, target: SearchTarget, lexical: RetrieverOutcome, vector: RetrieverOutcome
    ) -> list[SearchResult]:
        """The passages of the one retriever that ran. Raises its failure."""
        for outcome in (lexical, vector):
            if outcome.failure is not None:
                raise outcome.failure
        scores = lexical.scores or vector.scores
        return await self._passages.fetch(list(scores), target, Ranking(lexical, vector, scores, list(scores)))


def _overrides(method: Callable[..., object], own: Callable[..., object]) -> bool:
    """Whether a subclass or the object itself has another method in the place of the class's own one."""
    return getattr(method, "__func__", None) is not own


def _metrics_of_hit(metrics: SearchMetrics) -> SearchMetrics:
    """The metrics of a cached result: its counts, and none of its times."""
    return SearchMetrics(
        bm25_candidates=metrics.bm25_candidates,
        vector_candidates=metrics.vector_candidates,
        final_results=metrics.final_results,
        diversity_ratio=metrics.diversity_ratio,
        cache_hit=True,
        degraded=metrics.degraded,
        note_statements=metrics.note_statements,
        missing_editions=metrics.missing_editions,
        today=metrics.today,
        pack=metrics.pack,
        query=metrics.query,
        vectors_pending=metrics.vectors_pending,
        top_k=metrics.top_k,
        imagined_candidates=metrics.imagined_candidates,
    )
