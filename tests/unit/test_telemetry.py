"""Figures of searches and requests: what is counted where, and that labels stay few."""

from __future__ import annotations

import uuid

from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from dtrag.core.documents import SearchMetrics
from dtrag.errors import DatabaseUnavailable
from dtrag.telemetry import Telemetry

SLOW = SearchMetrics(
    total_time=0.3,
    bm25_time=0.02,
    vector_time=0.2,
    embedding_time=0.1,
    fusion_time=0.002,
    fetch_time=0.004,
    bm25_candidates=40,
    vector_candidates=3,
    final_results=10,
    degraded=("rerank",),
)


def samples(telemetry: Telemetry) -> dict[str, float]:
    """Name and labels of each sample, as they are written, and its value."""
    return {
        sample.name + "".join(f",{name}={value}" for name, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(telemetry.exposition().decode())
        for sample in family.samples
    }


def test_a_search_is_told_by_its_stages() -> None:
    telemetry = Telemetry()
    telemetry.searches.record(SLOW)
    found = samples(telemetry)
    sums = {name: found[f"dtrag_search_stage_seconds_sum,stage={name}"] for name in ("total", "embedding", "vector")}
    assert sums == {"total": 0.3, "embedding": 0.1, "vector": 0.2}
    assert found["dtrag_search_stage_seconds_bucket,le=0.025,stage=lexical"] == 1
    assert found["dtrag_search_stage_seconds_bucket,le=0.01,stage=lexical"] == 0
    assert "dtrag_search_stage_seconds_count,stage=rerank" not in found
    assert found["dtrag_search_candidates_sum,leg=lexical"] == 40
    assert found["dtrag_search_candidates_sum,leg=vector"] == 3
    assert found["dtrag_search_results_sum"] == 10
    assert found["dtrag_search_degraded_total,stage=rerank"] == 1
    assert found["dtrag_search_cache_total,outcome=miss"] == 1


def test_a_hit_of_the_cache_has_no_stages() -> None:
    telemetry = Telemetry()
    telemetry.searches.record(SearchMetrics(cache_hit=True, total_time=0.0004, bm25_time=0.02, final_results=2))
    found = samples(telemetry)
    assert found["dtrag_search_cache_total,outcome=hit"] == 1
    assert found["dtrag_search_stage_seconds_count,stage=total"] == 1
    assert "dtrag_search_stage_seconds_count,stage=lexical" not in found
    assert "dtrag_search_candidates_count,leg=lexical" not in found


def test_what_is_not_known_beforehand_is_no_label() -> None:
    telemetry = Telemetry()
    for _ in range(50):
        odd = uuid.uuid4().hex
        telemetry.searches.record(SearchMetrics(mode=odd, degraded=(odd,)))
        telemetry.searches.failed(DatabaseUnavailable(reason=odd))
        telemetry.requests.record(odd, "(none)", 404, 0.001)
    found = samples(telemetry)
    assert found["dtrag_searches_total,mode=other"] == 50
    assert found["dtrag_search_degraded_total,stage=other"] == 50
    assert found["dtrag_search_failures_total,error=DatabaseUnavailable"] == 50
    assert found["dtrag_http_requests_total,method=other,route=(none),status=404"] == 50
    assert len(found) < 200


def test_each_service_has_figures_of_its_own() -> None:
    one, other = Telemetry(), Telemetry()
    one.requests.unexpected()
    assert samples(one)["dtrag_http_unexpected_errors_total"] == 1
    assert samples(other)["dtrag_http_unexpected_errors_total"] == 0
    assert not [family.name for family in REGISTRY.collect() if family.name.startswith("dtrag")]
