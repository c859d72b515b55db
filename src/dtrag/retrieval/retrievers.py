"""The lexical and the vector retriever: each returns scored candidates, and neither fails because of the other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from cachetools import LRUCache

from dtrag import embedding_service
from dtrag.concurrency import DaemonThreads
from dtrag.core.documents import SearchMetrics, SearchResult, Vector
from dtrag.core.ranking.bm25 import LexicalQuery
from dtrag.core.statements import Statement, stated
from dtrag.core.text.analysis import Analyzer, language
from dtrag.core.text.questions import has_hangul, required_terms, weighted_terms
from dtrag.errors import InvalidInput
from dtrag.ports import NOT_CONFIGURED, Embedder, Index, model_for, similarity
from dtrag.retrieval.config import TimeLimits
from dtrag.retrieval.request import SearchArguments, SearchTarget

EMBEDDING_THREADS = 4
"""Threads of one engine for query embeddings: a model that hangs blocks these, and no others of the process."""
CACHED_VECTORS, MAX_CACHED_CHARACTERS = 1_000, 1_000
"""Query vectors that one engine caches (1.5 MB for 384 dimensions), and the longest query whose vector is cached."""


@dataclass(slots=True)
class RetrieverOutcome:
    """The candidates of one retriever (chunk id -> score, best first), its time, and its failure if it failed.

    `raw_scores` are BM25 sums or cosines. `scores` lie in [0, 1]; a lexical one is a share of the highest score that
    the query can reach, a vector one what `similarity` makes of a cosine. `lexical_query` and `vector` are the query in
    the retriever's own form; `model` made the vector. `pending`: passages in scope may wait for vectors of this model.
    """

    scores: dict[str, float] = field(default_factory=dict)
    raw_scores: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    embedding_seconds: float = 0.0
    failure: Exception | None = None
    note: Statement | None = None
    skipped: bool = False
    lexical_query: LexicalQuery | None = None
    vector: Vector | None = None
    model: Embedder | None = None
    pending: bool = False

    @property
    def candidates(self) -> dict[str, float] | None:
        """The scores; None when the retriever failed or did not run."""
        return None if self.failure is not None or self.note or self.skipped else self.scores

    @asynccontextmanager
    async def isolated(self, seconds: float | None) -> AsyncIterator[None]:
        """The named boundary where one retriever may fail, or exceed `seconds`, and the other one still answers."""
        started = time.perf_counter()
        try:
            async with asyncio.timeout(seconds):
                yield
        except Exception as error:  # noqa: BLE001 - the boundary: reported as `degraded`, raised if both failed
            self.failure = error
            self.scores, self.raw_scores = {}, {}
        self.seconds = time.perf_counter() - started


class Retriever(Protocol):
    """Finds candidates for a request among the documents of a target."""

    async def retrieve(self, request: SearchArguments, target: SearchTarget, limits: TimeLimits) -> RetrieverOutcome:
        """The candidates; errors and exceeded time limits are in the outcome's `failure`."""


class LexicalRetriever:
    """Finds passages that contain terms of the query (BM25), or all its words (mode `strict`).

    PostgreSQL's text search, which `strict` uses, does not know Korean particles: for 등록금은 it wants 등록금은. So of
    a query with Korean words the terms of the index are required, without particles and words that only ask.
    """

    def __init__(self, index: Index, analyzer: Analyzer) -> None:
        self._index = index
        self._analyzer = analyzer

    async def retrieve(self, request: SearchArguments, target: SearchTarget, limits: TimeLimits) -> RetrieverOutcome:
        """`request.added_terms` count for a passage; scores are shares of what the query's own terms can reach."""
        outcome = RetrieverOutcome(skipped=request.mode == "vector")
        if outcome.skipped:
            return outcome
        async with outcome.isolated(limits.lexical):
            index, limit = self._index, request.bm25_candidates
            if request.mode == "strict" and not has_hangul(request.query):
                outcome.note = await index.strict_note(target.scope)
                outcome.raw_scores = await index.strict(request.query, target.scope, target.filters, limit)
                outcome.scores = outcome.raw_scores
            else:
                query = await self._lexical_query(request, target)
                if request.mode == "strict":
                    query = replace(query, required=required_terms(request.query))
                outcome.lexical_query = query
                outcome.raw_scores = await index.lexical(query, target.scope, target.filters, limit)
                outcome.scores = query.shares(outcome.raw_scores)
        return outcome

    async def _lexical_query(self, request: SearchArguments, target: SearchTarget) -> LexicalQuery:
        if self._analyzer.more:  # its optional part (Kiwi) may still be loading; its lock must not block the event loop
            own_terms = await asyncio.to_thread(weighted_terms, request.query, self._analyzer)
        else:
            own_terms = weighted_terms(request.query, self._analyzer)
        terms = [*own_terms, *request.added_terms]
        statistics = await self._index.statistics([term for term, _ in terms], target.caller)
        query = LexicalQuery.of(terms, statistics)
        if request.added_terms:
            query = replace(query, ceiling=LexicalQuery.of(own_terms, statistics).ceiling)
        return query


class VectorRetriever:
    """Finds the passages whose vectors are nearest to that of the query."""

    def __init__(self, index: Index, embedder: QueryEmbedder) -> None:
        self._index = index
        self._embedder = embedder

    async def retrieve(self, request: SearchArguments, target: SearchTarget, limits: TimeLimits) -> RetrieverOutcome:
        """The nearest passages; without candidates, and with a `note`, when the query cannot be embedded."""
        outcome = RetrieverOutcome(skipped=request.mode not in {"hybrid", "vector"})
        if outcome.skipped:
            return outcome
        outcome.note = self._embedder.unsupported_reason(request.query)
        if outcome.note:
            await self._embedder.report_missing(request.query, outcome, limits.embedding)
            return outcome
        async with outcome.isolated(limits.vector):
            started = time.perf_counter()
            vector = await self._embedder.embed(request.query, limits.embedding)
            outcome.embedding_seconds = time.perf_counter() - started
            outcome.model = self._embedder.model(request.query)
            if outcome.model is not None:
                code, space = language(request.query), outcome.model.id
                outcome.pending = target.snapshot.awaits_vectors(target.scope, code, space)
            await self.nearest(vector, request.vector_candidates, target, outcome)
        return outcome

    async def nearest(self, vector: Vector, limit: int, target: SearchTarget, outcome: RetrieverOutcome) -> None:
        """Write the `limit` passages nearest to the vector, which `outcome.model` made, into the outcome."""
        outcome.vector, space = vector, outcome.model.id if outcome.model is not None else ""
        outcome.raw_scores = await self._index.vectors(vector, space, target.scope, target.filters, limit)
        outcome.scores = similarity(outcome.model, outcome.raw_scores)


def parse_vector(values: object, dim: int | None = None) -> Vector:
    """The values as a vector of `dim` finite numbers (None: any number of them). Raises `InvalidInput`."""
    try:
        vector = np.asarray(values, np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput("query_embedding is not a list of numbers.") from error
    if vector.ndim != 1 or not len(vector) or not np.isfinite(vector).all() or dim not in {None, len(vector)}:
        raise InvalidInput(f"query_embedding must be {dim or 'some'} finite numbers.")
    return vector


class QueryEmbedder:
    """Embeds queries within a time limit, and caches the vectors of the most recent ones.

    A vector depends on the text and the model only. So it stays valid where cached results do not: with other filters,
    in another scope, after a write.
    """

    def __init__(self, embedder: Embedder | None) -> None:
        self.embedder = embedder
        self._vectors: LRUCache[str, Vector] = LRUCache(CACHED_VECTORS)
        self._threads = DaemonThreads(EMBEDDING_THREADS, "embed-query")

    def model(self, query: str) -> Embedder | None:
        """The model for the query's language."""
        return model_for(self.embedder, language(query))

    def unsupported_reason(self, query: str) -> Statement | None:
        """Why the query cannot be embedded, as a sentence; None when it can."""
        if self.embedder is None:
            return stated("no_embedder", "No embedder is available: lexical search only. See `dtrag models list`.")
        code = language(query)
        if model_for(self.embedder, code) is None:
            return stated(
                "embedder_language",
                "The embedder {embedder} does not support the query's language ({language}): lexical search only.",
                embedder=self.embedder.id,
                language=code,
            )
        return None

    async def embed(self, query: str, seconds: float) -> Vector:
        """The vector of the query. Raises `TimeoutError` after `seconds`, and `ValueError` for an invalid vector."""
        cached = self._vectors.get(query)
        if cached is not None:
            return cached
        vector = await asyncio.wait_for(self._generate(query), seconds)
        if vector is None:
            raise ValueError("the embedder returned no vector")
        if not np.isfinite(vector).all():
            raise ValueError("the embedder returned a vector with a number that is not finite")
        if len(query) <= MAX_CACHED_CHARACTERS:
            self._vectors[query] = vector
        return vector

    async def report_missing(self, query: str, outcome: RetrieverOutcome, seconds: float) -> None:
        """Call `embedding_service` without an embedder too: a program may have replaced that function, to see calls."""
        if self.embedder is None:
            async with outcome.isolated(seconds):
                await self._generate(query)
            outcome.seconds = 0.0

    async def _generate(self, query: str) -> Vector | None:
        return await embedding_service.generate_embedding(
            query, embedder=self.model(query) or NOT_CONFIGURED, executor=self._threads
        )


SearchMethod = Callable[..., Awaitable[tuple[Sequence[SearchResult], SearchMetrics]]]
"""`_perform_bm25_search` or `_perform_vector_search` as a program overrides it, in a subclass of the engine or on the
object (SPEC-SEARCH-001, AC-003). Searches then take their candidates from the override. Its results are fetched in the
caller's scope like any candidates, so an override cannot widen a scope."""


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
