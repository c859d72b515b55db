"""Options of an engine: configuration, reranker, a single retriever, filters, statistics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dtrag.core.access.scope import Scope
from dtrag.core.documents import SearchResult
from dtrag.errors import DtragError, InvalidInput
from dtrag.retrieval.rerank import CrossEncoderReranker
from tests.toy import ToyEmbedder
from tests.unit.retrieval.memory import MemoryIndex, Row
from tests.unit.retrieval.small import EVERYTHING, engine_on, small_index


async def test_the_configuration_is_reported_and_changed_as_a_whole() -> None:
    engine = engine_on(small_index(), scope=EVERYTHING)
    await engine.search("kettle")
    await engine.search("kettle")
    config = engine.get_config()
    assert (config["bm25_weight"], config["embedder"], config["reranker"]) == (0.5, None, "heuristic")
    assert config["cache_stats"] == {"size": 1, "max_size": 1000, "hits": 1, "misses": 1, "hit_rate": 0.5}
    engine.update_config(bm25_weight=3, vector_weight=1, normalization="z_score", cache_size=7)
    config = engine.get_config()
    assert (config["bm25_weight"], config["vector_weight"], config["normalization"]) == (0.75, 0.25, "z_score")
    assert (config["cache_stats"]["size"], config["cache_stats"]["max_size"]) == (0, 7)
    assert (await engine.search("kettle"))[1].cache_hit is False
    engine.clear_cache()
    assert (await engine.search("kettle"))[1].cache_hit is False
    engine.update_config(enable_caching=False)
    await engine.search("kettle")
    assert (await engine.search("kettle"))[1].cache_hit is False


@pytest.mark.parametrize(
    "changes",
    [
        {"colour": "red"},
        {"bm25_weight": -1},
        {"bm25_weight": "1"},
        {"bm25_weight": 0.0, "vector_weight": 0.0},
        {"normalization": "none"},
        {"fusion": "magic"},
        {"adaptive": 1},
        {"enable_caching": None},
        {"cache_size": 0},
        {"cache_size": 1.5},
        {"cache_ttl": 0},
        {"embedding_timeout": math.inf},
        {"rerank_timeout": True},
    ],
)
async def test_an_invalid_configuration_is_rejected_and_nothing_changes(changes: dict[str, Any]) -> None:
    engine = engine_on(small_index())
    before = engine.get_config()
    with pytest.raises(InvalidInput):
        engine.update_config(**({"bm25_weight": 0.9} | changes))
    assert engine.get_config() == before
    with pytest.raises(InvalidInput):
        engine_on(small_index(), **changes)


class Reranker:
    """Prefers what is written last in the alphabet; fails or gives nonsense when told so."""

    id = "last-letters"
    languages = frozenset({"*"})

    def __init__(self, error: Exception | None = None, score: float | None = None) -> None:
        self.error = error
        self.score = score
        self.read: list[str] = []

    def applies(self, query: str) -> bool:
        return True

    async def attempt(
        self,
        query: str,
        results: Sequence[SearchResult],
        top_k: int | None,
        timeout: float,  # noqa: ASYNC109
    ) -> tuple[list[SearchResult], bool]:
        self.read = [result.chunk_id for result in results]
        if self.error is not None:
            raise self.error
        scored = [
            replace(result, rerank_score=ord(result.chunk_id[0]) / 200 if self.score is None else self.score)
            for result in results
        ]
        return sorted(scored, key=lambda result: -result.rerank_score)[:top_k], True


async def test_a_reranker_reads_fifty_passages_and_orders_the_best_first() -> None:
    rows = [Row(f"{letter}:{number}", "The kettle has a valve.") for letter in "abc" for number in range(25)]
    reranker = Reranker()
    engine = engine_on(MemoryIndex(rows), reranker=reranker, scope=EVERYTHING, enable_reranking=True)
    results, metrics = await engine.search("kettle", 3, bm25_candidates=75)
    assert len(reranker.read) == 50
    assert reranker.read[0] == "a:0"
    assert [result.chunk_id[0] for result in results] == ["b", "b", "b"]
    assert [result.rerank_score for result in results] == [ord("b") / 200] * 3
    assert metrics.rerank_time > 0
    await engine.search("kettle", 60)
    assert len(reranker.read) == 60


@pytest.mark.parametrize(
    "reranker", [Reranker(RuntimeError("down")), Reranker(TimeoutError()), Reranker(score=math.nan)]
)
async def test_when_the_reranker_fails_the_heuristic_decides_and_it_is_reported(reranker: Reranker) -> None:
    engine = engine_on(small_index(), reranker=reranker, scope=EVERYTHING, enable_reranking=True)
    results, metrics = await engine.search("kettle valve", 3)
    assert metrics.degraded == ("rerank",)
    assert results[0].chunk_id == "a"
    scores = [result.rerank_score for result in results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    assert (await engine.search("kettle valve", 3))[1].cache_hit is False


class Late:
    """A model that is never finished in time."""

    id = "late"
    languages = frozenset({"*"})

    def score(self, query: str, texts: Sequence[str], deadline: float) -> Sequence[float] | None:
        return None


async def test_a_model_that_is_not_finished_in_time_is_reported() -> None:
    reranker = CrossEncoderReranker(model=Late())
    engine = engine_on(small_index(), reranker=reranker, scope=EVERYTHING, enable_reranking=True)
    results, metrics = await engine.search("kettle valve", 3)
    assert metrics.degraded == ("rerank",)
    assert len(results) == 3


async def test_orch_010b_without_reranking_the_heuristic_score_is_set_and_takes_no_time() -> None:
    """D18."""
    results, metrics = await engine_on(small_index(), scope=EVERYTHING).search("kettle valve", 3)
    assert metrics.rerank_time == 0.0
    assert all(result.rerank_score > 0 for result in results)
    scores = [result.hybrid_score for result in results]
    assert scores == sorted(scores, reverse=True)


async def test_a_retriever_can_be_called_alone() -> None:
    embedder = ToyEmbedder()
    engine = engine_on(small_index(embedder), embedder, scope=Scope(frozenset({2})))
    results, metrics = await engine._perform_bm25_search(query="kettle valve", top_k=10, filters={})
    assert [result.chunk_id for result in results] == ["a", "b"]
    assert all(0 < result.bm25_score <= 1 and result.text for result in results)
    assert (metrics.bm25_candidates, metrics.final_results) == (2, 2)
    vector = embedder.embed_queries(["kettle valve"])[0]
    results, metrics = await engine._perform_vector_search(query_embedding=vector, top_k=1, filters={})
    assert [result.chunk_id for result in results] == ["a"]
    assert results[0].vector_score == results[0].hybrid_score > 0
    assert metrics.vector_candidates == 1


@pytest.mark.parametrize("vector", [[], [0.5] * 7, [math.nan] * 8, "kettle", None, [[0.5] * 8], [None] * 8])
async def test_an_invalid_vector_is_rejected(vector: Any) -> None:
    embedder = ToyEmbedder()
    with pytest.raises(InvalidInput, match="query_embedding"):
        await engine_on(small_index(embedder), embedder, scope=EVERYTHING)._perform_vector_search(vector)


async def test_filters_become_a_condition_with_parameters() -> None:
    engine = engine_on(small_index(), scope=EVERYTHING, filter_keys={"author"})
    await engine.search("valve")
    filters = {"canonical_in": [["HR"]], "content_types": ["text/plain"], "metadata": {"author": "x'; DROP TABLE y"}}
    clause, parameters = engine._build_filter_clause(filters)
    assert "DROP" not in clause
    assert parameters == {
        "nodes": frozenset({3}),
        "types": ("text/plain",),
        "facts": (("author", "x'; DROP TABLE y"),),
    }
    assert engine._build_filter_clause({}) == ("", {})


async def test_searches_and_errors_are_counted() -> None:
    embedder = ToyEmbedder()
    index = small_index(embedder)
    engine = engine_on(index, embedder, scope=EVERYTHING)
    await engine.search("kettle")
    await engine.search("kettle")
    index.broken["lexical"] = OSError("gone")
    await engine.search("boiler")
    for wrong in ({"top_k": 0}, {"mode": "lexical"}):
        with pytest.raises(DtragError):
            await engine.search("boiler", **wrong)
    performance = engine.performance()
    assert performance["mean_seconds"] > 0
    assert performance == {
        "searches": 3,
        "by_mode": {"hybrid": 3},
        "cache_hits": 1,
        "degraded": {"lexical": 1},
        "errors": {"InvalidInput": 1, "DatabaseUnavailable": 1},
        "error_rate": 0.4,
        "mean_seconds": performance["mean_seconds"],
    }
