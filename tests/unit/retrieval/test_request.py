"""Arguments of a search: odd queries are searched, invalid arguments are rejected with a message."""

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
async def test_a_blank_query_returns_nothing_and_reads_nothing(query: str) -> None:
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


@pytest.mark.parametrize("top_k", [0, -1, 10**9, MAX_TOP_K + 1, 1.5, "10", True, math.nan])
async def test_an_invalid_top_k_is_rejected(top_k: Any) -> None:
    with pytest.raises(InvalidInput, match="top_k must be a whole number from 1 to 1000"):
        await engine_on(small_index()).search("kettle", top_k, scope=EVERYTHING)


@pytest.mark.parametrize("mode", ["", "HYBRID", "lexical ", None, 5, ["hybrid"], "x" * 5_000])
async def test_an_unknown_mode_is_rejected_with_the_valid_modes(mode: Any) -> None:
    with pytest.raises(InvalidInput, match="hybrid, lexical, strict, vector") as caught:
        await engine_on(small_index()).search("kettle", scope=EVERYTHING, mode=mode)
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize("query", [None, 5, b"kettle", ["kettle"]])
async def test_a_query_that_is_not_a_string_is_rejected(query: Any) -> None:
    with pytest.raises(InvalidInput, match="must be a string"):
        await engine_on(small_index()).search(query, scope=EVERYTHING)


async def test_a_query_has_a_maximum_length() -> None:
    results, _ = await engine_on(small_index()).search("kettle ".ljust(MAX_QUERY), scope=EVERYTHING)
    assert results
    with pytest.raises(InvalidInput, match="10,001 characters"):
        await engine_on(small_index()).search("k" * (MAX_QUERY + 1), scope=EVERYTHING)


async def test_the_scope_defaults_to_that_of_the_engine_and_then_to_the_owners() -> None:
    """D37."""
    assert {result.chunk_id for result in (await engine_on(small_index()).search("valve"))[0]} == {"a", "b", "d"}
    engine = engine_on(small_index(), scope=Scope(frozenset({2})))
    assert {result.chunk_id for result in (await engine.search("valve"))[0]} == {"a", "b"}
    assert {result.chunk_id for result in (await engine.search("valve", scope=Scope(frozenset({3}))))[0]} == {"d"}
    assert (await engine.search("valve", scope=Scope(frozenset())))[0] == []
    for bad in (["HR"], "everything", 1):
        with pytest.raises(InvalidInput, match="Invalid scope"):
            await engine.search("valve", scope=bad)  # type: ignore[arg-type]


async def test_without_an_index_and_an_open_app_no_engine_can_be_created(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current_app, "_opened", [])
    with pytest.raises(NoActiveApp, match="no open app"):
        HybridSearchEngine(enable_caching=True)


@pytest.mark.parametrize("name", ["bm25_candidates", "vector_candidates"])
@pytest.mark.parametrize("value", [0, -1, MAX_TOP_K + 1, 1.5, "10", None, True, math.nan])
async def test_invalid_numbers_of_candidates_are_rejected(name: str, value: Any) -> None:
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
async def test_other_invalid_arguments_are_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be|a list|contains document ids|are an object|Invalid scope"):
        await engine_on(small_index()).search("kettle", **({"scope": EVERYTHING} | options))


@pytest.mark.parametrize(("exact", "expected_limit"), [(False, 3), (True, 2)])
async def test_a_retriever_returns_top_k_candidates_at_least_unless_the_number_is_exact(
    exact: bool, expected_limit: int
) -> None:
    arguments: dict[str, Any] = {
        "bm25_candidates": 2,
        "vector_candidates": 1,
        "scope": EVERYTHING,
        "exact_candidates": exact,
    }
    limits: list[int] = []
    index = small_index()
    lexical = index.lexical

    async def record_limit(query: Any, scope: Any, filters: Any, limit: int) -> dict[str, float]:
        limits.append(limit)
        return await lexical(query, scope, filters, limit)

    index.lexical = record_limit  # type: ignore[assignment,method-assign]
    await engine_on(index).search("kettle", 3, **arguments)
    assert limits == [expected_limit]
