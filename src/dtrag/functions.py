"""Search functions on the open app, with plain values as arguments and results."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypedDict, Unpack

from dtrag.core.access import confinement
from dtrag.core.access.scope import Viewer
from dtrag.core.documents import SearchMetrics, SearchResult
from dtrag.current_app import active
from dtrag.retrieval.engine import HybridSearchEngine
from dtrag.retrieval.request import ModeSearchOptions, SearchOptions


class ResultRow(TypedDict):
    """A passage; `metadata` includes its scores."""

    chunk_id: str
    text: str
    title: str
    source_url: str
    taxonomy_path: list[str]
    score: float
    metadata: dict[str, Any]


class MetricsRow(TypedDict):
    """Metrics of a search, times in seconds."""

    mode: str
    total_time: float
    bm25_time: float
    vector_time: float
    embedding_time: float
    fusion_time: float
    rerank_time: float
    candidates_found: dict[str, int]
    final_results: int
    diversity_ratio: float
    cache_hit: bool
    degraded: list[str]
    notes: list[str]


class DatabaseStatistics(TypedDict):
    """What the index contains in the caller's scope."""

    documents: int
    chunks: int
    generation: int
    taxonomy_version: str


class SearchStatistics(TypedDict):
    """State of the index, configuration of the engine, and its metrics so far."""

    database_stats: DatabaseStatistics
    engine_config: Mapping[str, Any]
    performance_metrics: Mapping[str, Any]
    timestamp: str


Plain = tuple[list[ResultRow], MetricsRow]


async def hybrid_search(
    query: str,
    top_k: int = 5,
    filters: Mapping[str, Any] | None = None,
    *,
    scope: Viewer | None = None,
    **options: Unpack[ModeSearchOptions],
) -> Plain:
    """Search with BM25 and vectors: results and metrics. `options` are those of `HybridSearchEngine.search`.

    Without a scope it is the whole tree, or inside a run, request or tool call the scope of that. Raises
    `NoActiveApp`, and what the engine raises.
    """
    results, metrics = await _engine().search(query, top_k, filters, scope=scope, **options)
    return _plain(results, metrics)


async def keyword_search(
    query: str,
    top_k: int = 5,
    filters: Mapping[str, Any] | None = None,
    *,
    scope: Viewer | None = None,
    **options: Unpack[SearchOptions],
) -> Plain:
    """As `hybrid_search`, with BM25 only."""
    results, metrics = await _engine().keyword_only_search(query, top_k, filters, scope=scope, **options)
    return _plain(results, metrics)


async def vector_search(
    query: str,
    top_k: int = 5,
    filters: Mapping[str, Any] | None = None,
    *,
    scope: Viewer | None = None,
    **options: Unpack[SearchOptions],
) -> Plain:
    """As `hybrid_search`, with vectors only."""
    results, metrics = await _engine().vector_only_search(query, top_k, filters, scope=scope, **options)
    return _plain(results, metrics)


async def get_search_statistics(*, scope: Viewer | None = None) -> SearchStatistics:
    """Number of documents in scope, configuration of the engine of the open app, and its metrics so far."""
    app, engine = active(), _engine()
    documents, chunks = await app.counts(scope=confinement.bounded(scope))
    snapshot = await app.index.snapshot()
    return {
        "database_stats": {
            "documents": documents,
            "chunks": chunks,
            "generation": snapshot.generation,
            "taxonomy_version": snapshot.taxonomy.version,
        },
        "engine_config": engine.get_config(),
        "performance_metrics": engine.performance(),
        "timestamp": datetime.now(UTC).isoformat(),
    }


def _engine() -> HybridSearchEngine:
    engine: HybridSearchEngine = active().engine
    return engine


def _plain(results: list[SearchResult], metrics: SearchMetrics) -> Plain:
    rows: list[ResultRow] = [
        {
            "chunk_id": result.chunk_id,
            "text": result.text,
            "title": result.title,
            "source_url": result.source_url,
            "taxonomy_path": result.taxonomy_path,
            "score": result.hybrid_score,
            "metadata": {
                **result.metadata,
                "bm25_score": result.bm25_score,
                "vector_score": result.vector_score,
                "hybrid_score": result.hybrid_score,
                "rerank_score": result.rerank_score,
            },
        }
        for result in results
    ]
    figures: MetricsRow = {
        "mode": metrics.mode,
        "total_time": metrics.total_time,
        "bm25_time": metrics.bm25_time,
        "vector_time": metrics.vector_time,
        "embedding_time": metrics.embedding_time,
        "fusion_time": metrics.fusion_time,
        "rerank_time": metrics.rerank_time,
        "candidates_found": {"bm25": metrics.bm25_candidates, "vector": metrics.vector_candidates},
        "final_results": metrics.final_results,
        "diversity_ratio": metrics.diversity_ratio,
        "cache_hit": metrics.cache_hit,
        "degraded": list(metrics.degraded),
        "notes": list(metrics.notes),
    }
    return rows, figures
