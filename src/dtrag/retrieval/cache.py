"""Results of searches that were made already, and one search for many who ask the same at once.

The cache itself knows nothing of freshness beyond its time to live: the engine puts the generation of the index into
the key, so that what was found before a write is never found again after it.
"""

from __future__ import annotations

import asyncio
import copy
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dtrag.core.documents import SearchMetrics, SearchResult
from dtrag.errors import InvalidInput

PASSAGES_PER_ENTRY = 20
"""On average: lists of a thousand passages must not make a cache of a thousand lists a gigabyte."""

Found = tuple[Sequence[SearchResult], SearchMetrics]
Search = Callable[[], Coroutine[Any, Any, Found]]


@dataclass(frozen=True, slots=True)
class _Entry:
    results: tuple[SearchResult, ...]
    metrics: SearchMetrics
    born: float

    def copied(self) -> tuple[list[SearchResult], SearchMetrics]:
        return [_copy(result) for result in self.results], self.metrics


@dataclass(slots=True, eq=False)
class _Flight:
    """A search under way, and how many wait for it."""

    task: asyncio.Task[_Entry]
    waiting: int = 0


class ResultCache:
    """At most `max_size` lists of results, the least recently used goes first; each lives `ttl_seconds` from its birth.

    Safe to use from several threads. What is kept cannot be changed from outside: lists and their results are copied
    on the way in and out. Raises `InvalidInput` for sizes and times that are not above 0.
    """

    def __init__(
        self, max_size: int = 1000, ttl_seconds: float = 3600.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if isinstance(max_size, bool) or not isinstance(max_size, int) or max_size < 1:
            raise InvalidInput("The size of the cache must be a whole number of at least 1.")
        if isinstance(ttl_seconds, bool) or not isinstance(ttl_seconds, (int, float)) or not ttl_seconds > 0:
            raise InvalidInput("The time to live of cached results must be a number of seconds above 0.")
        self.max_size = max_size
        self.ttl_seconds = float(ttl_seconds)
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()  # the least recently used first
        self._born: dict[Hashable, float] = {}  # the oldest first
        self._flights: dict[Hashable, _Flight] = {}
        self._passages = 0
        self._hits = 0
        self._misses = 0
        self._cleared = 0

    def get(
        self, query: str, filters: Mapping[str, Any] | None, top_k: int, context: Hashable = ()
    ) -> list[SearchResult] | None:
        """The results of this very search, in a list of your own; None when there are none, or no more."""
        entry = self._look_up(cache_key(query, filters, top_k, context))
        return None if entry is None else entry.copied()[0]

    def put(
        self,
        query: str,
        filters: Mapping[str, Any] | None,
        top_k: int,
        results: Sequence[SearchResult],
        context: Hashable = (),
    ) -> None:
        """Keep the results of a search. `context` is all else that they depend on."""
        self._keep(cache_key(query, filters, top_k, context), self._entry((results, SearchMetrics())))

    async def once(self, key: Hashable, search: Search) -> tuple[list[SearchResult], SearchMetrics, bool]:
        """What is kept under the key, or what `search` finds; and whether no search was made for this caller.

        Who asks while the same search is under way waits for it. It goes on when its first caller is cancelled, as
        long as anybody waits. Its error is everybody's, and is not kept; nor are results that did without a stage.
        """
        kept = self._look_up(key)
        if kept is not None:
            return *kept.copied(), True
        flight, leads = self._board(key, search)
        try:
            entry = await asyncio.shield(flight.task)
        finally:
            self._leave(key, flight)
        if not leads:
            with self._lock:
                self._hits, self._misses = self._hits + 1, self._misses - 1
        return *entry.copied(), not leads

    def clear(self) -> None:
        """Forget all results; searches under way will not be kept, either."""
        with self._lock:
            self._entries.clear()
            self._born.clear()
            self._passages = 0
            self._cleared += 1

    def stats(self) -> dict[str, float]:
        """size, max_size, hits, misses, and hit_rate in [0, 1]."""
        with self._lock:
            self._expire()
            asked = self._hits + self._misses
            return {
                "size": len(self._entries),
                "max_size": self.max_size,
                "hits": self._hits,
                "misses": self._misses,
                "hit_rate": self._hits / asked if asked else 0.0,
            }

    def _entry(self, found: Found) -> _Entry:
        results, metrics = found
        return _Entry(tuple(_copy(result) for result in results), metrics, self._clock())

    def _look_up(self, key: Hashable) -> _Entry | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and self._clock() - entry.born >= self.ttl_seconds:
                self._drop(key)
                entry = None
            if entry is None:
                self._misses += 1
                return None
            self._entries.move_to_end(key)
            self._hits += 1
            return entry

    def _keep(self, key: Hashable, entry: _Entry, cleared: int | None = None) -> None:
        with self._lock:
            if cleared not in {None, self._cleared}:
                return
            if key in self._entries:
                self._drop(key)
            self._expire()
            self._entries[key] = entry
            self._born[key] = entry.born
            self._passages += len(entry.results)
            while len(self._entries) > self.max_size or self._passages > self.max_size * PASSAGES_PER_ENTRY:
                self._drop(next(iter(self._entries)))

    def _expire(self) -> None:
        now = self._clock()
        while self._born:
            key, born = next(iter(self._born.items()))
            if now - born < self.ttl_seconds:
                return
            self._drop(key)

    def _drop(self, key: Hashable) -> None:
        self._passages -= len(self._entries.pop(key).results)
        del self._born[key]

    def _board(self, key: Hashable, search: Search) -> tuple[_Flight, bool]:
        """The flight to wait for, and whether it began just now. It belongs to the event loop that it began on."""
        place = (asyncio.get_running_loop(), key)
        with self._lock:
            flight = self._flights.get(place)
            leads = flight is None
            if flight is None:
                flight = self._flights[place] = _Flight(asyncio.create_task(self._fly(key, search, self._cleared)))
                flight.task.add_done_callback(_looked_at)
            flight.waiting += 1
            return flight, leads

    def _leave(self, key: Hashable, flight: _Flight) -> None:
        """One waits no more; the last one ends the search, if it is not over."""
        place = (asyncio.get_running_loop(), key)
        with self._lock:
            flight.waiting -= 1
            if (flight.waiting == 0 or flight.task.done()) and self._flights.get(place) is flight:
                del self._flights[place]
        if flight.waiting == 0:
            flight.task.cancel()

    async def _fly(self, key: Hashable, search: Search, cleared: int) -> _Entry:
        entry = self._entry(await search())
        if not entry.metrics.degraded:
            self._keep(key, entry, cleared)
        return entry


def cache_key(query: str, filters: Mapping[str, Any] | None, top_k: int, context: Hashable = ()) -> Hashable:
    """One key for equal searches: the order of the filters' keys does not matter, the type of their values does."""
    return query, _frozen(filters or {}), top_k, context


def _frozen(value: object) -> Hashable:
    if isinstance(value, Mapping):
        return tuple(sorted(((str(key), _frozen(item)) for key, item in value.items()), key=lambda pair: pair[0]))
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(item) for item in value)
    return type(value).__name__, value if isinstance(value, Hashable) else repr(value)


def _copy(result: SearchResult) -> SearchResult:
    return replace(result, taxonomy_path=list(result.taxonomy_path), metadata=copy.deepcopy(dict(result.metadata)))


def _looked_at(task: asyncio.Task[_Entry]) -> None:
    """An error that nobody is left to be told is not reported as forgotten."""
    if not task.cancelled():
        task.exception()
