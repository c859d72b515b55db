"""The result cache: size, time to live, keys, and one search for equal requests at the same time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.core.documents import SearchMetrics, SearchResult
from dtrag.errors import InvalidInput
from dtrag.retrieval.cache import PASSAGES_PER_ENTRY, ResultCache, SearchOutcome, cache_key

RESULTS = [SearchResult("a:0", "A kettle.", taxonomy_path=["AI"], metadata={"author": "Kim"})]
DONE = SearchMetrics(mode="lexical", bm25_candidates=7)


@dataclass
class Clock:
    """A clock that only the test advances."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Searches:
    """A search that waits for its gate, and counts its starts and cancellations."""

    metrics: SearchMetrics = DONE
    error: Exception | None = None
    started: int = 0
    cancelled: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self) -> SearchOutcome:
        self.started += 1
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error
        return RESULTS, self.metrics


async def _started(searches: Searches, number: int = 1) -> None:
    while searches.started < number:  # noqa: ASYNC110 - one turn of the loop is enough
        await asyncio.sleep(0)


def test_search_008_the_fourth_list_in_a_cache_of_three_evicts_the_first() -> None:
    cache = ResultCache(max_size=3, ttl_seconds=3600)
    for number in (1, 2, 3, 4):
        cache.put(f"query{number}", {}, 10, RESULTS)
    assert cache.get("query1", {}, 10) is None
    assert cache.get("query2", {}, 10) == RESULTS
    assert cache.get("query4", {}, 10) == RESULTS
    assert cache.stats()["size"] == 3


def test_a_recently_used_list_is_not_evicted() -> None:
    cache = ResultCache(max_size=2)
    cache.put("one", {}, 10, RESULTS)
    cache.put("two", {}, 10, RESULTS)
    assert cache.get("one", {}, 10)
    cache.put("three", {}, 10, RESULTS)
    assert cache.get("two", {}, 10) is None
    assert cache.get("one", {}, 10)


def test_search_008_results_expire_after_their_creation_and_not_after_their_last_use() -> None:
    clock = Clock()
    cache = ResultCache(ttl_seconds=10, clock=clock)
    cache.put("query", {}, 10, RESULTS)
    clock.now = 9.9
    assert cache.get("query", {}, 10) == RESULTS
    clock.now = 10.0
    assert cache.get("query", {}, 10) is None
    cache.put("query", {}, 10, RESULTS)
    clock.now = 19.0
    assert cache.get("query", {}, 10) == RESULTS


def test_search_008_expired_results_are_deleted_without_a_lookup() -> None:
    clock = Clock()
    cache = ResultCache(ttl_seconds=10, clock=clock)
    for number in range(5):
        clock.now = number
        cache.put(f"query{number}", {}, 10, RESULTS)
    clock.now = 12
    assert cache.stats()["size"] == 2
    clock.now = 30
    cache.put("new", {}, 10, RESULTS)
    assert cache.stats()["size"] == 1


def test_the_statistics_count_hits_and_misses() -> None:
    cache = ResultCache(max_size=5)
    assert cache.stats() == {"size": 0, "max_size": 5, "hits": 0, "misses": 0, "hit_rate": 0.0}
    cache.get("query", {}, 10)
    cache.put("query", {}, 10, RESULTS)
    for _ in range(3):
        cache.get("query", {}, 10)
    assert cache.stats() == {"size": 1, "max_size": 5, "hits": 3, "misses": 1, "hit_rate": 0.75}
    cache.clear()
    assert cache.get("query", {}, 10) is None


def test_cached_results_cannot_be_changed_from_outside() -> None:
    cache = ResultCache()
    mine = list(RESULTS)
    cache.put("query", {}, 10, mine)
    mine.clear()
    first = cache.get("query", {}, 10)
    assert first == RESULTS
    first[0].taxonomy_path.append("changed")
    metadata: Any = first[0].metadata
    metadata["author"] = "changed"
    first.append(first[0])
    assert cache.get("query", {}, 10) == RESULTS


DIFFERENT: list[tuple[str, dict[str, Any], int, Hashable]] = [
    ("query", {}, 10, ()),
    ("Query", {}, 10, ()),
    ("query", {}, 11, ()),
    ("query", {"content_types": ["text/plain"]}, 10, ()),
    ("query", {"content_types": ["text/plain", "text/html"]}, 10, ()),
    ("query", {"metadata": {"year": 1}}, 10, ()),
    ("query", {"metadata": {"year": True}}, 10, ()),
    ("query", {"metadata": {"year": "1"}}, 10, ()),
    ("query", {"canonical_in": [["A", "B"]]}, 10, ()),
    ("query", {"canonical_in": [["A"], ["B"]]}, 10, ()),
    ("query", {}, 10, ("generation", 2)),
]


def test_different_searches_have_different_keys() -> None:
    assert len({cache_key(*arguments) for arguments in DIFFERENT}) == len(DIFFERENT)


def test_the_order_of_filters_makes_no_difference() -> None:
    one, other = {"date_from": "2025-01-01", "metadata": {"a": 1, "b": 2}}, {"metadata": {"b": 2, "a": 1}}
    assert cache_key("query", one, 10) == cache_key("query", other | {"date_from": "2025-01-01"}, 10)
    assert cache_key("query", None, 10) == cache_key("query", {}, 10)


def test_a_long_list_counts_as_several_entries() -> None:
    cache = ResultCache(max_size=10)
    cache.put("short", {}, 10, RESULTS)
    cache.put("long", {}, 1000, RESULTS * (10 * PASSAGES_PER_ENTRY))
    assert cache.get("short", {}, 10) is None
    assert cache.get("long", {}, 1000) is not None
    cache.put("longer", {}, 1000, RESULTS * (10 * PASSAGES_PER_ENTRY + 1))
    assert cache.get("longer", {}, 1000) is None
    assert cache.get("long", {}, 1000) is not None


@pytest.mark.parametrize("options", [{"max_size": size} for size in (0, -1, 1.5, "9", None, True)])
def test_an_invalid_size_is_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="size of the cache"):
        ResultCache(**options)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), "9", None, True])
def test_an_invalid_time_to_live_is_rejected(seconds: Any) -> None:
    with pytest.raises(InvalidInput, match="time to live"):
        ResultCache(ttl_seconds=seconds)


async def test_a_hundred_equal_requests_at_once_run_one_search() -> None:
    cache, searches = ResultCache(), Searches()
    waiting = [asyncio.create_task(cache.get_or_search("key", searches)) for _ in range(100)]
    await _started(searches)
    searches.gate.set()
    outcomes = await asyncio.gather(*waiting)
    assert searches.started == 1
    assert [hit for _, _, hit in outcomes] == [False] + [True] * 99
    assert all(results == RESULTS and metrics == DONE for results, metrics, _ in outcomes)
    assert len({id(results) for results, _, _ in outcomes}) == 100
    assert cache.stats() == {"size": 1, "max_size": 1000, "hits": 99, "misses": 1, "hit_rate": 0.99}
    assert (await cache.get_or_search("key", searches))[2] is True
    assert searches.started == 1


async def test_different_searches_do_not_wait_for_each_other() -> None:
    cache, one, other = ResultCache(), Searches(), Searches()
    waiting = asyncio.create_task(cache.get_or_search("one", one))
    await _started(one)
    other.gate.set()
    assert (await cache.get_or_search("other", other))[2] is False
    one.gate.set()
    await waiting


async def test_the_first_caller_can_be_cancelled_and_the_others_get_their_results() -> None:
    cache, searches = ResultCache(), Searches()
    first, *others = [asyncio.create_task(cache.get_or_search("key", searches)) for _ in range(3)]
    await _started(searches)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    searches.gate.set()
    assert [results for results, _, _ in await asyncio.gather(*others)] == [RESULTS, RESULTS]
    assert (searches.started, searches.cancelled) == (1, 0)


async def test_a_search_without_waiting_callers_is_cancelled_and_the_next_one_starts_again() -> None:
    cache, searches = ResultCache(), Searches()
    waiting = [asyncio.create_task(cache.get_or_search("key", searches)) for _ in range(2)]
    await _started(searches)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    late = asyncio.create_task(cache.get_or_search("key", searches))
    await _started(searches, 2)
    searches.gate.set()
    assert (await late)[2] is False
    assert (searches.started, searches.cancelled) == (2, 1)


async def test_an_error_reaches_all_callers_and_is_not_cached() -> None:
    cache, searches = ResultCache(), Searches(error=RuntimeError("down"))
    waiting = [asyncio.create_task(cache.get_or_search("key", searches)) for _ in range(3)]
    await _started(searches)
    searches.gate.set()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert {str(outcome) for outcome in outcomes} == {"down"}
    searches.error = None
    assert (await cache.get_or_search("key", searches))[0] == RESULTS
    assert searches.started == 2


async def test_degraded_results_are_not_cached() -> None:
    cache, searches = ResultCache(), Searches(metrics=SearchMetrics(degraded=("vector",)))
    searches.gate.set()
    assert (await cache.get_or_search("key", searches))[1].degraded == ("vector",)
    assert (await cache.get_or_search("key", searches))[2] is False
    assert cache.stats()["size"] == 0


async def test_a_search_in_progress_when_the_cache_is_cleared_is_not_cached() -> None:
    cache, searches = ResultCache(), Searches()
    waiting = asyncio.create_task(cache.get_or_search("key", searches))
    await _started(searches)
    cache.clear()
    searches.gate.set()
    assert (await waiting)[0] == RESULTS
    assert cache.stats()["size"] == 0


def test_threads_share_the_cache() -> None:
    cache = ResultCache(max_size=8)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(300):
                cache.put(f"query{(number + step) % 12}", {}, 10, RESULTS)
                assert cache.get(f"query{step % 12}", {}, 10) in (None, RESULTS)
        except BaseException as error:  # noqa: BLE001 - passed to the thread of the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    stats = cache.stats()
    assert stats["size"] == 8
    assert stats["hits"] + stats["misses"] == 4 * 300


async def _search_once(cache: ResultCache) -> bool:
    searches = Searches()
    searches.gate.set()
    return (await cache.get_or_search("key", searches))[2]


def test_event_loops_share_results_but_not_searches_in_progress() -> None:
    cache = ResultCache()
    with asyncio.Runner() as runner:
        assert runner.run(_search_once(cache)) is False
    with asyncio.Runner() as runner:
        assert runner.run(_search_once(cache)) is True


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 3)), max_size=40), st.integers(1, 4))
def test_it_never_exceeds_its_size_or_returns_expired_results(steps: list[tuple[str, int]], size: int) -> None:
    clock = Clock()
    cache = ResultCache(size, 5, clock)
    created: dict[str, float] = {}
    for query, later in steps:
        clock.now += later
        results = cache.get(query, {}, 1)
        assert results is None or clock.now - created[query] < 5
        if results is None:
            cache.put(query, {}, 1, RESULTS)
            created[query] = clock.now
            assert cache.get(query, {}, 1) == RESULTS
        assert cache.stats()["size"] <= size
