"""Overridden search methods of an engine supply the candidates of its searches, within the scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from unittest import mock

from dtrag.core.access.scope import Scope, Viewer
from dtrag.core.documents import SearchMetrics, SearchResult, Vector
from dtrag.retrieval.engine import HybridSearchEngine
from tests.toy import ToyEmbedder
from tests.unit.retrieval.small import EVERYTHING, small_index


class Overriding(HybridSearchEngine):
    """An engine whose methods return the passages `c` and `a`, and record their arguments."""

    calls: list[tuple[str, int, Mapping[str, Any] | None, Viewer | None]]

    async def _perform_bm25_search(
        self, query: str, top_k: int = 10, filters: Mapping[str, Any] | None = None, *, scope: Viewer | None = None
    ) -> tuple[list[SearchResult], SearchMetrics]:
        self.calls.append((query, top_k, filters, scope))
        return [SearchResult("c", bm25_score=0.9), SearchResult("a", bm25_score=0.4)], SearchMetrics()

    async def _perform_vector_search(
        self,
        query_embedding: Vector | Sequence[float],
        top_k: int = 10,
        filters: Mapping[str, Any] | None = None,
        *,
        scope: Viewer | None = None,
    ) -> tuple[list[SearchResult], SearchMetrics]:
        self.calls.append(("vector", top_k, filters, scope))
        return [SearchResult("c", vector_score=0.8)], SearchMetrics()


def overriding(scope: Scope = EVERYTHING) -> Overriding:
    embedder = ToyEmbedder()
    engine = Overriding(embedder, small_index(embedder), enable_reranking=False, scope=scope)
    engine.calls = []
    return engine


async def test_the_candidates_come_from_the_overridden_methods() -> None:
    engine = overriding()
    filters = {"content_types": ["text/plain"]}
    results, metrics = await engine.search("kettle valve", 2, filters, bm25_candidates=7, vector_candidates=6)
    assert [(result.chunk_id, result.bm25_score, result.vector_score) for result in results] == [
        ("c", 0.9, 0.8),
        ("a", 0.4, 0.0),
    ]
    assert results[0].text == "Leave is granted in summer."
    assert (metrics.bm25_candidates, metrics.vector_candidates, metrics.degraded) == (2, 1, ())
    assert sorted(engine.calls, key=str) == [
        ("kettle valve", 7, filters, EVERYTHING),
        ("vector", 6, filters, EVERYTHING),
    ]


async def test_an_overridden_method_cannot_widen_the_scope_or_the_filters() -> None:
    results, _ = await overriding(Scope(frozenset({2}))).search("kettle valve", 5)
    assert [result.chunk_id for result in results] == ["a"]
    results, _ = await overriding().search("kettle valve", 5, {"taxonomy_paths": [["AI"]]})
    assert [result.chunk_id for result in results] == ["a"]


async def test_an_overridden_method_is_called_only_in_modes_that_use_it() -> None:
    for mode, names in (("vector", ["vector"]), ("lexical", ["kettle valve"]), ("strict", ["kettle valve"])):
        engine = overriding()
        await engine.search("kettle valve", 2, mode=mode)
        assert [call[0] for call in engine.calls] == names


async def test_an_overridden_method_that_fails_leaves_the_other_retriever() -> None:
    engine = overriding()
    with mock.patch.object(engine, "_perform_vector_search", side_effect=OSError("down")):
        results, metrics = await engine.search("kettle valve", 2)
    assert ([result.chunk_id for result in results], metrics.degraded) == (["c", "a"], ("vector",))
