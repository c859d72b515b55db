"""The two legs of a search: words and vectors. Either may fail without the other."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dtrag import embedding_service
from dtrag.concurrency import DaemonThreads
from dtrag.core.documents import Vector
from dtrag.core.ranking.bm25 import LexicalQuery
from dtrag.core.text.analysis import Analyzer, language
from dtrag.core.text.questions import weighted_terms
from dtrag.errors import DatabaseUnavailable, InvalidInput
from dtrag.ports import NOT_CONFIGURED, Embedder, Index, speaks
from dtrag.retrieval.request import Reach

EMBEDDING_THREADS = 4
"""Of an engine: a model that hangs takes these from it, and none from the rest of the process."""
KEPT_VECTORS, KEPT_CHARACTERS = 1_000, 1_000
"""Vectors of queries that an engine keeps (1.5 MB for 384 dimensions), and the longest query that one is kept of."""


@dataclass(slots=True)
class Leg:
    """One side of a search: its candidates (chunk id -> score, best first), its time, what went wrong.

    `raw` are the scores as the index gives them; `scores` in [0, 1] those of words as shares of what the query could
    reach at most. `asked` and `vector` are the query as the side sees it.
    """

    scores: dict[str, float] = field(default_factory=dict)
    raw: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    embedding_seconds: float = 0.0
    failure: Exception | None = None
    note: str = ""
    skipped: bool = False
    asked: LexicalQuery | None = None
    vector: Vector | None = None

    @property
    def candidates(self) -> dict[str, float] | None:
        """What the side says; None when it could not be asked."""
        there = self.failure is None and not self.note and not self.skipped
        return self.scores if there else None


async def attempt(leg: Leg, run: Callable[[], Awaitable[object]], seconds: float | None = None) -> Leg:
    """The named seam where one leg of a search may fail, or take longer than `seconds`, without the other."""
    started = time.perf_counter()
    try:
        async with asyncio.timeout(seconds):
            await run()
    except Exception as error:  # noqa: BLE001 - the seam: the failure is kept, shown, and raised if nothing worked
        leg.failure = error
        leg.scores, leg.raw = {}, {}
    leg.seconds = time.perf_counter() - started
    return leg


def raise_if_nothing_worked(legs: Sequence[Leg], seconds: float | None = None) -> None:
    """Raise `DatabaseUnavailable` when a leg has failed and no other was there to decide.

    Where the search had no more than `seconds` and the first of them was late, raise `TimeoutError`.
    """
    failures = [leg.failure for leg in legs if leg.failure is not None]
    if failures and all(leg.candidates is None for leg in legs):
        cause = failures[0]
        if isinstance(cause, DatabaseUnavailable):
            raise cause
        if seconds is not None and isinstance(cause, TimeoutError):
            raise TimeoutError(f"The search was not finished in {seconds:g} s") from cause
        raise DatabaseUnavailable(reason=f"no search could be made ({type(cause).__name__}).") from cause


async def lexical(
    index: Index,
    analyzer: Analyzer,
    query: str,
    reach: Reach,
    leg: Leg,
    *,
    wanted: int,
    mode: str,
    added: Sequence[tuple[int, float]] = (),
) -> None:
    """Fill the leg with the passages that hold words of the query; in mode `strict`, all of them.

    `added` are further terms with weights, which count for a passage; shares are of what the query's own can reach.
    """
    if mode == "strict":
        leg.note = await index.strict_note(reach.scope)
        leg.raw = leg.scores = await index.strict(query, reach.scope, reach.filters, wanted)
        return
    # An analyzer with another part (Kiwi) may be loading still; its lock must not hold up the event loop.
    terms = (
        await asyncio.to_thread(weighted_terms, query, analyzer) if analyzer.more else weighted_terms(query, analyzer)
    )
    statistics = await index.statistics([term for term, _ in (*terms, *added)], reach.caller)
    asked = LexicalQuery.of([*terms, *added], statistics)
    if added:
        asked = replace(asked, ceiling=LexicalQuery.of(terms, statistics).ceiling)
    leg.asked = asked
    leg.raw = await index.lexical(asked, reach.scope, reach.filters, wanted)
    leg.scores = {key: asked.share(score) for key, score in leg.raw.items()}


async def nearest(index: Index, vector: Vector, reach: Reach, leg: Leg, *, wanted: int) -> None:
    """Fill the leg with the passages whose vectors are nearest."""
    leg.vector = vector
    leg.raw = await index.vectors(vector, reach.scope, reach.filters, wanted)
    leg.scores = {key: min(1.0, max(0.0, score)) for key, score in leg.raw.items()}


def as_vector(values: object, dim: int | None = None) -> Vector:
    """A vector of numbers. Raises `InvalidInput`."""
    try:
        vector = np.asarray(values, np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInput("query_embedding is not a list of numbers.") from error
    if vector.ndim != 1 or not len(vector) or not np.isfinite(vector).all() or dim not in {None, len(vector)}:
        raise InvalidInput(f"query_embedding must be {dim or 'some'} finite numbers.")
    return vector


class QueryEmbedder:
    """Makes vectors of queries, in time or not at all; those of the latest queries are kept.

    A vector depends on nothing but the text and the model, so it outlives what a cache of results must forget: other
    filters, another scope, every write.
    """

    def __init__(self, embedder: Embedder | None) -> None:
        self.embedder = embedder
        self._kept: OrderedDict[str, Vector] = OrderedDict()
        self._threads = DaemonThreads(EMBEDDING_THREADS, "embed-query")

    def cannot(self, query: str) -> str:
        """Why the query gets no vector, for people; "" when it does."""
        if self.embedder is None:
            return "No embedder is available: lexical search only. See `dtrag models list`."
        code = language(query)
        if not speaks(self.embedder, code):
            return f"The embedder {self.embedder.id} does not speak the query's language ({code}): lexical only."
        return ""

    async def embed(self, query: str, seconds: float) -> Vector:
        """The vector. Raises `TimeoutError` when it takes longer, and `ValueError` for what is no vector."""
        if query in self._kept:
            self._kept.move_to_end(query)
            return self._kept[query]
        vector = await asyncio.wait_for(self._generated(query), seconds)
        if vector is None:
            raise ValueError("no vector was made")
        if not np.isfinite(vector).all():
            raise ValueError("the embedder returned a vector with a number that is not finite")
        if len(query) <= KEPT_CHARACTERS:
            self._kept[query] = vector
            if len(self._kept) > KEPT_VECTORS:
                self._kept.popitem(last=False)
        return vector

    async def told_not_configured(self, query: str) -> None:
        """The call for a query that gets no vector because there is no embedder: a program may have replaced it."""
        await self._generated(query)

    async def _generated(self, query: str) -> Vector | None:
        return await embedding_service.generate_embedding(
            query, embedder=self.embedder or NOT_CONFIGURED, executor=self._threads
        )
