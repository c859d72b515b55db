"""Figures of searches and requests: what is counted where, and that labels stay few."""

from __future__ import annotations

import uuid
from typing import Any

from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from dtrag.concurrency import Load
from dtrag.core.chat import Usage
from dtrag.core.documents import Citation, SearchMetrics
from dtrag.core.trace import StepTrace
from dtrag.delivery.api.prometheus import NEWEST, Telemetry
from dtrag.errors import DatabaseUnavailable
from dtrag.pipeline.state import PipelineResponse

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
    assert found["dtrag_search_candidates_sum,retriever=lexical"] == 40
    assert found["dtrag_search_candidates_sum,retriever=vector"] == 3
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
    assert "dtrag_search_candidates_count,retriever=lexical" not in found


def test_unknown_values_do_not_become_labels() -> None:
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
    assert len(found) < 261


def test_each_service_has_its_own_registry() -> None:
    one, other = Telemetry(), Telemetry()
    one.requests.unexpected()
    assert samples(one)["dtrag_http_unexpected_errors_total"] == 1
    assert samples(other)["dtrag_http_unexpected_errors_total"] == 0
    assert not [family.name for family in REGISTRY.collect() if family.name.startswith("dtrag")]


CITATION = Citation(1, "Rules", "d:0", "d", "", "Quoted.", 0, 7)


def answer(latency: float, confidence: float = 0.5, decision: str = "answer", degraded: tuple[str, ...] = ()) -> Any:
    return PipelineResponse(
        question="the secret question",
        text="the secret answer",
        citations=(CITATION, CITATION),
        confidence=confidence,
        taxonomy_version="1.0.0",
        latency=latency,
        cost=0.25,
        intent="question",
        step_timings={},
        stages={},
        decision=decision,
        degraded=degraded,
        retrieved_chunks=[],
        usage=Usage(1, 100, 20, 0.25),
        model="openai:x",
        baseline_confidence=0.5,
        trace_id="x",
        tool_results=[],
    )


def test_answers_by_decision_time_and_cost() -> None:
    telemetry = Telemetry()
    steps = [StepTrace("retrieve", 0.2, 2.0, "done"), StepTrace("compose", 3.5, 3.5, "timeout")]
    for number in range(1, 101):
        telemetry.pipeline.record(answer(number / 100, confidence=number / 100), steps)
    telemetry.pipeline.record(answer(9.0, 0.5, "secret word", ("llm", "secret part")), [StepTrace("s", 1, 1, "done")])
    found = samples(telemetry)
    assert found["dtrag_pipeline_answers_total,decision=answer"] == 100
    assert found["dtrag_pipeline_answers_total,decision=other"] == 1
    assert found["dtrag_pipeline_timeout_errors_total,step=compose"] == 100
    assert "dtrag_pipeline_timeout_errors_total,step=retrieve" not in found
    assert found["dtrag_pipeline_degraded_total,part=llm"] == 1
    assert found["dtrag_pipeline_latency_p50"] == 0.51
    assert found["dtrag_pipeline_latency_p95"] == 0.96
    assert found["dtrag_pipeline_sources_count_avg"] == 2
    assert 0.5 < found["dtrag_pipeline_confidence_avg"] < 0.51
    assert found["dtrag_model_tokens_total,direction=in"] == 10_100
    assert found["dtrag_model_cost_won_total"] == 25.25
    assert "secret" not in telemetry.exposition().decode()


def test_quantiles_are_of_the_newest_answers() -> None:
    telemetry = Telemetry()
    assert telemetry.pipeline.latency(0.95) == 0.0
    for latency in [9.0] * NEWEST + [0.1] * NEWEST:
        telemetry.pipeline.record(answer(latency), [])
    assert samples(telemetry)["dtrag_pipeline_latency_p99"] == 0.1


def test_limiter_load_is_read_at_every_scrape() -> None:
    telemetry = Telemetry()
    assert "dtrag_admission" not in samples(telemetry)
    telemetry.admission.loads = lambda: {"model": Load(3, 2, 7)}
    found = samples(telemetry)
    assert found["dtrag_admission,limiter=model,state=working"] == 3
    assert found["dtrag_admission,limiter=model,state=waiting"] == 2
    assert found["dtrag_admission_refused_total,limiter=model"] == 7
