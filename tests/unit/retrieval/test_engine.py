"""Hybrid search: fusion of both retrievers, the failure of one of them, and rejected arguments."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

import pytest

from dtrag.core.access.scope import Scope, SearchFilters
from dtrag.core.documents import Vector
from dtrag.core.ranking.bm25 import LexicalQuery
from dtrag.core.ranking.fusion import METHODS, NORMALIZATIONS
from dtrag.core.text.analysis import Analyzer, term_id
from dtrag.errors import DatabaseUnavailable, IndexMismatch, InvalidInput
from dtrag.retrieval.engine import MODES
from tests.toy import ToyEmbedder
from tests.unit.retrieval.memory import Broken, MemoryIndex, Row
from tests.unit.retrieval.small import EVERYTHING, engine_on, small_index


async def test_both_retrievers_are_fused_and_the_best_passage_comes_first() -> None:
    embedder = ToyEmbedder()
    index = small_index(embedder)
    results, metrics = await engine_on(index, embedder).search("kettle valve", 3, scope=EVERYTHING)
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
    assert set(index.calls) == {"snapshot", "statistics", "lexical", "vectors", "fetch"}


async def test_the_lexical_score_is_a_share_of_the_highest_score_of_the_query() -> None:
    index = small_index()
    results, _ = await engine_on(index).search("kettle valve", scope=EVERYTHING, mode="lexical")
    query = LexicalQuery.of([(term_id("kettl"), 1.0), (term_id("valv"), 1.0)], index.statistics_)
    sums = await index.lexical(query, EVERYTHING, SearchFilters(), 9)
    assert {result.chunk_id: result.bm25_score for result in results} == pytest.approx(
        {key: score / query.ceiling for key, score in sums.items()}
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
async def test_a_mode_runs_only_its_retrievers(mode: str, calls: set[str]) -> None:
    embedder = ToyEmbedder()
    index = small_index(embedder)
    results, metrics = await engine_on(index, embedder).search("kettle valve", scope=EVERYTHING, mode=mode)
    assert {*index.calls} - {"snapshot", "statistics", "fetch"} == calls
    assert results[0].chunk_id == "a"
    assert (metrics.mode, metrics.notes) == (mode, ())


async def test_the_weights_decide_between_the_retrievers() -> None:
    embedder = ToyEmbedder()
    for weights, other in (({"bm25_weight": 3.0, "vector_weight": 0.0}, "lexical"), ({"bm25_weight": 0.0}, "vector")):
        engine = engine_on(small_index(embedder), embedder, **weights)
        assert engine.bm25_weight + engine.vector_weight == 1.0
        results, _ = await engine.search("valve", 1, scope=EVERYTHING)
        alone, _ = await engine.search("valve", 1, scope=EVERYTHING, mode=other)
        assert results[0].chunk_id == alone[0].chunk_id


@pytest.mark.parametrize("weights", [(0, 0), (-1, 2), (2, -1), (math.nan, 1), (math.inf, 1), (1, math.nan)])
def test_invalid_weights_are_rejected(weights: tuple[float, float]) -> None:
    with pytest.raises(InvalidInput, match="weights"):
        engine_on(small_index(), bm25_weight=weights[0], vector_weight=weights[1])


async def test_equal_scores_are_ordered_by_key() -> None:
    rows = [Row(key, "The kettle has a valve.") for key in "cabd"]
    results, _ = await engine_on(MemoryIndex(rows)).search("kettle", 3, scope=EVERYTHING)
    assert [result.chunk_id for result in results] == ["a", "b", "c"]


async def test_every_mode_returns_only_passages_in_scope() -> None:
    embedder = ToyEmbedder(languages=frozenset({"*"}))
    engine = engine_on(small_index(embedder), embedder)
    for mode in MODES:
        results, _ = await engine.search("valve salary", 50, scope=Scope(frozenset({2})), mode=mode)
        assert {result.chunk_id for result in results} <= {"a", "b"}
        results, _ = await engine.search("valve salary", 50, scope=Scope(frozenset()), mode=mode)
        assert results == []


async def test_filters_narrow_the_scope_and_never_widen_it() -> None:
    engine = engine_on(small_index())
    hr = {"taxonomy_paths": [["HR"]]}
    results, _ = await engine.search("valve", filters=hr, scope=EVERYTHING)
    assert [result.chunk_id for result in results] == ["d"]
    for paths in ([["HR"]], [["ghost"]], []):
        results, _ = await engine.search("valve", filters={"taxonomy_paths": paths}, scope=Scope(frozenset({2})))
        assert results == []
    with pytest.raises(InvalidInput, match="Unknown filter"):
        await engine.search("valve", filters={"bypass_attempt": True}, scope=EVERYTHING)


async def test_a_passage_deleted_before_the_fetch_is_left_out() -> None:
    index = small_index()
    index.vanished = {"a"}
    results, metrics = await engine_on(index).search("kettle valve", scope=EVERYTHING)
    assert "a" not in {result.chunk_id for result in results}
    assert metrics.final_results == len(results) == 2


@pytest.mark.parametrize("error", [OSError("gone"), ValueError("bad"), DatabaseUnavailable(reason="down.")])
async def test_when_the_lexical_retriever_fails_the_vectors_decide(error: Exception) -> None:
    embedder = ToyEmbedder()
    index = small_index(embedder)
    index.broken["lexical"] = error
    results, metrics = await engine_on(index, embedder).search("kettle valve", scope=EVERYTHING)
    assert results
    assert metrics.degraded == ("lexical",)
    assert metrics.bm25_candidates == 0
    assert {result.bm25_score for result in results} == {0.0}


@pytest.mark.parametrize(
    "embedder",
    [Broken(ConnectionError("down")), Broken(value=math.nan), Broken(value=math.inf), Broken(value=-math.inf)],
)
async def test_when_the_embedder_fails_or_returns_invalid_numbers_the_lexical_scores_decide(embedder: Broken) -> None:
    index = small_index()
    results, metrics = await engine_on(index, embedder).search("kettle valve", scope=EVERYTHING)
    assert results[0].chunk_id == "a"
    assert metrics.degraded == ("vector",)
    assert metrics.vector_candidates == 0
    assert "vectors" not in index.calls


async def test_when_the_vector_retriever_fails_the_lexical_scores_decide() -> None:
    embedder = ToyEmbedder()
    index = small_index(embedder)
    index.broken["vectors"] = RuntimeError("no such index")
    results, metrics = await engine_on(index, embedder).search("kettle valve", scope=EVERYTHING)
    assert results[0].chunk_id == "a"
    assert metrics.degraded == ("vector",)


async def test_when_both_retrievers_fail_the_database_is_unavailable_and_the_cause_is_chained() -> None:
    embedder = ToyEmbedder()
    index = small_index(embedder)
    index.broken = {"lexical": OSError("secret detail"), "vectors": OSError("also")}
    with pytest.raises(DatabaseUnavailable, match=r"no search could be made \(OSError\)") as caught:
        await engine_on(index, embedder).search("kettle valve", scope=EVERYTHING)
    assert caught.value.__cause__ is index.broken["lexical"]
    assert "secret" not in str(caught.value)


async def test_an_error_of_the_database_is_raised_unchanged() -> None:
    index = small_index()
    index.broken["lexical"] = DatabaseUnavailable(reason="it is starting.")
    with pytest.raises(DatabaseUnavailable, match="it is starting"):
        await engine_on(index).search("kettle valve", scope=EVERYTHING)


@pytest.mark.parametrize(("mode", "call"), [("lexical", "lexical"), ("strict", "strict"), ("vector", "vectors")])
async def test_the_failure_of_the_only_retriever_of_a_mode_is_raised(mode: str, call: str) -> None:
    embedder = ToyEmbedder()
    index = small_index(embedder)
    index.broken[call] = TimeoutError()
    with pytest.raises(DatabaseUnavailable, match="TimeoutError"):
        await engine_on(index, embedder).search("kettle valve", scope=EVERYTHING, mode=mode)


@pytest.mark.parametrize("call", ["snapshot", "fetch"])
async def test_a_failure_without_an_alternative_is_raised(call: str) -> None:
    index = small_index()
    index.broken[call] = DatabaseUnavailable(reason="down.")
    with pytest.raises(DatabaseUnavailable, match="down"):
        await engine_on(index).search("kettle valve", scope=EVERYTHING)


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
async def test_a_query_in_a_language_without_an_embedder_is_searched_lexically_with_a_note(mode: str) -> None:
    embedder = ToyEmbedder()
    index = small_index(embedder)
    results, metrics = await engine_on(index, embedder).search("휴학 학기", scope=EVERYTHING, mode=mode)
    assert [result.chunk_id for result in results] == (["e"] if mode == "hybrid" else [])
    assert len(metrics.notes) == 1
    assert "does not support the query's language (ko)" in metrics.notes[0]
    assert metrics.degraded == ()
    assert "vectors" not in index.calls


async def test_without_an_embedder_a_note_says_so_in_modes_with_vectors() -> None:
    for mode, expected in (("hybrid", True), ("vector", True), ("lexical", False), ("strict", False)):
        _, metrics = await engine_on(small_index()).search("kettle", scope=EVERYTHING, mode=mode)
        assert bool(metrics.notes) == expected
        assert not expected or "No embedder is available" in metrics.notes[0]


async def test_an_index_that_is_being_rebuilt_is_searched_with_a_note() -> None:
    index = small_index()
    index.settings["rebuilding"] = True
    results, metrics = await engine_on(index).search("kettle", scope=EVERYTHING, mode="lexical")
    assert results
    assert "being rebuilt" in metrics.notes[0]


async def test_an_index_built_with_another_analyzer_is_rejected() -> None:
    index = small_index()
    index.settings["analyzer"] = "another"
    with pytest.raises(IndexMismatch, match="analyzer"):
        await engine_on(index).search("kettle", scope=EVERYTHING)
    await engine_on(index, analyzer=Analyzer(id="another")).search("kettle", scope=EVERYTHING)


async def test_a_search_before_all_vectors_are_made_states_it_and_is_not_served_afterwards() -> None:
    embedder = ToyEmbedder()
    index = small_index(embedder)
    engine = engine_on(index, embedder, scope=EVERYTHING)
    index.settings["spaces"] = {"en": "toy@00000009"}
    _, metrics = await engine.search("kettle valve")
    assert metrics.vectors_pending
    assert "still being made" in metrics.notes[0]
    assert (await engine.search("kettle valve"))[1].vectors_pending, "a cached result states it, too"
    index.settings |= {"spaces": {"en": embedder.id}, "vectors": 1}
    _, metrics = await engine.search("kettle valve")
    assert (metrics.cache_hit, metrics.vectors_pending, metrics.notes) == (False, False, ())


async def test_there_are_at_least_as_many_candidates_as_requested_results() -> None:
    rows = [Row(f"{number:03}", "The kettle has a valve.") for number in range(80)]
    results, metrics = await engine_on(MemoryIndex(rows)).search("kettle", 70, scope=EVERYTHING)
    assert (len(results), metrics.bm25_candidates) == (70, 70)


class Slow(ToyEmbedder):
    """An embedder that waits for its gate."""

    gate = threading.Event()

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        self.gate.wait(30)
        return super().embed_queries(texts)


async def test_a_slow_embedder_is_left_out() -> None:
    embedder = Slow()
    try:
        engine = engine_on(small_index(ToyEmbedder()), embedder, embedding_timeout=0.01)
        for _ in range(2):
            results, metrics = await engine.search("kettle valve", scope=EVERYTHING)
            assert results[0].chunk_id == "a"
            assert metrics.degraded == ("vector",)
    finally:
        embedder.gate.set()


async def test_lexical_only_and_vector_only_searches_keep_their_scores() -> None:
    embedder = ToyEmbedder()
    engine = engine_on(small_index(embedder), embedder, scope=EVERYTHING, enable_reranking=True)
    results, metrics = await engine.keyword_only_search("kettle valve", 3)
    assert metrics.mode == "lexical"
    assert [result.hybrid_score for result in results] == [result.bm25_score for result in results]
    results, metrics = await engine.vector_only_search("kettle valve", 3)
    assert metrics.mode == "vector"
    assert [result.hybrid_score for result in results] == [result.vector_score for result in results]
    assert metrics.rerank_time == 0.0


async def test_the_words_of_the_query_are_highlighted_unless_disabled() -> None:
    engine = engine_on(small_index(), scope=EVERYTHING)
    results, _ = await engine.search("kettle valve", 1)
    assert [results[0].text[start:end] for start, end in results[0].highlights] == ["kettle", "valve"]
    assert (await engine.search("kettle valve", 1, highlight=False))[0][0].highlights == ()


@pytest.mark.parametrize("fusion", METHODS)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("adaptive", [True, False])
async def test_every_fusion_gives_ordered_scores_above_0_up_to_1(
    fusion: str, normalization: str, adaptive: bool
) -> None:
    embedder = ToyEmbedder()
    options = {"fusion": fusion, "normalization": normalization, "adaptive": adaptive}
    results, _ = await engine_on(small_index(embedder), embedder, scope=EVERYTHING, **options).search("API kettle")
    scores = [result.hybrid_score for result in results]
    assert len(scores) == 5
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


async def test_adaptive_weights_depend_on_the_query() -> None:
    """BM25 is short and exact: a passage with a lexical score only gets the lexical weight, .5 or .7."""
    rows = [Row("a", "BM25 kettle"), Row("b", "ticket"), Row("c", "valve")]
    for adaptive, share in ((False, 0.5), (True, 0.7)):
        embedder = Broken(value=8**-0.5)
        engine = engine_on(MemoryIndex(rows, embedder), embedder, scope=EVERYTHING, adaptive=adaptive)
        results, _ = await engine.search("BM25", 3)
        assert {result.chunk_id: result.hybrid_score for result in results} == pytest.approx(
            {"a": 1.0, "b": 1 - share, "c": 1 - share}
        )


async def test_the_vector_score_is_the_share_of_the_cosine_above_that_of_unrelated_texts() -> None:
    plain, above = ToyEmbedder(), ToyEmbedder(floor=0.5)
    index = small_index(plain)
    cosines, _ = await engine_on(index, plain).search("kettle valve", 9, scope=EVERYTHING, mode="vector")
    shares, _ = await engine_on(index, above).search("kettle valve", 9, scope=EVERYTHING, mode="vector", explain=True)
    expected = {result.chunk_id: max(0.0, 2 * result.vector_score - 1) for result in cosines}
    assert {result.chunk_id: result.vector_score for result in shares} == pytest.approx(expected)
    raw = {result.chunk_id: result.explanation.cosine for result in shares if result.explanation is not None}
    assert raw == pytest.approx({result.chunk_id: result.vector_score for result in cosines})
