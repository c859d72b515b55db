"""Filters tried out over HTTP, and counted."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.api.shape import assert_failure


async def test_valid_paths(client: httpx2.AsyncClient) -> None:
    response = await client.post("/filter/validate", json=[["AI", "ML"], ["ＡＩ", "ml"], ["학사"]])
    assert response.json() == {
        "valid": True,
        "paths_count": 2,
        "normalized_paths": [["ai", "ml"], ["학사"]],
        "message": "Every path is well formed.",
    }


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        ([["AI", ".."]], "Unsafe characters"),
        ([["AI"], []], "1 to 8 names"),
        (["AI/ML"], "list of names"),
        ([None], "list of names"),
        ([], "no document passes"),
    ],
)
async def test_invalid_paths(client: httpx2.AsyncClient, paths: Any, words: str) -> None:
    body = (await client.post("/filter/validate", json=paths)).json()
    assert (body["valid"], body["paths_count"], body["normalized_paths"]) == (False, 0, [])
    assert words in body["message"]


@pytest.mark.parametrize("body", [{}, "AI", 7, {"paths": []}, [["AI"]] * 101])
async def test_invalid_lists_of_paths(client: httpx2.AsyncClient, body: Any) -> None:
    assert_failure(await client.post("/filter/validate", json=body), 422)


async def test_documents_are_filtered(client: httpx2.AsyncClient) -> None:
    documents: list[dict[str, Any]] = [
        {"canonical_path": ["AI", "ML"], "text": "two\nlines"},
        {"canonical_path": ["ai"]},
        {"canonical_path": ["AIX"]},
        {"canonical_path": None},
        {"canonical_path": ["AI", "..", "HR"]},
    ]
    before = (await client.get("/metrics/filter")).json()["security_metrics"]
    body = (await client.post("/filter/test", json={"allowed_paths": [["AI"]], "test_documents": documents})).json()
    assert body["filtering_results"] == {"total": 5, "allowed": 2, "blocked": 3, "pass_rate": 0.4}
    assert body["filter_stats"] == {
        "allowed_paths": [["ai"]],
        "bypass_attempts": {"path_traversal": 1, "injection": 0, "bypass": 1},
    }
    assert body["performance"]["filter_latency_ms"] > 0
    assert body["performance"]["documents_per_second"] > 0
    assert body["performance"]["meets_target"] is (body["performance"]["filter_latency_ms"] <= 10)
    after = (await client.get("/metrics/filter")).json()
    assert after["performance_metrics"]["throughput"] > 0
    assert after["security_metrics"] == before, "trying out is no violation"


async def test_without_branches_nothing_passes(client: httpx2.AsyncClient) -> None:
    body = (
        await client.post("/filter/test", json={"allowed_paths": [], "test_documents": [{"canonical_path": ["AI"]}]})
    ).json()
    assert body["filtering_results"]["allowed"] == 0


@pytest.mark.parametrize(
    "body",
    [
        {"allowed_paths": [["AI", ".."]], "test_documents": []},
        {"allowed_paths": ["AI"], "test_documents": []},
        {"allowed_paths": [["AI"]]},
        {"allowed_paths": [["AI"]], "test_documents": ["AI"]},
        {"allowed_paths": [["AI"]] * 101, "test_documents": []},
    ],
)
async def test_refused_attempts(client: httpx2.AsyncClient, body: Any) -> None:
    assert_failure(await client.post("/filter/test", json=body), 422)


async def test_requests_with_filters_are_timed(client: httpx2.AsyncClient) -> None:
    before = (await client.get("/metrics/filter")).json()["performance_metrics"]
    await client.post("/search", json={"query": "x", "filters": {"taxonomy_paths": [["AI"]]}})
    await client.post("/search", json={"query": "x"})
    after = (await client.get("/metrics/filter")).json()["performance_metrics"]
    assert after["requests"] == before["requests"] + 1
    assert 0 < after["p50_ms"] <= after["p95_ms"] <= after["p99_ms"]


async def test_limit_is_another_name_of_top_k(client: httpx2.AsyncClient) -> None:
    for asked in ({"limit": 3}, {"top_k": 3, "limit": 3}, {"top_k": 3, "limit": None}):
        body = (await client.post("/search", json={"query": "ferry", **asked})).json()
        assert body["total_count"] == len(body["hits"]) == len(body["results"]) <= 3
        assert body["latency"] == body["metrics"]["total_time"]
    two = await client.post("/search", json={"query": "ferry", "top_k": 3, "limit": 4})
    assert "the same option" in assert_failure(two, 422)["detail"]
