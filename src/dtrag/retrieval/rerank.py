"""Reading query and passage together: by a cross-encoder where there is one, else the heuristic of the contract.

The heuristic is there for conformity: measured on our collections it changes nDCG@10 by -.003 to +.002.
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
from dtrag.core.text.analysis import language, normalise, terms
from dtrag.errors import InvalidInput
from dtrag.ports import Loadable, Reranker

MODEL = "cross-encoder/ms-marco-MiniLM-L-6-v2"
MAX_CANDIDATES = 50
"""Passages that a model reads: each costs a run of the model, and what stands below rank 50 is rarely the answer."""
SLICE = 10
"""Passages that are read between two looks at the clock: the best first, so that what a slow machine gets to by the
deadline is what matters most. With six layers a passage of 150 words takes about 60 ms on one core."""
FIRST_SLICE = 2
"""Passages of the first slice while the model's rate is not known."""
SAFETY = 0.85
"""Share of the time that is left which a slice may be expected to take: rates of passages differ by their lengths."""
FORGETTING = 0.7
"""What the expected seconds of a passage are multiplied by when not one would fit."""
TIMEOUT = 0.5
"""Seconds that a search waits for the model when it names no limit of its own."""

_LOG = logging.getLogger(__name__)


def heuristic_scores(query: str, results: Sequence[SearchResult]) -> list[float]:
    """hybrid score * (1 + .2 overlap + .1 length + .1 diversity), in [0, 1], for each result.

    overlap: share of the query's terms that the passage holds, be it within a word. length: .7 below 50 characters, 1
    from 100 to 500, .8 above 1,000, else .9. diversity: (distinct sources + distinct categories) / 10, at most 1, the
    same for all.
    """
    asked = set(terms(query))
    sources, categories = {result.source_url for result in results}, {tuple(result.taxonomy_path) for result in results}
    shared = 1.0 + 0.1 * min(1.0, (len(sources) + len(categories)) / 10)
    return [
        min(1.0, max(0.0, result.hybrid_score) * (shared + 0.2 * _overlap(asked, result) + 0.1 * _length(result)))
        for result in results
    ]


def _overlap(asked: set[str], result: SearchResult) -> float:
    # Not by the passage's own terms: making those takes .1 ms for each, a third of a whole search for ten.
    text = normalise(result.text)
    return sum(term in text for term in asked) / len(asked) if asked else 0.0


def _length(result: SearchResult) -> float:
    characters = len(result.text)
    if characters < 50:
        return 0.7
    if characters > 1000:
        return 0.8
    return 1.0 if 100 <= characters <= 500 else 0.9


class CrossEncoderReranker:
    """Puts results in the order of a cross-encoder's scores.

    `model` does the reading. A name alone gives no model: the app finds the one that `DTRAG_RERANKER` names and hands
    it over. Without a model, for a query in a language that it does not speak, and when it has read nothing in time,
    the heuristic decides; what it did not get to stands behind what it has read. A model that fails raises: whoever
    searches knows how to do without.
    """

    def __init__(
        self, model_name: str = MODEL, *, model: Reranker | None = None, max_candidates: int = MAX_CANDIDATES
    ) -> None:
        if not 1 <= max_candidates <= MAX_CANDIDATES:
            raise InvalidInput(f"max_candidates must be from 1 to {MAX_CANDIDATES}.")
        self.model_name = model_name
        self.max_candidates = max_candidates
        self._model = model
        # A thread of its own: a slow model must not take the threads that the other parts of a search need. One only:
        # the model spreads over the cores itself, and who waits in vain for his turn has the heuristic.
        self._thread = DaemonThreads(1, "rerank")
        self._rate = Rate()
        self._said: set[str] = set()

    @property
    def id(self) -> str:
        """What tells the orders of one model from another's."""
        return self._model.id if self._model is not None else "heuristic"

    def load(self) -> None:
        """See `Loadable`."""
        model: object = self._model
        if isinstance(model, Loadable):
            model.load()

    def applies(self, query: str) -> bool:
        """Whether there is a model for this query: one that speaks its language."""
        return self._model is not None and not self._model.languages.isdisjoint({"*", language(query)})

    def rerank(self, query: str, results: Sequence[SearchResult], top_k: int | None = None) -> list[SearchResult]:
        """The best `top_k` results (None: all), best first, with their `rerank_score`. Blocking, without a limit."""
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
        timeout: float = TIMEOUT,  # noqa: ASYNC109 - the model looks at the clock itself
    ) -> list[SearchResult]:
        """As `rerank`, in a thread, with this many seconds for the model."""
        return (await self.attempt(query, results, top_k, timeout))[0]

    async def attempt(
        self,
        query: str,
        results: Sequence[SearchResult],
        top_k: int | None = None,
        timeout: float = TIMEOUT,  # noqa: ASYNC109 - the model looks at the clock itself
    ) -> tuple[list[SearchResult], bool]:
        """As `rerank_async`, and whether the model has read every candidate. Back in time, even if the model is not."""
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
            pass  # what is in `scores` by now counts
        except Exception as error:
            self._say(logging.WARNING, f"The reranker {model.id} failed: {error}")
            raise
        done = tuple(scores)  # the thread may still add to them
        return self._ordered(query, best, done)[:top_k], len(done) == len(most)

    def _model_for(self, query: str) -> Reranker | None:
        if self._model is None:
            self._say(
                logging.INFO,
                f"No cross-encoder is in use: results are reranked by rule. One for this: dtrag models pull {MODEL}",
            )
        return self._model if self.applies(query) else None

    def _candidates(self, results: Sequence[SearchResult]) -> list[SearchResult]:
        return sorted(results, key=lambda result: (-result.hybrid_score, result.chunk_id))

    def _ordered(self, query: str, best: Sequence[SearchResult], scores: Sequence[float]) -> list[SearchResult]:
        """In the order of the scores that the first of `best` have; the rest behind them, in the order they have.

        Where the model has read none, the heuristic decides.
        """
        if len(scores) < min(len(best), self.max_candidates):
            self._say(logging.WARNING, f"The reranker {self.id} was not done in time: it did not read every candidate.")
        if not scores:
            return _by_heuristic(query, best)
        # Shares of the least score that the model gave.
        behind = [min(scores) * min(1.0, max(0.0, result.hybrid_score)) for result in best[len(scores) :]]
        return _sorted(best, [*scores, *behind])

    def _say(self, level: int, message: str) -> None:
        """Once each: a search that goes on without the model is no news the second time."""
        if message not in self._said and len(self._said) < MAX_CANDIDATES:
            self._said.add(message)
            _LOG.log(level, message)


class Rate:
    """How many seconds a passage takes the model, measured as it reads; the latest slice counts for half."""

    def __init__(self) -> None:
        self._seconds: float | None = None

    def fitting(self, seconds: float) -> int:
        """How many passages to read next with so many seconds left: half of those that fit, at most `SLICE`.

        Half, so that little is lost when they take longer than expected.
        """
        if seconds <= 0:
            return 0  # it may have waited for its turn until then
        if math.isinf(seconds):
            return SLICE
        if self._seconds is None:
            return FIRST_SLICE
        most = SAFETY * seconds / max(1e-6, self._seconds)
        return min(SLICE, math.ceil(int(most) / 2)) if most < 2 * SLICE else SLICE

    def forget(self) -> None:
        """Nothing could be read: expect a little less next time, so that a model that was slow once is tried again."""
        if self._seconds is not None:
            self._seconds *= FORGETTING

    def measured(self, passages: int, seconds: float) -> None:
        """Passages were read in so many seconds."""
        latest = seconds / passages
        self._seconds = latest if self._seconds is None else (self._seconds + latest) / 2


def _read(  # noqa: PLR0917 - `run_in_executor` takes positions only
    model: Reranker, query: str, results: Sequence[SearchResult], deadline: float, done: list[float], rate: Rate
) -> None:
    """Add the scores of the results to `done`, slice by slice, as many as fit into the time."""
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
            rate.measured(1, elapsed)  # nobody knows how many of them were read
            return
        rate.measured(len(part), elapsed)
        if len(scores) != len(part) or not all(0 <= score <= 1 for score in scores):
            raise ValueError(f"the reranker {model.id} gave no score from 0 to 1 for some passage")
        done.extend(scores)


def _by_heuristic(query: str, results: Sequence[SearchResult]) -> list[SearchResult]:
    return _sorted(results, heuristic_scores(query, results))


def _sorted(results: Sequence[SearchResult], scores: Sequence[float]) -> list[SearchResult]:
    scored = [replace(result, rerank_score=score) for result, score in zip(results, scores, strict=True)]
    return sorted(scored, key=lambda result: (-result.rerank_score, -result.hybrid_score, result.chunk_id))


def _text(result: SearchResult) -> str:
    """The passage with its title, as it was indexed."""
    return result.text if not result.title or result.text.startswith(result.title) else f"{result.title}\n{result.text}"


def _check(top_k: int | None) -> None:
    if top_k is not None and top_k < 1:
        raise InvalidInput("top_k must be at least 1, or None for all.")
