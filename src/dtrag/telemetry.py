"""Counts and times for Prometheus: how searches and requests go, never what they are about.

Every label has few values, all known beforehand: stages, modes, route templates, statuses, classes of errors. No query,
no id, no path and no text of a document can become one. Each service has figures of its own, in a registry of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from dtrag.core.documents import SearchMetrics
from dtrag.errors import DtragError
from dtrag.retrieval.request import MODES

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper ends of the classes of times: from a hit of the cache (1 ms) over the goal (25 ms) to what nobody waits for."""
PASSAGES = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_MODES = frozenset(MODES)
STAGES = frozenset({"embedding", "lexical", "vector", "fusion", "rerank", "fetch"})
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"


def _known(value: str, known: frozenset[str]) -> str:
    return value if value in known else OTHER


class SearchTelemetry:
    """How the searches of one service went."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._searches = Counter("dtrag_searches", "Searches that were answered.", ["mode"], registry=registry)
        self._seconds = Histogram(
            "dtrag_search_stage_seconds",
            "Time of each stage that ran; vector includes embedding.",
            ["stage"],
            buckets=SECONDS,
            registry=registry,
        )
        self._candidates = Histogram(
            "dtrag_search_candidates", "Passages that a leg proposed.", ["leg"], buckets=PASSAGES, registry=registry
        )
        self._results = Histogram(
            "dtrag_search_results", "Passages in the answer.", buckets=PASSAGES, registry=registry
        )
        self._cache = Counter(
            "dtrag_search_cache", "Searches by whether the cache had them.", ["outcome"], registry=registry
        )
        self._degraded = Counter(
            "dtrag_search_degraded", "Searches that did without a stage that failed.", ["stage"], registry=registry
        )
        self._failures = Counter(
            "dtrag_search_failures", "Searches that gave an error, by its class.", ["error"], registry=registry
        )

    def record(self, metrics: SearchMetrics) -> None:
        """Count a search that was answered. A hit of the cache adds to the total time only, for no stage ran."""
        self._searches.labels(_known(metrics.mode, _MODES)).inc()
        self._cache.labels("hit" if metrics.cache_hit else "miss").inc()
        self._results.observe(metrics.final_results)
        self._seconds.labels("total").observe(metrics.total_time)
        if metrics.cache_hit:
            return
        for stage, seconds in _stages(metrics):
            if seconds > 0:
                self._seconds.labels(stage).observe(seconds)
        self._candidates.labels("lexical").observe(metrics.bm25_candidates)
        self._candidates.labels("vector").observe(metrics.vector_candidates)
        for stage in metrics.degraded:
            self._degraded.labels(_known(stage, STAGES)).inc()

    def failed(self, error: DtragError) -> None:
        """Count a search that gave an error."""
        self._failures.labels(type(error).__name__).inc()


def _stages(metrics: SearchMetrics) -> Iterator[tuple[str, float]]:
    yield "embedding", metrics.embedding_time
    yield "lexical", metrics.bm25_time
    yield "vector", metrics.vector_time
    yield "fusion", metrics.fusion_time
    yield "rerank", metrics.rerank_time
    yield "fetch", metrics.fetch_time


class RequestTelemetry:
    """How the requests of one service went, by the template of their route."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "dtrag_http_requests", "Requests that were answered.", ["method", "route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "dtrag_http_request_seconds", "Time of a request.", ["route"], buckets=SECONDS, registry=registry
        )
        self._unexpected = Counter("dtrag_http_unexpected_errors", "Requests that failed by a bug.", registry=registry)

    def record(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request. `route` is the template of a route, such as `/documents/{document_id}`."""
        self._requests.labels(_known(method, METHODS), route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def unexpected(self) -> None:
        """Count a failure that nobody has foreseen."""
        self._unexpected.inc()


class Telemetry:
    """All figures of one service."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.searches = SearchTelemetry(self._registry)
        self.requests = RequestTelemetry(self._registry)

    def exposition(self) -> bytes:
        """All figures in the text format of Prometheus (`CONTENT_TYPE`)."""
        return generate_latest(self._registry)
