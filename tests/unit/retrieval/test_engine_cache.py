"""The result cache of an engine: which searches are equal, and which results are never cached."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dtrag.core.access.scope import Scope
from dtrag.core.taxonomy.tree import ROOT, Node, Taxonomy
from tests.toy import ToyEmbedder
from tests.unit.retrieval.small import EVERYTHING, engine_on, small_index


async def test_a_repeated_search_is_answered_by_the_cache_with_its_own_time() -> None:
    embedder = ToyEmbedder()
    index = small_index(embedder)
    engine = engine_on(index, embedder, scope=EVERYTHING)
    first, missed = await engine.search("kettle valve", 3, {}, correlation_id="one")
    index.calls.clear()
    again, hit = await engine.search("kettle valve", 3, None, correlation_id="two")
    assert again == first
    assert again is not first
    assert index.calls == ["snapshot"]
    assert (missed.cache_hit, missed.correlation_id) == (False, "one")
    assert (hit.cache_hit, hit.correlation_id, hit.mode) == (True, "two", "hybrid")
    assert hit.bm25_time == hit.vector_time == hit.embedding_time == hit.fusion_time == hit.fetch_time == 0.0
    assert hit.total_time > 0
    assert (hit.bm25_candidates, hit.vector_candidates, hit.final_results) == (3, 5, 3)


@pytest.mark.parametrize(
    "change",
    [
        {"query": "kettle Valve"},
        {"top_k": 4},
        {"filters": {"taxonomy_paths": [["AI"]]}},
        {"filters": {"metadata": {"year": 1}}},
        {"bm25_candidates": 7},
        {"vector_candidates": 7},
        {"mode": "lexical"},
        {"scope": Scope(frozenset({2, 3}))},
        {"highlight": False},
        {"explain": True},
    ],
)
async def test_a_different_search_is_not_answered_by_the_cache(change: dict[str, Any]) -> None:
    engine = engine_on(small_index(), filter_keys={"year"})
    arguments: dict[str, Any] = {"query": "kettle valve", "top_k": 3, "scope": EVERYTHING}
    await engine.search(**arguments)
    for _ in range(2 if "explain" in change else 1):
        assert (await engine.search(**(arguments | change)))[1].cache_hit is False
    assert (await engine.search(**arguments))[1].cache_hit is True


async def test_the_next_search_sees_a_write_a_new_taxonomy_and_a_rebuild() -> None:
    index = small_index()
    engine = engine_on(index, scope=EVERYTHING)
    hr = {"canonical_in": [["HR"]]}
    assert [result.chunk_id for result in (await engine.search("valve", filters=hr))[0]] == ["d"]
    index.settings = {"generation": 2}
    assert (await engine.search("valve", filters=hr))[1].cache_hit is False
    assert (await engine.search("valve", filters=hr))[1].cache_hit is True
    index.taxonomy = Taxonomy.of("2", [Node(2, ROOT, "HR", "hr")])
    results, metrics = await engine.search("valve", filters=hr)
    assert ({result.chunk_id for result in results}, metrics.cache_hit) == ({"a", "b"}, False)
    index.settings["rebuilding"] = True
    assert (await engine.search("valve", filters=hr))[1].cache_hit is False


async def test_a_hundred_equal_searches_at_once_run_once() -> None:
    index = small_index()
    index.gates["lexical"] = asyncio.Event()
    engine = engine_on(index, scope=EVERYTHING)
    waiting = [asyncio.create_task(engine.search("kettle valve", 3)) for _ in range(100)]
    while "lexical" not in index.calls:  # noqa: ASYNC110 - a turn of the loop is enough
        await asyncio.sleep(0)
    waiting[0].cancel()
    index.gates["lexical"].set()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(outcomes[0], asyncio.CancelledError)
    assert all(isinstance(outcome, tuple) and len(outcome[0]) == 3 for outcome in outcomes[1:])
    assert (index.calls.count("lexical"), index.calls.count("fetch")) == (1, 1)


async def test_a_degraded_search_is_not_cached() -> None:
    embedder = ToyEmbedder()
    index = small_index(embedder)
    engine = engine_on(index, embedder, scope=EVERYTHING)
    index.broken["lexical"] = OSError("gone")
    assert (await engine.search("kettle"))[1].degraded == ("lexical",)
    del index.broken["lexical"]
    assert (await engine.search("kettle"))[1].degraded == ()


async def test_results_expire_by_the_clock_of_the_engine() -> None:
    now = [0.0]
    engine = engine_on(small_index(), scope=EVERYTHING, cache_ttl=10, clock=lambda: now[0])
    await engine.search("kettle")
    now[0] = 9
    assert (await engine.search("kettle"))[1].cache_hit is True
    now[0] = 11
    assert (await engine.search("kettle"))[1].cache_hit is False
