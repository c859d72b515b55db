"""The plain functions over the open app; and what is done where none is open, or several are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

import dtrag
from dtrag import current_app
from dtrag.core.access.scope import Scope, Viewer
from dtrag.core.taxonomy.tree import ROOT, Node, Taxonomy
from dtrag.core.text.analysis import Analyzer
from dtrag.errors import InvalidInput, NoActiveApp
from dtrag.pipeline.run_context import Run
from dtrag.ports import Embedder, Index
from dtrag.regulations.service import Regulations
from dtrag.retrieval.engine import HybridSearchEngine
from tests.toy import ToyEmbedder
from tests.unit.retrieval.memory import MemoryIndex, Row

EVERYTHING = Scope.everything()


@dataclass(eq=False)
class OpenApp:
    """What the functions need of an app."""

    index: Index
    embedder: Embedder | None
    engine: HybridSearchEngine
    analyzer: Analyzer = Analyzer()

    @property
    def run(self) -> Run:
        return Run(engine=self.engine, index=self.index, embedder=self.embedder)

    @property
    def regulations(self) -> Regulations:
        raise NotImplementedError

    async def counts(self, *, scope: Viewer) -> tuple[int, int]:
        return (2, 3) if scope.resolved(Taxonomy("")).nodes is None else (0, 0)


def _app() -> OpenApp:
    embedder = ToyEmbedder()
    rows = [Row("a", "The kettle has a valve.", 2, "Manual"), Row("b", "A boiler.", 2), Row("c", "Leave.", 3)]
    index = MemoryIndex(rows, embedder, Taxonomy.of("1", [Node(2, ROOT, "AI", "ai")]))
    return OpenApp(index, embedder, HybridSearchEngine(embedder, index, enable_reranking=False, filter_keys={"author"}))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenApp]:
    monkeypatch.setattr(current_app, "_opened", [])  # other tests of the run may have one
    app = _app()
    current_app.opened(app)
    yield app
    current_app.closed(app)


async def test_results_and_metrics_are_plain(opened: OpenApp) -> None:
    rows, metrics = await dtrag.hybrid_search("kettle valve", 2, scope=EVERYTHING)
    best = rows[0]
    assert set(best) == {"chunk_id", "text", "title", "source_url", "taxonomy_path", "score", "metadata"}
    assert (best["chunk_id"], best["title"], best["taxonomy_path"], best["score"]) == ("a", "Manual", ["AI"], 1.0)
    assert {"bm25_score", "vector_score", "hybrid_score", "rerank_score"} <= set(best["metadata"])
    assert metrics["candidates_found"] == {"bm25": 1, "vector": 3}
    assert (metrics["final_results"], metrics["cache_hit"]) == (2, False)
    assert (await dtrag.hybrid_search("kettle valve", 2, scope=EVERYTHING))[1]["cache_hit"] is True


async def test_one_side_alone(opened: OpenApp) -> None:
    rows, metrics = await dtrag.keyword_search("kettle", scope=EVERYTHING)
    assert [row["score"] for row in rows] == [row["metadata"]["bm25_score"] for row in rows]
    assert metrics["candidates_found"] == {"bm25": 1, "vector": 0}
    rows, metrics = await dtrag.vector_search("kettle", scope=EVERYTHING)
    assert [row["score"] for row in rows] == [row["metadata"]["vector_score"] for row in rows]
    assert metrics["candidates_found"] == {"bm25": 0, "vector": 3}


async def test_the_scope_is_kept_and_bad_arguments_are_refused(opened: OpenApp) -> None:
    rows, _ = await dtrag.hybrid_search("kettle", filters={"canonical_in": [["AI"]]}, scope=Scope(frozenset({3})))
    assert rows == []
    with pytest.raises(InvalidInput):
        await dtrag.hybrid_search("kettle", 0, scope=EVERYTHING)


async def test_statistics(opened: OpenApp) -> None:
    await dtrag.hybrid_search("kettle", scope=EVERYTHING)
    figures = await dtrag.get_search_statistics(scope=EVERYTHING)
    assert set(figures) == {"database_stats", "engine_config", "performance_metrics", "timestamp"}
    assert figures["database_stats"] == {"documents": 2, "chunks": 3, "generation": 1, "taxonomy_version": "1"}
    assert figures["engine_config"]["cache_stats"]["misses"] == 1
    assert figures["performance_metrics"]["searches"] == 1
    assert datetime.now(UTC) - datetime.fromisoformat(figures["timestamp"]) < timedelta(days=1)


async def test_an_engine_without_an_index_takes_that_of_the_open_app(opened: OpenApp) -> None:
    engine = HybridSearchEngine(enable_caching=True, scope=EVERYTHING)
    results, metrics = await engine.search("kettle", filters={"metadata": {"author": "Kim"}})
    assert (results, metrics.notes) == ([], ())
    assert (await engine.search("kettle", 1))[0][0].chunk_id == "a"
    assert engine.get_config()["embedder"] == ToyEmbedder().id


async def test_no_open_app_and_several_are_told_apart_from_one(opened: OpenApp) -> None:
    other = _app()
    current_app.opened(other)
    with pytest.raises(NoActiveApp, match="more than one open app"):
        await dtrag.hybrid_search("kettle", scope=EVERYTHING)
    current_app.closed(other)
    assert current_app.active() is opened
    current_app.closed(opened)
    with pytest.raises(NoActiveApp, match="no open app"):
        await dtrag.get_search_statistics(scope=EVERYTHING)
