"""Rerankers: a cross-encoder that reads query and passage together, or the heuristic of the acceptance document.

The heuristic exists for conformity: on our data sets it changes nDCG@10 by -.003 to +.002.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from dataclasses import replace

from dtrag.concurrency import DaemonThreads
from dtrag.core.documents import SearchResult
from dtrag.core.text.analysis import folded, language, terms
from dtrag.errors import InvalidInput
from dtrag.ports import Loadable, Reranker

MODEL = "cross-encoder/ms-marco-MiniLM-L-6-v2"
MAX_CANDIDATES = 50
"""Passages that a model reads: each costs a run of the model, and passages below rank 50 are rarely the answer."""
SLICE = 10
"""Passages that are read between two checks of the clock, the best first, so that a slow machine reads the important
ones before the deadline. With six layers a passage of 150 words takes about 60 ms on one core."""
FIRST_SLICE = 2
"""Passages of the first slice, before the speed of the model is known."""
SAFETY = 0.85
"""Share of the remaining time that a slice may be expected to take: passages differ in length."""
FORGETTING = 0.7
"""Factor of the expected seconds per passage when not even one passage would fit."""
TIMEOUT = 0.5
"""Default seconds that a search waits for the model."""

_LOG = logging.getLogger(__name__)


class HeuristicScore:
    """hybrid score * (1 + .2 overlap + .1 length + .1 diversity), in [0, 1], for each of the results of a query.

    overlap: share of the query's terms that occur in the passage, also inside words. length: .7 below 50 characters, 1
    from 100 to 500, .8 above 1,000, else .9. diversity: (distinct sources + distinct categories) / 10, at most 1, the
    same for all results.
    """

    def __init__(self, query: str, results: Sequence[SearchResult]) -> None:
        sources = {result.source_url for result in results}
        categories = {tuple(result.taxonomy_path) for result in results}
        self._shared = 1.0 + 0.1 * min(1.0, (len(sources) + len(categories)) / 10)
        self._query = query
        self._terms: set[str] | None = None

    def __call__(self, result: SearchResult) -> float:
        """The score of one of the results."""
        if self._terms is None:
            self._terms = set(terms(self._query))
        factor = self._shared + 0.2 * _overlap(self._terms, result) + 0.1 * _length(result)
        return min(1.0, max(0.0, result.hybrid_score) * factor)


def heuristic_scores(query: str, results: Sequence[SearchResult]) -> list[float]:
    """The `HeuristicScore` of each result."""
    return list(map(HeuristicScore(query, results), results))


def _overlap(query_terms: set[str], result: SearchResult) -> float:
    # Without the terms of the passage: to compute these takes .1 ms each, a third of a whole search for ten. A term has
    # no white space, so that of the text can stay.
    text = folded(result.text)
    return sum(term in text for term in query_terms) / len(query_terms) if query_terms else 0.0


def _length(result: SearchResult) -> float:
    characters = len(result.text)
    if characters < 50:
        return 0.7
    if characters > 1000:
        return 0.8
    return 1.0 if 100 <= characters <= 500 else 0.9


class CrossEncoderReranker:
    """Orders results by the scores of a cross-encoder.

    `model` reads the passages. A name alone loads no model: the app resolves `DTRAG_RERANKER` and passes the model.
    Without a model, for a query in a language that the model does not support, and when it has read nothing in time,
    the heuristic decides. Passages that it has not read come after those that it has read. The error of a model that
    fails is raised; the engine handles it.
    """

    def __init__(
        self, model_name: str = MODEL, *, model: Reranker | None = None, max_candidates: int = MAX_CANDIDATES
    ) -> None:
        if not 1 <= max_candidates <= MAX_CANDIDATES:
            raise InvalidInput(f"max_candidates must be from 1 to {MAX_CANDIDATES}.")
        self.model_name = model_name
        self.max_candidates = max_candidates
        self._model = model
        # A separate thread: a slow model must not block the threads that the other stages need. Only one: the model
        # uses several cores itself, and a search that waits in vain for its turn uses the heuristic.
        self._thread = DaemonThreads(1, "rerank")
        self._rate = Rate()
        self._logged: set[str] = set()

    @property
    def id(self) -> str:
        """Identifies the model in cache keys."""
        return self._model.id if self._model is not None else "heuristic"

    def load(self) -> None:
        """See `Loadable`."""
        model: object = self._model
        if isinstance(model, Loadable):
            model.load()

    def applies(self, query: str) -> bool:
        """Whether there is a model that supports the language of the query."""
        return self._model is not None and not self._model.languages.isdisjoint({"*", language(query)})

    def rerank(self, query: str, results: Sequence[SearchResult], top_k: int | None = None) -> list[SearchResult]:
        """The best `top_k` results (None: all), best first, with `rerank_score`. Blocking, without a time limit."""
        _check(top_k)
        model = self._model_for(query)
        if model is None or not results:
            return _by_heuristic(query, results)[:top_k]
        best, scores = self._candidates(results), list[float]()
        _read(model, query, best[: self.max_candidates], math.inf, scores, self._rate)
        return self._ordered(query, best, scores)[:top_k]

    async def rerank_async(
        self,
        query: str,
        results: Sequence[SearchResult],
        top_k: int | None = None,
        timeout: float = TIMEOUT,  # noqa: ASYNC109 - the model checks the clock itself
    ) -> list[SearchResult]:
        """As `rerank`, in a thread, with a time limit in seconds for the model."""
        return (await self.attempt(query, results, top_k, timeout))[0]

    async def attempt(
        self,
        query: str,
        results: Sequence[SearchResult],
        top_k: int | None = None,
        timeout: float = TIMEOUT,  # noqa: ASYNC109 - the model checks the clock itself
    ) -> tuple[list[SearchResult], bool]:
        """As `rerank_async`, and whether the model has read all candidates. Returns in time in any case."""
        _check(top_k)
        model = self._model_for(query)
        if model is None or not results:
            return _by_heuristic(query, results)[:top_k], False
        best, scores, deadline = self._candidates(results), list[float](), time.monotonic() + timeout
        most = best[: self.max_candidates]
        reading = asyncio.get_running_loop().run_in_executor(
            self._thread, _read, model, query, most, deadline, scores, self._rate
        )
        try:
            async with asyncio.timeout(timeout):
                await reading
        except TimeoutError:
            pass  # the scores so far are used
        except Exception as error:
            self._log_once(logging.WARNING, f"The reranker {model.id} failed: {error}")
            raise
        done = tuple(scores)  # the thread may still add to them
        return self._ordered(query, best, done)[:top_k], len(done) == len(most)

    def _model_for(self, query: str) -> Reranker | None:
        if self._model is None:
            self._log_once(
                logging.INFO,
                f"No cross-encoder is in use: a heuristic reranks the results. To get one: dtrag models pull {MODEL}",
            )
        return self._model if self.applies(query) else None

    def _candidates(self, results: Sequence[SearchResult]) -> list[SearchResult]:
        return sorted(results, key=lambda result: (-result.hybrid_score, result.chunk_id))

    def _ordered(self, query: str, best: Sequence[SearchResult], scores: Sequence[float]) -> list[SearchResult]:
        """The passages in the order of `scores`, which belong to the first of `best`; the others follow in their order.

        Without scores the heuristic decides.
        """
        if len(scores) < min(len(best), self.max_candidates):
            self._log_once(
                logging.WARNING, f"The reranker {self.id} was not finished in time: it did not read every candidate."
            )
        if not scores:
            return _by_heuristic(query, best)
        # Shares of the lowest score of the model.
        behind = [min(scores) * min(1.0, max(0.0, result.hybrid_score)) for result in best[len(scores) :]]
        return _sorted(best, [*scores, *behind])

    def _log_once(self, level: int, message: str) -> None:
        """Log each message only once, since every search without the model would repeat it."""
        if message not in self._logged and len(self._logged) < MAX_CANDIDATES:
            self._logged.add(message)
            _LOG.log(level, message)


class Rate:
    """Measured seconds per passage of a model; the latest slice counts for half."""

    def __init__(self) -> None:
        self._seconds: float | None = None

    def fitting(self, seconds: float) -> int:
        """Passages to read next in the remaining seconds: half of those that fit, at most `SLICE`.

        Half, so that little is lost when they take longer than expected.
        """
        if seconds <= 0:
            return 0  # the call may have waited for its turn until now
        if math.isinf(seconds):
            return SLICE
        if self._seconds is None:
            return FIRST_SLICE
        most = SAFETY * seconds / max(1e-6, self._seconds)
        return min(SLICE, math.ceil(int(most) / 2)) if most < 2 * SLICE else SLICE

    def forget(self) -> None:
        """Expect less time per passage after nothing could be read, so that a model that was slow is tried again."""
        if self._seconds is not None:
            self._seconds *= FORGETTING

    def measured(self, passages: int, seconds: float) -> None:
        """Record that these passages took this many seconds."""
        latest = seconds / passages
        self._seconds = latest if self._seconds is None else (self._seconds + latest) / 2


def _read(  # noqa: PLR0917 - `run_in_executor` takes positions only
    model: Reranker, query: str, results: Sequence[SearchResult], deadline: float, done: list[float], rate: Rate
) -> None:
    """Append the scores of the results to `done`, slice by slice, until the deadline."""
    while len(done) < len(results):
        started = time.monotonic()
        part = results[len(done) : len(done) + rate.fitting(deadline - started)]
        if not part:
            if not done:
                rate.forget()
            return
        scores = model.score(query, [_text(result) for result in part], deadline)
        elapsed = time.monotonic() - started
        if scores is None:
            rate.measured(1, elapsed)  # the number of passages that were read is unknown
            return
        rate.measured(len(part), elapsed)
        if len(scores) != len(part) or not all(0 <= score <= 1 for score in scores):
            raise ValueError(f"the reranker {model.id} returned a score outside 0 to 1, or too few scores")
        done.extend(scores)


def _by_heuristic(query: str, results: Sequence[SearchResult]) -> list[SearchResult]:
    return _sorted(results, heuristic_scores(query, results))


def _sorted(results: Sequence[SearchResult], scores: Sequence[float]) -> list[SearchResult]:
    scored = [replace(result, rerank_score=score) for result, score in zip(results, scores, strict=True)]
    return sorted(scored, key=lambda result: (-result.rerank_score, -result.hybrid_score, result.chunk_id))


def _text(result: SearchResult) -> str:
    """The passage with its title, as in the index."""
    return result.text if not result.title or result.text.startswith(result.title) else f"{result.title}\n{result.text}"


def _check(top_k: int | None) -> None:
    if top_k is not None and top_k < 1:
        raise InvalidInput("top_k must be at least 1, or None for all.")
