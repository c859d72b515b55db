"""Runs the stages of one search, without the cache: retrieval, fusion, links, reranking, highlights, explanations."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from dtrag.core.access.scope import Scope
from dtrag.core.documents import Absence, PackFindings, SearchMetrics, SearchResult, TodaysResults
from dtrag.core.editions import changed_later, missing_editions_note
from dtrag.core.metrics.ranking import diversity_ratio
from dtrag.core.query_expansion import QueryExpansion, TopKChoice
from dtrag.core.statements import Statement, stated
from dtrag.core.text.analysis import Analyzer, language
from dtrag.errors import DtragError
from dtrag.ports import Index, NamedPassages, QueryPack, QueryReading, valid_day
from dtrag.retrieval.config import (
    LINKED_AFTER,
    PACK_LEXICAL_CANDIDATES,
    PACK_PASSAGES,
    RERANKED_PASSAGES,
    EngineConfig,
    TimeLimits,
)
from dtrag.retrieval.explain import Explainer
from dtrag.retrieval.hybrid import Candidates, HybridRetriever, Ranking
from dtrag.retrieval.imagined import nearness
from dtrag.retrieval.multihop import cited_passages, mentioned_passages, vector_shares, with_linked
from dtrag.retrieval.request import DEFAULT_TOP_K, SearchArguments, SearchTarget, is_earlier
from dtrag.retrieval.results import Passages, RerankOutcome
from dtrag.settings import timeout_multiplier

Results = tuple[list[SearchResult], SearchMetrics]
NAMED_CHANGES = 3
"""First results of today whose later changes a search as of an earlier day names."""


@dataclass(frozen=True, slots=True)
class Search:
    """The input of all stages of one search."""

    request: SearchArguments
    target: SearchTarget
    config: EngineConfig
    limits: TimeLimits

    @property
    def weights(self) -> tuple[float, float]:
        """The weights of the lexical and the vector score."""
        return self.config.bm25_weight, self.config.vector_weight


class SearchRunner:
    """Runs the searches of one engine."""

    def __init__(self, index: Index, analyzer: Analyzer, passages: Passages, pack: QueryPack | None) -> None:
        self._index = index
        self._analyzer = analyzer
        self._passages = passages
        self._pack = pack

    async def run(self, search: Search, retriever: HybridRetriever) -> Results:
        """The results of one search and its metrics."""
        started = time.perf_counter()
        degraded: list[str] = []
        named = await self._named(search, degraded)
        if named is not None:
            search = replace(search, request=replace(search.request, query=named.question))
        reading = await self._pack_reading(search)
        request = _with_added_terms(search.request, reading)
        retrieval = retriever.retrieve(request, search.target, search.limits)
        if reading is None and search.target.scope.as_of is None:
            candidates, missing_editions, today = await retrieval, None, None
        else:
            candidates, missing_editions, today, _ = await asyncio.gather(
                retrieval,
                self._missing_editions(search, degraded),
                self._todays(search, retriever, degraded, needed=reading is not None),
                self._prepare_pack(search, needed=reading is not None),
            )
        candidates.require_any(search.limits.seconds)
        fusion_started = time.perf_counter()
        search = _with_chosen_weights(search, candidates)
        ranking = Ranking.of(candidates, request, search.config)
        fetch_started = time.perf_counter()
        degraded += candidates.failed()
        passages, findings = await self._linked_passages(search, ranking, reading, named, degraded)
        rerank_started = time.perf_counter()
        chosen = _chosen_top_k(search.request, reading if findings is not None else None, rerank_started - started)
        if chosen is not None:
            top_k = max(chosen.top_k, request.at_least)
            request = replace(request, top_k=top_k)
            search = replace(search, request=replace(search.request, top_k=top_k))
        reranks = search.config.enable_reranking and request.mode == "hybrid"
        reranked = await self._passages.rerank(
            request.query, passages, request.top_k, search.limits.reranking if reranks else None
        )
        rerank_seconds = time.perf_counter() - rerank_started if reranks else 0.0
        if ranking.lexical.note:  # an incomplete result, which must not be cached
            degraded.append("lexical")
        degraded += ["rerank"] if reranked.failed else []
        query = reading.facts() if reading is not None else None
        shown = query if request.explain else None
        expansions = shown.expansions if shown is not None else ()
        results, absent = await self._presented(search, ranking, reranked, expansions)
        notes = (
            _rebuilding_note(search.target),
            missing_editions,
            _changed_note(search.request.query, search.target.scope, today),
            ranking.lexical.note,
            ranking.vector.note or _pending_note(ranking.vector.pending),
            reading.note if reading is not None else None,
        )
        return results, SearchMetrics(
            bm25_time=ranking.lexical.seconds,
            vector_time=ranking.vector.seconds,
            embedding_time=ranking.vector.embedding_seconds,
            fusion_time=fetch_started - fusion_started,
            fetch_time=rerank_started - fetch_started,
            rerank_time=rerank_seconds,
            bm25_candidates=len(ranking.lexical.scores),
            vector_candidates=len(ranking.vector.scores),
            final_results=len(results),
            diversity_ratio=diversity_ratio([str(result.metadata.get("document_id", "")) for result in results]),
            degraded=tuple(degraded),
            note_statements=tuple(filter(None, notes)),
            absent=absent,
            missing_editions=missing_editions,
            today=today,
            pack=findings,
            query=query,
            entities=shown.entities if shown is not None else (),
            expansions=expansions,
            vectors_pending=ranking.vector.pending,
            top_k=chosen,
            imagined_candidates=len(ranking.imagined.scores),
        )

    async def _named(self, search: Search, degraded: list[str]) -> NamedPassages | None:
        """The provisions that the query names.

        None, with `references` in `degraded`, if reading the names of the regulations fails or is late.
        """
        if self._pack is None or search.request.mode != "hybrid":
            return None
        try:
            async with asyncio.timeout(search.limits.lexical):
                named = await self._pack.named(search.request.query, search.target.snapshot, search.target.scope)
                return named if named is not None and named.chunk_ids else None
        except (TimeoutError, DtragError):
            degraded.append("references")
            return None

    async def _missing_editions(self, search: Search, degraded: list[str]) -> Statement | None:
        """Of which works no text of the day is stored; None with `editions` in `degraded` if that fails or is late."""
        try:
            async with asyncio.timeout(search.limits.lexical):
                is_korean = language(search.request.query) == "ko"
                return await missing_editions(self._index, search.target.scope, korean=is_korean)
        except (TimeoutError, DtragError):
            degraded.append("editions")
            return None

    async def _todays(
        self, search: Search, retriever: HybridRetriever, degraded: list[str], *, needed: bool
    ) -> TodaysResults | None:
        """The results of today, for a search as of an earlier day; None with `editions` in `degraded` if that fails."""
        if self._pack is None or not needed or not is_earlier(search.target.scope):
            return None
        request = replace(search.request, explain=False, highlight=False)
        try:
            today = replace(search, request=request, target=search.target.today())
            async with asyncio.timeout(search.limits.lexical):
                passages, metrics = await self.run(today, retriever)
                changed = await self._pack.changed(passages, search.target.snapshot, search.target.scope)
        except (TimeoutError, DtragError):
            degraded.append("editions")
            return None
        return TodaysResults(tuple(passages), metrics.pack, changed)

    async def _pack_reading(self, search: Search) -> QueryReading | None:
        if self._pack is None or search.request.mode != "hybrid":
            return None
        request, target = search.request, search.target
        return await self._pack.read(request.query, target.snapshot, target.scope, request.official_words)

    async def _prepare_pack(self, search: Search, *, needed: bool) -> None:
        """Let the pack read what citations need; if that fails or is late, the search continues without them."""
        if self._pack is None or not needed:
            return
        with suppress(TimeoutError, DtragError):
            async with asyncio.timeout(search.limits.lexical):
                await self._pack.prepare(search.target.snapshot, search.target.caller)

    async def _linked_passages(
        self,
        search: Search,
        ranking: Ranking,
        reading: QueryReading | None,
        named: NamedPassages | None,
        degraded: list[str],
    ) -> tuple[list[SearchResult], PackFindings | None]:
        """The best passages, in the pack's order if it applies, and those that the first of them cite or mention.

        A stage that fails or is late is left out and added to `degraded`.
        """
        target, limits, is_hybrid = search.target, search.limits, search.request.mode == "hybrid"
        limit = search.request.top_k
        if search.config.enable_reranking and is_hybrid:
            limit = max(limit, RERANKED_PASSAGES)
        first = ranking.order[:limit] if reading is None else ranking.words_and_nearest(max(limit, PACK_PASSAGES))
        chunk_ids = list(dict.fromkeys((*(named.chunk_ids if named is not None else ()), *first)))
        findings: PackFindings | None = None
        if reading is not None:
            ranking = ranking.with_similarities(await vector_shares(self._index, target, ranking.vector, chunk_ids))
        passages = await self._passages.fetch(chunk_ids, target, ranking)
        if reading is not None and self._pack is not None:
            imagined = await nearness(self._index, target, ranking.imagined, chunk_ids)
            pack_ranking = await self._pack.ranked(reading, passages, target.caller, imagined)
            findings = pack_ranking.findings
            passages = pack_ranking.passages if named is None else _named_first(pack_ranking.passages, named)
            passages = passages[: max(search.request.top_k, RERANKED_PASSAGES)]
            try:
                async with asyncio.timeout(limits.citations):
                    cited = await self._pack.cited(passages, target.snapshot, target.caller)
                    links = await cited_passages(self._index, target, ranking, passages, cited, weights=search.weights)
                    return await with_linked(self._passages, target, passages, links), findings
            except (TimeoutError, DtragError):
                degraded.append("citations")
        elif search.config.hops > 1 and is_hybrid and len(chunk_ids) > LINKED_AFTER:
            try:
                async with asyncio.timeout(limits.mentions):
                    links = await mentioned_passages(self._index, target, ranking, passages, search.weights)
                    return (await with_linked(self._passages, target, passages, links))[: len(chunk_ids)], findings
            except TimeoutError:
                degraded.append("mentions")
        return passages, findings

    async def _presented(
        self, search: Search, ranking: Ranking, reranked: RerankOutcome, expansions: Sequence[QueryExpansion]
    ) -> tuple[list[SearchResult], tuple[Absence, ...]]:
        """The results with highlights and explanations, and the explained absences."""
        request, results = search.request, reranked.results
        if request.highlight:
            results = self._passages.highlight(request.query, results)
        if not request.explain:
            return results, ()
        explainer = Explainer(self._index, self._analyzer, request, search.target, ranking, reranked.scores, expansions)
        return await explainer.explained(results), await explainer.absences(results)


async def missing_editions(index: Index, scope: Scope, *, korean: bool) -> Statement | None:
    """Of which works in scope no text of the day that was asked for is stored; None without such a day, or for none."""
    if scope.as_of is None or scope.as_of == valid_day(Scope(scope.nodes)):
        return None
    return missing_editions_note(await index.work_beginnings(scope), scope.as_of, korean=korean)


def _named_first(results: Sequence[SearchResult], named: NamedPassages) -> list[SearchResult]:
    """The results with the named provisions first, in the order of the question, with the score 1."""
    order = {key: place for place, key in enumerate(named.chunk_ids)}
    first = sorted((hit for hit in results if hit.chunk_id in order), key=lambda hit: order[hit.chunk_id])
    return [replace(hit, hybrid_score=1.0) for hit in first] + [hit for hit in results if hit.chunk_id not in order]


def _with_added_terms(request: SearchArguments, reading: QueryReading | None) -> SearchArguments:
    """The request with the terms that the pack adds, and more lexical candidates for them."""
    if reading is None or not reading.added:
        return request
    candidates = max(request.bm25_candidates, PACK_LEXICAL_CANDIDATES)
    return replace(request, added_terms=tuple(reading.added), bm25_candidates=candidates)


def _chosen_top_k(request: SearchArguments, reading: QueryReading | None, seconds: float) -> TopKChoice | None:
    """The number of results for a caller who requests none, after so many seconds; without `reading` no pack ranked
    them."""
    if not request.chooses_top_k:
        return None
    if reading is None:
        return TopKChoice(DEFAULT_TOP_K, "default")
    return reading.top_k(seconds / timeout_multiplier())


def _with_chosen_weights(search: Search, candidates: Candidates) -> Search:
    """The search with the weights that its request chooses for these numbers of candidates."""
    choose = search.request.choose_weights
    if choose is None or search.request.mode != "hybrid":
        return search
    lexical, vector = choose(len(candidates.lexical.scores), len(candidates.vector.scores))
    return replace(search, config=replace(search.config, bm25_weight=lexical, vector_weight=vector))


def _changed_note(query: str, scope: Scope, today: TodaysResults | None) -> Statement | None:
    """What of today's first results is not the text of the scope's day, which is not stored."""
    if today is None or scope.as_of is None:
        return None
    first = (passage.chunk_id for passage in today.passages[:NAMED_CHANGES])
    changed = [text for chunk_id in first for text in today.changed.get(chunk_id, ())]
    return changed_later(changed, scope.as_of, korean=language(query) == "ko") if changed else None


def _pending_note(pending: bool) -> Statement | None:
    if pending:
        return stated(
            "vectors_pending",
            "Vectors of some passages are still being made: until then these are found by their words only.",
        )
    return None


def _rebuilding_note(target: SearchTarget) -> Statement | None:
    if target.is_rebuilding:
        return stated(
            "index_rebuilding",
            "The index is being rebuilt and incomplete; if no `dtrag reindex` is running, run it again.",
        )
    return None
