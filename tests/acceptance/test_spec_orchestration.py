"""AC-ORCH-006 and AC-ORCH-007 by their ids, over HTTP on a real database: the snippets nearly as they are.

Times are measured in bench/filters.py. D4-D6 and D16 say what is built where the text contradicts itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from dtrag import CategoryFilter, FromCategoryRequest, SearchRequest
from dtrag.app import App
from dtrag.core.text.analysis import normalise
from dtrag.delivery.api.app import create_app
from tests.store import Databases

TEXTS = {
    ("AI", "ML"): "# Learning\n\nMachine learning finds patterns in measurements.",
    ("AI", "ML", "DeepLearning"): "# Depth\n\nDeep machine learning stacks layers.",
    ("AI", "Ethics"): "# Ethics\n\nWho answers for what a machine has been learning?",
    ("Database", "SQL"): "# Queries\n\nA database answers queries, and machine learning may order them.",
    ("Network",): "# Network\n\nA machine finds its neighbours by learning their addresses.",
}


@pytest_asyncio.fixture(scope="module")
async def corpus(databases_of_module: Databases, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("corpus")

    async def fill(app: App) -> None:
        for number, (path, text) in enumerate(TEXTS.items()):
            file = folder / f"{number}.md"
            file.write_text(text, "utf-8")
            await app.ingest([file], category=path)

    return await databases_of_module.filled(fill)


@pytest_asyncio.fixture
async def client(databases: Databases, corpus: str) -> AsyncIterator[httpx2.AsyncClient]:
    api = create_app(databases.settings(corpus))
    async with (
        api.router.lifespan_context(api),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(api), base_url="http://127.0.0.1") as client,
    ):
        yield client


async def test_orch_006_a_valid_input(client: httpx2.AsyncClient) -> None:
    request = FromCategoryRequest(
        version="1.0.0", node_paths=[["AI", "ML", "DeepLearning"], ["Database", "SQL"]], options={}
    )

    response = await client.post("/agents/from-category", json=request.dict())
    manifest = response.json()

    assert response.status_code == 200
    assert manifest["taxonomy_version"] == "1.0.0"
    assert len(manifest["allowed_category_paths"]) == 2
    assert manifest["retrieval"]["bm25_topk"] == 12
    assert manifest["retrieval"]["vector_topk"] == 12
    assert manifest["retrieval"]["rerank"]["candidates"] == 50
    assert manifest["retrieval"]["rerank"]["final_topk"] == 5
    assert manifest["retrieval"]["filter"]["canonical_in"] is True
    assert manifest["features"]["debate"] is False
    assert manifest["features"]["hitl_below_conf"] == 0.70
    assert manifest["features"]["cost_guard"] is True


async def test_orch_006_b_semantic_versions(client: httpx2.AsyncClient) -> None:
    """And D4: the grammar of Semantic Versioning 2.0, ASCII digits, the whole text."""
    for version in ["v1.0.0", "1.0", "1.0.0.0", "abc.def.ghi", "", "1.0.0\n", "１.0.0", "01.0.0"]:
        request = FromCategoryRequest(version=version, node_paths=[["AI"]], options={})
        response = await client.post("/agents/from-category", json=request.dict())
        assert response.status_code == 422
        assert "Invalid version format" in response.json()["detail"]

    for version in ["1.0.0", "1.0.0-alpha", "2.5.3-beta.1"]:
        request = FromCategoryRequest(version=version, node_paths=[["AI"]], options={})
        response = await client.post("/agents/from-category", json=request.dict())
        assert response.status_code == 200


async def test_orch_006_c_path_traversal(client: httpx2.AsyncClient) -> None:
    malicious_paths = [
        ["AI", "..", "root"],
        ["Database", "/etc/passwd"],
        ["AI\\ML"],
        ["<script>alert('xss')</script>"],
        ["AI|ML"],
    ]
    for path in malicious_paths:
        request = FromCategoryRequest(version="1.0.0", node_paths=[path], options={})
        response = await client.post("/agents/from-category", json=request.dict())
        assert response.status_code == 422
        assert "Unsafe characters detected" in response.json()["detail"]


async def test_orch_006_d_limits_of_paths(client: httpx2.AsyncClient) -> None:
    too_many_paths = [["Path", str(i)] for i in range(15)]
    request = FromCategoryRequest(version="1.0.0", node_paths=too_many_paths, options={})
    response = await client.post("/agents/from-category", json=request.dict())
    assert response.status_code == 422
    assert "Max 10 paths allowed" in response.json()["detail"]

    too_deep_path = ["Level" + str(i) for i in range(10)]
    request = FromCategoryRequest(version="1.0.0", node_paths=[too_deep_path], options={})
    response = await client.post("/agents/from-category", json=request.dict())
    assert response.status_code == 422
    assert "Max 5 levels allowed" in response.json()["detail"]


async def test_orch_006_e_paths_are_folded_and_kept_once(client: httpx2.AsyncClient) -> None:
    request = FromCategoryRequest(version="1.0.0", node_paths=[["AI", "ML"], ["AI", "ML"], ["ai", "ml"]], options={})

    response = await client.post("/agents/from-category", json=request.dict())
    manifest = response.json()

    assert len(manifest["allowed_category_paths"]) == 1
    assert manifest["allowed_category_paths"][0] == ["ai", "ml"]


async def test_orch_006_gates_every_valid_input_passes_and_no_invalid_one_does(client: httpx2.AsyncClient) -> None:
    valid: list[dict[str, Any]] = [
        {"version": version, "node_paths": paths, "options": options}
        for version in ("0.0.1", "12.4.0+build.7")
        for paths in ([["AI"]], [["학사", "휴학"]], [["not there yet", "R-D_2"]], [["a", "b", "c", "d", "e"]])
        for options in ({}, {"mcp_tools": ["searcher"]}, {"override_settings": {"retrieval": {"bm25_topk": 50}}})
    ]
    invalid: list[dict[str, Any]] = [
        {"version": "1.0.0", "node_paths": paths, "options": options}
        for paths, options in (
            ([], {}),
            ([[]], {}),
            (None, {}),
            ([["AI", "x" * 51]], {}),
            ([["A\u0406"]], {}),
            ([["A\u200bI"]], {}),
            ([["AI"]], {"mcp_tools": ["shell"]}),
            ([["AI"]], {"override_settings": {"retrieval": {"bm25_topk": 51}}}),
            ([["AI"]], {"override_settings": {"features": {"hitl_below_conf": 1}}}),
            ([["AI"]], {"colour": "red"}),
        )
    ]
    for body in valid:
        assert (await client.post("/agents/from-category", json=body)).status_code == 200
    for body in invalid:
        response = await client.post("/agents/from-category", json=body)
        assert response.status_code == 422
        assert isinstance(response.json()["detail"], str)


async def test_orch_009_fifty_agents_at_once(client: httpx2.AsyncClient) -> None:
    tasks = [
        client.post(
            "/agents/from-category",
            json={"version": "1.0.0", "node_paths": [["AI", f"Category{i}"]], "options": {}},
        )
        for i in range(50)
    ]
    results = await asyncio.gather(*tasks)
    assert sum(1 for response in results if response.status_code == 200) == 50
    assert len({response.json()["agent_id"] for response in results}) == 50


async def test_orch_007_a_filtering(client: httpx2.AsyncClient) -> None:
    """And D5: paths are compared folded, and shown as they were written."""
    request = SearchRequest(
        query="machine learning", filters={"allowed_category_paths": [["AI", "ML"], ["Database"]]}, top_k=10
    )

    response = await client.post("/search", json=request.dict())
    results = response.json()["hits"]

    assert request.filters is not None
    assert len(results) == 3
    for result in results:
        canonical_path = [normalise(name) for name in result["metadata"]["canonical_path"]]
        assert any(
            canonical_path[: len(allowed)] == [normalise(name) for name in allowed]
            for allowed in request.filters["allowed_category_paths"]
        )
    assert {result["metadata"]["canonical_path"][0] for result in results} == {"AI", "Database"}


def test_orch_007_b_attempts_are_noticed() -> None:
    category_filter = CategoryFilter(allowed_paths=[["AI", "ML"]])

    bypass_attempts: list[dict[str, Any]] = [
        {"canonical_path": None},
        {"canonical_path": ["AI", "ML", "..", "Database"]},
        {},
    ]
    for attempt in bypass_attempts:
        is_bypass = category_filter.validate_filter_bypass_attempt(attempt)
        assert is_bypass is True


async def test_orch_007_c_an_attempt_is_answered_with_403(client: httpx2.AsyncClient) -> None:
    request = SearchRequest(
        query="test", filters={"allowed_category_paths": [["AI"]], "bypass_attempt": True}, top_k=10
    )

    response = await client.post("/search", json=request.dict())

    assert response.status_code == 403
    assert "Filter bypass attempt detected" in response.json()["detail"]


def test_orch_007_d_three_thousand_documents() -> None:
    category_filter = CategoryFilter(allowed_paths=[["AI"], ["Database"]])

    test_documents = [
        {"canonical_path": ["AI", "ML"]},
        {"canonical_path": ["Database", "SQL"]},
        {"canonical_path": ["Network"]},
    ] * 1000

    filtered = category_filter.apply_filter(test_documents)

    assert len(filtered) == 2000


async def test_orch_007_gates_403_for_attempts_and_for_nothing_else(client: httpx2.AsyncClient) -> None:
    """Every attempt is a 403; an honest mistake is a 422, and what is right is answered."""
    expected: list[tuple[dict[str, Any], int]] = [
        ({"canonical_path": None}, 403),
        ({"allowed_category_paths": [["AI", ".."]]}, 403),
        ({"allowed_category_paths": [["../AI"]]}, 403),
        ({"allowed_category_paths": [["AI", None]]}, 403),
        ({"allowed_category_paths": [["x' OR 1=1 --"]]}, 403),
        ({"allowed_category_paths": [["1 UNION SELECT 2"]]}, 403),
        ({"allowed_category_paths": [["'; DROP TABLE documents"]]}, 403),
        ({"allowed_category_paths": [["null"]]}, 403),
        ({"allowed_category_paths": [["undefined"]]}, 403),
        ({"__proto__": {}}, 403),
        ({"canonical_in": False}, 403),
        ({"allowed_category_paths": [["AI|ML"]]}, 422),
        ({"allowed_category_paths": "AI"}, 422),
        ({"colour": "red"}, 422),
        ({"allowed_category_paths": [["AI"]]}, 200),
        ({"allowed_category_paths": [["nowhere"]]}, 200),
        ({}, 200),
    ]
    for filters, status in expected:
        response = await client.post("/search", json={"query": "machine", "filters": filters})
        assert response.status_code == status, (filters, response.text)
        assert (status == 403) is ("Filter bypass attempt detected" in response.json().get("detail", ""))


async def test_orch_007_requests_are_checked_when_they_are_sent_not_when_they_are_made(
    client: httpx2.AsyncClient,
) -> None:
    """D6: the body of a refusal is one sentence, made where the search is made."""
    bad = [
        SearchRequest(query="x", top_k=0),
        SearchRequest(query="x", limit=-1),
        SearchRequest(query="x" * 10_001),
        SearchRequest(query="x", mode="zz"),
        SearchRequest(query="x", min_score=2.0),
        SearchRequest(query="x", bm25_candidates=0),
        SearchRequest(query="x", vector_candidates=1_001),
        SearchRequest(query="x", explain_documents=["x"] * 21),
        SearchRequest(query="x", explain_documents=["x" * 201]),
    ]
    for request in bad:
        response = await client.post("/search", json=request.dict())
        assert response.status_code == 422, request
        assert isinstance(response.json()["detail"], str)
        (one,) = (await client.post("/search/batch", json={"searches": [request.dict()]})).json()["answers"]
        assert one["status"] == 422
    schema = (await client.get("/openapi.json")).json()["components"]["schemas"]["SearchRequest"]["properties"]
    assert (schema["top_k"]["minimum"], schema["top_k"]["maximum"], schema["query"]["maxLength"]) == (1, 1000, 10_000)
    assert schema["mode"]["enum"] == ["hybrid", "lexical", "strict", "vector"]
