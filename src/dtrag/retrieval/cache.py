"""A cache of search results that also runs equal searches that arrive at the same time only once.

The cache itself knows only a time to live. The engine puts the generation of the index into the key, so that results
from before a write are never returned after it.
"""

from __future__ import annotations

import asyncio
import copy
import math
import threading
import time
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cachetools import TTLCache

from dtrag.core.documents import SearchMetrics, SearchResult
from dtrag.errors import InvalidInput

PASSAGES_PER_ENTRY = 20
"""Passages that count as one entry of `max_size`: a longer list counts as several, so that lists of a thousand passages
do not make a cache of a thousand lists a gigabyte."""

_IMMUTABLE = frozenset({str, int, float, bool, type(None)})

SearchOutcome = tuple[Sequence[SearchResult], SearchMetrics]
Search = Callable[[], Coroutine[Any, Any, SearchOutcome]]


@dataclass(frozen=True, slots=True)
class _Entry:
    results: tuple[SearchResult, ...]
    metrics: SearchMetrics

    def copied(self) -> tuple[list[SearchResult], SearchMetrics]:
        return [_copy(result) for result in self.results], self.metrics

    @property
    def size(self) -> int:
        return max(1, math.ceil(len(self.results) / PASSAGES_PER_ENTRY))


@dataclass(slots=True, eq=False)
class _RunningSearch:
    """A search in progress, and the number of callers that wait for it."""

    task: asyncio.Task[SearchOutcome]
    entry: _Entry | None = None
    waiting: int = 0


class ResultCache:
    """At most `max_size` result lists; the least recently used is evicted first, and each expires after `ttl_seconds`.

    Thread-safe. Cached lists cannot be changed from outside: lists and results are copied on the way in and out.
    Raises `InvalidInput` for sizes and times that are not positive.
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
        self._entries: TTLCache[Hashable, _Entry] = TTLCache(
            max_size, self.ttl_seconds, timer=clock, getsizeof=lambda entry: entry.size
        )
        self._running: dict[Hashable, _RunningSearch] = {}
        self._hits = 0
        self._misses = 0
        self._times_cleared = 0

    def get(
        self, query: str, filters: Mapping[str, Any] | None, top_k: int, context: Hashable = ()
    ) -> list[SearchResult] | None:
        """A copy of the cached results of this search; None when there are none, or they have expired."""
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
        """Cache the results of a search. `context` is everything else that they depend on."""
        with self._lock:
            entry = _Entry(tuple(_copy(result) for result in results), SearchMetrics())
            self._store(cache_key(query, filters, top_k, context), entry)

    def holds(self, key: Hashable) -> bool:
        """Whether `get_or_search` would return without a search of its own; not counted as a hit or a miss."""
        with self._lock:
            return key in self._entries or (asyncio.get_running_loop(), key) in self._running

    async def get_or_search(self, key: Hashable, search: Search) -> tuple[list[SearchResult], SearchMetrics, bool]:
        """The cached results, or those of `search`; and whether this caller was spared a search.

        Callers that ask while the same search is running wait for it. It continues when its first caller is cancelled,
        as long as another one waits. Its error reaches all of them and is not cached; nor are results that had to do
        without a stage, or that are fewer because the search was slow.
        """
        entry = self._look_up(key)
        if entry is not None:
            return *entry.copied(), True
        place = (asyncio.get_running_loop(), key)  # a task belongs to the event loop that it was created on
        with self._lock:
            running = self._running.get(place)
            is_first = running is None
            if running is None:
                running = self._running[place] = _RunningSearch(asyncio.create_task(search()))
                running.task.add_done_callback(self._when_done(key, running))
            running.waiting += 1
        try:
            await asyncio.shield(running.task)
        finally:
            self._leave(place, running)
        if not is_first:
            with self._lock:
                self._hits, self._misses = self._hits + 1, self._misses - 1
        return *(running.entry or _entry(running.task)).copied(), not is_first

    def clear(self) -> None:
        """Delete all results; those of searches in progress will not be cached either."""
        with self._lock:
            self._entries.clear()
            self._times_cleared += 1

    def stats(self) -> dict[str, float]:
        """size, max_size, hits, misses, and hit_rate in [0, 1]."""
        with self._lock:
            self._entries.expire()
            requests = self._hits + self._misses
            return {
                "size": len(self._entries),
                "max_size": self.max_size,
                "hits": self._hits,
                "misses": self._misses,
                "hit_rate": self._hits / requests if requests else 0.0,
            }

    def _look_up(self, key: Hashable) -> _Entry | None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                self._misses += 1
            else:
                self._hits += 1
            return entry

    def _store(self, key: Hashable, entry: _Entry) -> None:
        if entry.size <= self.max_size:
            self._entries[key] = entry
        else:
            self._entries.pop(key, None)

    def _when_done(self, key: Hashable, running: _RunningSearch) -> Callable[[asyncio.Task[SearchOutcome]], None]:
        """What happens when the search is done, before its waiters resume: complete results are cached."""
        times_cleared = self._times_cleared

        def done(task: asyncio.Task[SearchOutcome]) -> None:
            # `exception()` also marks an error as retrieved, so that asyncio does not warn without a waiting caller.
            if task.cancelled() or task.exception() is not None:
                return
            running.entry = _entry(task)
            with self._lock:
                metrics = running.entry.metrics
                is_complete = not metrics.degraded and not (metrics.top_k is not None and metrics.top_k.reduced)
                if times_cleared == self._times_cleared and is_complete:
                    self._store(key, running.entry)

        return done

    def _leave(self, place: Hashable, running: _RunningSearch) -> None:
        """One caller stops waiting; after the last one the search is cancelled, unless it is done."""
        with self._lock:
            running.waiting -= 1
            if (running.waiting == 0 or running.task.done()) and self._running.get(place) is running:
                del self._running[place]
        if running.waiting == 0:
            running.task.cancel()


def cache_key(query: str, filters: Mapping[str, Any] | None, top_k: int, context: Hashable = ()) -> Hashable:
    """One key for equal searches. The order of filter keys does not matter, the types of their values do."""
    return query, _hashable(filters or {}), top_k, context


def _hashable(value: object) -> Hashable:
    if isinstance(value, Mapping):
        return tuple(sorted(((str(key), _hashable(item)) for key, item in value.items()), key=lambda pair: pair[0]))
    if isinstance(value, (list, tuple)):
        return tuple(_hashable(item) for item in value)
    return type(value).__name__, value if isinstance(value, Hashable) else repr(value)


def _entry(task: asyncio.Task[SearchOutcome]) -> _Entry:
    """The outcome of a search that is done, of which each caller gets a copy, and no caller the original."""
    results, metrics = task.result()
    return _Entry(tuple(results), metrics)


def _copy(result: SearchResult) -> SearchResult:
    """A result that shares nothing mutable; three times as fast as `replace` and `deepcopy`."""
    metadata = dict(result.metadata)
    if not _IMMUTABLE.issuperset(map(type, metadata.values())):
        metadata = copy.deepcopy(metadata)
    return result.with_own(list(result.taxonomy_path), metadata)
