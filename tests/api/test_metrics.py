"""`GET /metrics`: what Prometheus reads, and that it tells nothing about anybody."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

import dtrag
from dtrag.delivery.api.app import create_app
from dtrag.delivery.api.dependencies import Service
from tests.model_server import ModelServer
from tests.store import Databases

Figures = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


async def figures(client: httpx2.AsyncClient) -> Figures:
    response = await client.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def grown(before: Figures, after: Figures, name: str, **labels: str) -> float:
    key = (name, frozenset(labels.items()))
    return after.get(key, 0.0) - before.get(key, 0.0)


async def test_requests_are_counted_by_route_and_status(client: httpx2.AsyncClient) -> None:
    before = await figures(client)
    await client.get("/documents/secret-id")
    await client.get("/secret-place")
    await client.request("BREW", "/search")
    await client.post("/search", json={"query": "x", "top_k": 0})
    after = await figures(client)
    for method, route, status in (
        ("GET", "/documents/{document_id}", "404"),
        ("GET", "(none)", "404"),
        ("other", "/search", "405"),
        ("POST", "/search", "422"),
        ("GET", "/metrics", "200"),
    ):
        assert grown(before, after, "dtrag_http_requests_total", method=method, route=route, status=status) == 1, route
    assert grown(before, after, "dtrag_http_request_seconds_count", route="/documents/{document_id}") == 1


async def test_searches_are_counted_by_stage(client: httpx2.AsyncClient) -> None:
    before = await figures(client)
    await client.post("/search", json={"query": "an unusual query about figures", "mode": "lexical"})
    await client.post("/search/batch", json={"searches": [{"query": "one more"}, {"query": "x", "mode": "strict"}]})
    await client.post("/ask", json={"question": "How many more?"})
    after = await figures(client)
    assert grown(before, after, "dtrag_searches_total", mode="lexical") == 1
    assert grown(before, after, "dtrag_searches_total", mode="strict") == 1
    assert grown(before, after, "dtrag_searches_total", mode="hybrid") == 2
    assert grown(before, after, "dtrag_search_stage_seconds_count", stage="total") == 4
    assert grown(before, after, "dtrag_search_stage_seconds_count", stage="lexical") == 4
    assert grown(before, after, "dtrag_search_candidates_count", retriever="lexical") == 4
    assert grown(before, after, "dtrag_search_results_count") == 4
    assert grown(before, after, "dtrag_search_cache_total", outcome="miss") == 4


async def test_failures_are_counted(
    client: httpx2.AsyncClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await figures(client)
    wrong = {"query": "x", "filters": {"date_to": "never"}}
    await client.post("/search", json=wrong)
    await client.post("/search/batch", json={"searches": [wrong, wrong]})

    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(service.app, "search", fail)
    await client.post("/search", json={"query": "x"})
    after = await figures(client)
    assert grown(before, after, "dtrag_search_failures_total", error="InvalidInput") == 3
    assert grown(before, after, "dtrag_http_unexpected_errors_total") == 1
    assert grown(before, after, "dtrag_http_requests_total", method="POST", route="/search", status="500") == 1


async def test_no_metric_contains_a_question(client: httpx2.AsyncClient) -> None:
    await client.post("/search", json={"query": "secret", "filters": {"taxonomy_paths": [["secret"]]}})
    await client.post("/search", json={"query": "secret", "mode": "secret"})
    await client.request("SECRET", "/secret/secret", headers={"X-Request-ID": "secret"})
    await client.get("/documents/secret?secret=1")
    assert "secret" not in (await client.get("/metrics")).text.lower()


async def test_answers_are_counted_with_their_steps(client: httpx2.AsyncClient) -> None:
    before = await figures(client)
    assert (await client.post("/chat/run", json={"message": "What is nowhere in here?"})).status_code == 200
    assert (await client.post("/ask", json={"question": "What is nowhere in here?"})).status_code == 200
    after = await figures(client)
    assert grown(before, after, "dtrag_pipeline_seconds_count") == 2
    assert grown(before, after, "dtrag_pipeline_confidence_count") == 2
    assert grown(before, after, "dtrag_pipeline_answers_total", decision="abstain") == 2
    for step in ("intent", "retrieve", "compose", "respond"):
        assert grown(before, after, "dtrag_pipeline_step_seconds_count", step=step) == 2
    assert after["dtrag_pipeline_latency_p50", frozenset()] > 0
    assert after["dtrag_pipeline_latency_p99", frozenset()] >= after["dtrag_pipeline_latency_p50", frozenset()]
    assert ("dtrag_pipeline_confidence_avg", frozenset()) in after
    assert ("dtrag_pipeline_sources_count_avg", frozenset()) in after
    for limiter in ("run", "cpu", "model"):
        assert after["dtrag_admission", frozenset({("limiter", limiter), ("state", "working")})] == 0
        assert ("dtrag_admission_refused_total", frozenset({("limiter", limiter)})) in after


async def test_debates_and_tools_are_counted(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A4: started, finished, failed and timed out; rounds and calls; tools that ran, failed and were blocked."""
    for name in ("DEBATE_MODE", "FEATURE_META_PLANNER", "FEATURE_MCP_TOOLS", "FEATURE_TOOLS_POLICY"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("TOOL_WHITELIST", "calculator")
    (tmp_path / "leave.md").write_text("# Leave\n\nAnnual leave is ten days for all members of staff.", "utf-8")
    question = {"message": "How many days is annual leave for members of staff?"}
    with ModelServer("Annual leave is ten days [1].") as server:
        api = create_app(databases.settings(llm="openai:test", llm_base_url=server.url))
        async with (
            api.router.lifespan_context(api),
            httpx2.AsyncClient(transport=httpx2.ASGITransport(api), base_url="http://127.0.0.1", timeout=60) as client,
        ):
            app = api.state.service.app
            await app.ingest([tmp_path / "leave.md"])
            fresh = await figures(client)
            assert fresh["dtrag_debates_total", frozenset({("outcome", "failed")})] == 0

            assert (await client.post("/chat/run", json=question)).json()["metadata"]["debated"] is True
            after = await figures(client)
            assert grown(fresh, after, "dtrag_debates_total", outcome="started") == 1
            assert grown(fresh, after, "dtrag_debates_total", outcome="finished") == 1
            assert grown(fresh, after, "dtrag_debate_rounds_total") == 2
            assert grown(fresh, after, "dtrag_debate_calls_total") == 5

            server.fault = "500"
            failed = (await client.post("/chat/run", json=question)).json()["metadata"]
            assert "debate" in failed["degraded"]
            server.fault = "hang"
            with pytest.raises(TimeoutError):
                await dtrag.DebateEngine(app.run).run_debate("How long?", ["Ten days."], timeout=0.2)
            after = await figures(client)
            assert grown(fresh, after, "dtrag_debates_total", outcome="started") == 3
            assert grown(fresh, after, "dtrag_debates_total", outcome="failed") == 1
            assert grown(fresh, after, "dtrag_debates_total", outcome="timeout") == 1
            assert grown(fresh, after, "dtrag_pipeline_degraded_total", part="debate") == 1

            before = await figures(client)
            for name, given in (("calculator", {"expression": "1+1"}), ("calculator", {}), ("web_search", {})):
                await dtrag.execute_tool(name, given, registry=app.tools)
            after = await figures(client)
            for outcome in ("succeeded", "failed", "blocked"):
                assert grown(before, after, "dtrag_tools_total", outcome=outcome) == 1, outcome
            assert grown(before, after, "dtrag_tool_seconds_count") == 2
