"""What is asked of a search: odd queries are queries, bad arguments are refused with a sentence."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dtrag import current_app
from dtrag.core.access.scope import Scope
from dtrag.errors import InvalidInput, NoActiveApp
from dtrag.retrieval.engine import MAX_QUERY, MAX_TOP_K, MODES, HybridSearchEngine
from tests.toy import ToyEmbedder
from tests.unit.retrieval.small import EVERYTHING, engine_on, small_index


@pytest.mark.parametrize("query", ["", " ", "\n\t\u3000", "\x00", "\ud800"])
async def test_a_blank_query_finds_nothing_and_asks_nobody(query: str) -> None:
    index = small_index()
    results, metrics = await engine_on(index).search(query, scope=EVERYTHING, mode="lexical")
    assert (results, metrics.mode, metrics.final_results) == ([], "lexical", 0)
    assert index.calls == []


@pytest.mark.parametrize(
    "query", ["???", "👩‍🔬", "' OR 1=1 --", "%", "\\", "& | ! <->", ":*", "the of and", "kettle\x00valve\ud83d"]
)
async def test_odd_queries_are_searched_like_any_other(query: str) -> None:
    embedder = ToyEmbedder(languages=frozenset({"*"}))
    for mode in MODES:
        results, metrics = await engine_on(small_index(embedder), embedder).search(query, scope=EVERYTHING, mode=mode)
        assert len(results) == metrics.final_results <= 5
        assert metrics.degraded == ()


@pytest.mark.parametrize("top_k", [0, -1, 10**9, MAX_TOP_K + 1, 1.5, "10", None, True, math.nan])
async def test_a_bad_top_k_is_refused(top_k: Any) -> None:
    with pytest.raises(InvalidInput, match="top_k must be a whole number from 1 to 1000"):
        await engine_on(small_index()).search("kettle", top_k, scope=EVERYTHING)


@pytest.mark.parametrize("mode", ["", "HYBRID", "lexical ", None, 5, ["hybrid"], "x" * 5_000])
async def test_an_unknown_mode_is_refused_and_the_modes_are_named(mode: Any) -> None:
    with pytest.raises(InvalidInput, match="hybrid, lexical, strict, vector") as caught:
        await engine_on(small_index()).search("kettle", scope=EVERYTHING, mode=mode)
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize("query", [None, 5, b"kettle", ["kettle"]])
async def test_a_query_that_is_no_text_is_refused(query: Any) -> None:
    with pytest.raises(InvalidInput, match="must be text"):
        await engine_on(small_index()).search(query, scope=EVERYTHING)


async def test_a_query_may_be_long_but_not_endless() -> None:
    results, _ = await engine_on(small_index()).search("kettle ".ljust(MAX_QUERY), scope=EVERYTHING)
    assert results
    with pytest.raises(InvalidInput, match="10,001 characters"):
        await engine_on(small_index()).search("k" * (MAX_QUERY + 1), scope=EVERYTHING)


async def test_the_engines_own_scope_is_taken_where_a_search_names_none_and_else_the_owners() -> None:
    """D37."""
    assert {result.chunk_id for result in (await engine_on(small_index()).search("valve"))[0]} == {"a", "b", "d"}
    engine = engine_on(small_index(), scope=Scope(frozenset({2})))
    assert {result.chunk_id for result in (await engine.search("valve"))[0]} == {"a", "b"}
    assert {result.chunk_id for result in (await engine.search("valve", scope=Scope(frozenset({3}))))[0]} == {"d"}
    assert (await engine.search("valve", scope=Scope(frozenset())))[0] == []
    for bad in (["HR"], "everything", 1):
        with pytest.raises(InvalidInput, match="not a scope"):
            await engine.search("valve", scope=bad)  # type: ignore[arg-type]


async def test_without_an_index_and_an_open_app_there_is_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current_app, "_opened", [])
    with pytest.raises(NoActiveApp, match="no open app"):
        HybridSearchEngine(enable_caching=True)


@pytest.mark.parametrize("name", ["bm25_candidates", "vector_candidates"])
@pytest.mark.parametrize("value", [0, -1, MAX_TOP_K + 1, 1.5, "10", None, True, math.nan])
async def test_bad_numbers_of_candidates_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=f"{name} must be a whole number"):
        await engine_on(small_index()).search("kettle", scope=EVERYTHING, **{name: value})


@pytest.mark.parametrize(
    "options",
    [
        {"correlation_id": 5},
        {"correlation_id": "x" * 201},
        {"explain": "yes"},
        {"highlight": 1},
        {"explain_documents": "a"},
        {"explain_documents": ["a"] * 21},
        {"explain_documents": [5]},
        {"explain_documents": ["x" * 201]},
        {"filters": 5},
        {"scope": frozenset({2})},
    ],
)
async def test_other_bad_arguments_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be|a list|holds ids|are an object|not a scope"):
        await engine_on(small_index()).search("kettle", **({"scope": EVERYTHING} | options))


@pytest.mark.parametrize(("exact", "proposed"), [(False, 3), (True, 2)])
async def test_a_leg_proposes_top_k_at_least_unless_it_is_held_to_its_number(exact: bool, proposed: int) -> None:
    asked: dict[str, Any] = {
        "bm25_candidates": 2,
        "vector_candidates": 1,
        "scope": EVERYTHING,
        "exact_candidates": exact,
    }
    recorded: list[int] = []
    index = small_index()
    lexical = index.lexical

    async def lexical_leg(query: Any, scope: Any, filters: Any, wanted: int) -> dict[str, float]:
        recorded.append(wanted)
        return await lexical(query, scope, filters, wanted)

    index.lexical = lexical_leg  # type: ignore[method-assign]
    await engine_on(index).search("kettle", 3, **asked)
    assert recorded == [proposed]
