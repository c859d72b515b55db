"""Two legs side by side: what is fused, what one failing leg costs, and what is refused at the door."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dtrag.core.scope import Scope, SearchFilters
from dtrag.core.scoring import LexicalQuery, LexicalStatistics
from dtrag.core.taxonomy import ROOT, Node, Taxonomy
from dtrag.core.text import Analyzer, term_id
from dtrag.errors import DatabaseUnavailable, IndexMismatch, InvalidInput
from dtrag.ports import Embedder, Index
from dtrag.retrieval.engine import MAX_QUERY, MAX_TOP_K, MODES, HybridSearchEngine
from tests.toy import ToyEmbedder
from tests.unit.retrieval.memory import Broken, MemoryIndex, Row

TREE = Taxonomy.of("1", [Node(2, ROOT, "AI", "ai"), Node(3, ROOT, "HR", "hr")])
ROWS = (
    Row("a", "The kettle has a valve.", 2),
    Row("b", "A boiler has a valve and a valve.", 2),
    Row("c", "Leave is granted in summer.", 3),
    Row("d", "The valve of the salary office.", 3),
    Row("e", "휴학은 네 학기까지 할 수 있다.", 3),
)
EVERYTHING = Scope.everything()


def _index(embedder: Embedder | None = None) -> MemoryIndex:
    return MemoryIndex(ROWS, embedder, TREE)


def _engine(index: Index, embedder: Embedder | None = None, **options: Any) -> HybridSearchEngine:
    return HybridSearchEngine(embedder, index, **options)


async def test_both_legs_are_fused_and_the_best_come_first() -> None:
    embedder = ToyEmbedder()
    index = _index(embedder)
    results, metrics = await _engine(index, embedder).search("kettle valve", 3, scope=EVERYTHING)
    assert results[0].chunk_id == "a"
    assert len(results) == metrics.final_results == 3
    scores = [result.hybrid_score for result in results]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == 1.0
    for result in results:
        for score in (result.bm25_score, result.vector_score, result.hybrid_score):
            assert 0.0 <= score <= 1.0
    assert (metrics.bm25_candidates, metrics.vector_candidates) == (3, 5)
    assert metrics.degraded == metrics.notes == ()
    assert metrics.total_time >= metrics.vector_time >= metrics.embedding_time > 0
    assert set(index.calls) == {"snapshot", "lexical", "vectors", "fetch"}


async def test_the_lexical_score_is_a_share_of_what_the_query_could_reach() -> None:
    index = _index()
    results, _ = await _engine(index).search("kettle valve", scope=EVERYTHING, mode="lexical")
    query = LexicalQuery.of([(term_id("kettl"), 1.0), (term_id("valv"), 1.0)], index.statistics)
    found = await index.lexical(query, sorted(query.weights), EVERYTHING, SearchFilters(), 9)
    assert {result.chunk_id: result.bm25_score for result in results} == pytest.approx(
        {key: score / query.ceiling for key, score in found.items()}
    )


@pytest.mark.parametrize(
    ("mode", "calls"),
    [
        ("lexical", {"lexical"}),
        ("strict", {"strict"}),
        ("vector", {"vectors"}),
        ("hybrid", {"lexical", "vectors"}),
    ],
)
async def test_a_mode_runs_its_legs_only(mode: str, calls: set[str]) -> None:
    embedder = ToyEmbedder()
    index = _index(embedder)
    results, metrics = await _engine(index, embedder).search("kettle valve", scope=EVERYTHING, mode=mode)
    assert {*index.calls} - {"snapshot", "fetch"} == calls
    assert results[0].chunk_id == "a"
    assert (metrics.mode, metrics.notes) == (mode, ())


async def test_the_weights_decide_between_the_legs() -> None:
    embedder = ToyEmbedder()
    for weights, other in (({"bm25_weight": 3.0, "vector_weight": 0.0}, "lexical"), ({"bm25_weight": 0.0}, "vector")):
        engine = _engine(_index(embedder), embedder, **weights)
        assert engine.bm25_weight + engine.vector_weight == 1.0
        results, _ = await engine.search("valve", 1, scope=EVERYTHING)
        alone, _ = await engine.search("valve", 1, scope=EVERYTHING, mode=other)
        assert results[0].chunk_id == alone[0].chunk_id


@pytest.mark.parametrize("weights", [(0, 0), (-1, 2), (2, -1), (math.nan, 1), (math.inf, 1), (1, math.nan)])
def test_weights_that_mean_nothing_are_refused(weights: tuple[float, float]) -> None:
    with pytest.raises(InvalidInput, match="weights"):
        _engine(_index(), bm25_weight=weights[0], vector_weight=weights[1])


async def test_equal_scores_are_ordered_by_key() -> None:
    rows = [Row(key, "The kettle has a valve.") for key in "cabd"]
    results, _ = await _engine(MemoryIndex(rows)).search("kettle", 3, scope=EVERYTHING)
    assert [result.chunk_id for result in results] == ["a", "b", "c"]


async def test_only_what_the_scope_sees_is_found_in_every_mode() -> None:
    embedder = ToyEmbedder(languages=frozenset({"*"}))
    engine = _engine(_index(embedder), embedder)
    for mode in MODES:
        results, _ = await engine.search("valve salary", 50, scope=Scope(frozenset({2})), mode=mode)
        assert {result.chunk_id for result in results} <= {"a", "b"}
        results, _ = await engine.search("valve salary", 50, scope=Scope(frozenset()), mode=mode)
        assert results == []


async def test_filters_narrow_the_scope_and_never_widen_it() -> None:
    engine = _engine(_index())
    hr = {"taxonomy_paths": [["HR"]]}
    results, _ = await engine.search("valve", filters=hr, scope=EVERYTHING)
    assert [result.chunk_id for result in results] == ["d"]
    for paths in ([["HR"]], [["ghost"]], []):
        results, _ = await engine.search("valve", filters={"taxonomy_paths": paths}, scope=Scope(frozenset({2})))
        assert results == []
    with pytest.raises(InvalidInput, match="There is no filter"):
        await engine.search("valve", filters={"bypass_attempt": True}, scope=EVERYTHING)


async def test_a_passage_that_is_gone_by_the_time_it_is_fetched_is_left_out() -> None:
    index = _index()
    index.vanished = {"a"}
    results, metrics = await _engine(index).search("kettle valve", scope=EVERYTHING)
    assert "a" not in {result.chunk_id for result in results}
    assert metrics.final_results == len(results) == 2


@pytest.mark.parametrize("error", [OSError("gone"), ValueError("bad"), DatabaseUnavailable(reason="down.")])
async def test_when_the_lexical_leg_fails_the_vectors_decide(error: Exception) -> None:
    embedder = ToyEmbedder()
    index = _index(embedder)
    index.broken["lexical"] = error
    results, metrics = await _engine(index, embedder).search("kettle valve", scope=EVERYTHING)
    assert results
    assert metrics.degraded == ("lexical",)
    assert metrics.bm25_candidates == 0
    assert {result.bm25_score for result in results} == {0.0}


@pytest.mark.parametrize(
    "embedder",
    [Broken(ConnectionError("down")), Broken(value=math.nan), Broken(value=math.inf), Broken(value=-math.inf)],
)
async def test_when_the_embedder_fails_or_gives_no_numbers_words_decide(embedder: Broken) -> None:
    index = _index()
    results, metrics = await _engine(index, embedder).search("kettle valve", scope=EVERYTHING)
    assert results[0].chunk_id == "a"
    assert metrics.degraded == ("vector",)
    assert metrics.vector_candidates == 0
    assert "vectors" not in index.calls


async def test_when_the_vector_search_fails_words_decide() -> None:
    embedder = ToyEmbedder()
    index = _index(embedder)
    index.broken["vectors"] = RuntimeError("no such index")
    results, metrics = await _engine(index, embedder).search("kettle valve", scope=EVERYTHING)
    assert results[0].chunk_id == "a"
    assert metrics.degraded == ("vector",)


async def test_when_both_legs_fail_the_database_is_unavailable_and_the_cause_is_kept() -> None:
    embedder = ToyEmbedder()
    index = _index(embedder)
    index.broken = {"lexical": OSError("secret detail"), "vectors": OSError("also")}
    with pytest.raises(DatabaseUnavailable, match=r"no search could be made \(OSError\)") as caught:
        await _engine(index, embedder).search("kettle valve", scope=EVERYTHING)
    assert caught.value.__cause__ is index.broken["lexical"]
    assert "secret" not in str(caught.value)


async def test_what_the_database_itself_says_is_passed_on() -> None:
    index = _index()
    index.broken["lexical"] = DatabaseUnavailable(reason="it is starting.")
    with pytest.raises(DatabaseUnavailable, match="it is starting"):
        await _engine(index).search("kettle valve", scope=EVERYTHING)


@pytest.mark.parametrize(("mode", "call"), [("lexical", "lexical"), ("strict", "strict"), ("vector", "vectors")])
async def test_the_only_leg_of_a_mode_may_not_fail(mode: str, call: str) -> None:
    embedder = ToyEmbedder()
    index = _index(embedder)
    index.broken[call] = TimeoutError()
    with pytest.raises(DatabaseUnavailable, match="TimeoutError"):
        await _engine(index, embedder).search("kettle valve", scope=EVERYTHING, mode=mode)


@pytest.mark.parametrize("call", ["snapshot", "fetch"])
async def test_what_has_no_alternative_is_raised(call: str) -> None:
    index = _index()
    index.broken[call] = DatabaseUnavailable(reason="down.")
    with pytest.raises(DatabaseUnavailable, match="down"):
        await _engine(index).search("kettle valve", scope=EVERYTHING)


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
async def test_a_language_that_the_embedder_does_not_speak_is_searched_by_words_and_said_so(mode: str) -> None:
    embedder = ToyEmbedder()
    index = _index(embedder)
    results, metrics = await _engine(index, embedder).search("휴학 학기", scope=EVERYTHING, mode=mode)
    assert [result.chunk_id for result in results] == (["e"] if mode == "hybrid" else [])
    assert len(metrics.notes) == 1
    assert "does not speak the query's language (ko)" in metrics.notes[0]
    assert metrics.degraded == ()
    assert "vectors" not in index.calls


async def test_without_an_embedder_results_say_so_where_vectors_were_asked_for() -> None:
    for mode, said in (("hybrid", True), ("vector", True), ("lexical", False), ("strict", False)):
        _, metrics = await _engine(_index()).search("kettle", scope=EVERYTHING, mode=mode)
        assert bool(metrics.notes) == said
        assert not said or "No embedder is available" in metrics.notes[0]


async def test_an_index_that_is_being_rebuilt_is_searched_and_said_so() -> None:
    index = _index()
    index.settings["rebuilding"] = True
    results, metrics = await _engine(index).search("kettle", scope=EVERYTHING, mode="lexical")
    assert results
    assert "built anew" in metrics.notes[0]


async def test_an_index_that_was_built_otherwise_is_not_searched() -> None:
    index = _index()
    index.settings["analyzer"] = "another"
    with pytest.raises(IndexMismatch, match="analyzer"):
        await _engine(index).search("kettle", scope=EVERYTHING)
    await _engine(index, analyzer=Analyzer(id="another")).search("kettle", scope=EVERYTHING)
    index.settings["embedder"] = {"id": "toy@00000009"}
    with pytest.raises(IndexMismatch, match="embedder"):
        await _engine(index, ToyEmbedder(), analyzer=Analyzer(id="another")).search("kettle", scope=EVERYTHING)


@pytest.mark.parametrize("query", ["", " ", "\n\t\u3000", "\x00", "\ud800"])
async def test_a_blank_query_finds_nothing_and_asks_nobody(query: str) -> None:
    index = _index()
    results, metrics = await _engine(index).search(query, scope=EVERYTHING, mode="lexical")
    assert (results, metrics.mode, metrics.final_results) == ([], "lexical", 0)
    assert index.calls == []


@pytest.mark.parametrize(
    "query", ["???", "👩‍🔬", "' OR 1=1 --", "%", "\\", "& | ! <->", ":*", "the of and", "kettle\x00valve\ud83d"]
)
async def test_odd_queries_are_searched_like_any_other(query: str) -> None:
    embedder = ToyEmbedder(languages=frozenset({"*"}))
    for mode in MODES:
        results, metrics = await _engine(_index(embedder), embedder).search(query, scope=EVERYTHING, mode=mode)
        assert len(results) == metrics.final_results <= 5
        assert metrics.degraded == ()


@pytest.mark.parametrize("top_k", [0, -1, 10**9, MAX_TOP_K + 1, 1.5, "10", None, True, math.nan])
async def test_a_bad_top_k_is_refused(top_k: Any) -> None:
    with pytest.raises(InvalidInput, match="top_k must be a whole number from 1 to 1000"):
        await _engine(_index()).search("kettle", top_k, scope=EVERYTHING)


@pytest.mark.parametrize("mode", ["", "HYBRID", "lexical ", None, 5, ["hybrid"], "x" * 5_000])
async def test_an_unknown_mode_is_refused_and_the_modes_are_named(mode: Any) -> None:
    with pytest.raises(InvalidInput, match="hybrid, lexical, strict, vector") as caught:
        await _engine(_index()).search("kettle", scope=EVERYTHING, mode=mode)
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize("query", [None, 5, b"kettle", ["kettle"]])
async def test_a_query_that_is_no_text_is_refused(query: Any) -> None:
    with pytest.raises(InvalidInput, match="must be text"):
        await _engine(_index()).search(query, scope=EVERYTHING)


async def test_a_query_may_be_long_but_not_endless() -> None:
    results, _ = await _engine(_index()).search("kettle ".ljust(MAX_QUERY), scope=EVERYTHING)
    assert results
    with pytest.raises(InvalidInput, match="10,001 characters"):
        await _engine(_index()).search("k" * (MAX_QUERY + 1), scope=EVERYTHING)


async def test_no_fewer_candidates_are_taken_than_results_are_wanted() -> None:
    rows = [Row(f"{number:03}", "The kettle has a valve.") for number in range(80)]
    results, metrics = await _engine(MemoryIndex(rows)).search("kettle", 70, scope=EVERYTHING)
    assert (len(results), metrics.bm25_candidates) == (70, 70)


async def test_common_terms_generate_candidates_only_where_the_rare_ones_do_not_fill_the_list() -> None:
    index = _index()
    ids = sorted([term_id("kettl"), term_id("valv")])
    frequencies = {term_id("kettl"): 1, term_id("valv"): 50_000}
    index.statistics = LexicalStatistics(
        np.array(ids, np.int64), np.array([frequencies[i] for i in ids], np.int64), 100_000, index.statistics.lengths
    )
    results, _ = await _engine(index).search("kettle valve", 1, bm25_candidates=1, scope=EVERYTHING, mode="lexical")
    assert index.asked == [[term_id("kettl")]]
    assert [result.chunk_id for result in results] == ["a"]
    index.asked.clear()
    results, _ = await _engine(index).search("kettle valve", 3, bm25_candidates=3, scope=EVERYTHING, mode="lexical")
    assert index.asked == [[term_id("kettl")], ids]
    assert {result.chunk_id for result in results} == {"a", "b", "d"}
