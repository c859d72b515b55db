"""AC-ORCH-004, 008, 009 (case memory) and 010 C over HTTP by their ids, with a `CBRSystem` beside the service.

Both see the same cases (D43): in an SQLite file, and in the database of the service.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from unittest import mock

import httpx2
import pytest
import pytest_asyncio

from dtrag import CBRQualityUpdateRequest, CBRSystem, CBRUpdateRequest
from dtrag.delivery.api.app import create_app
from tests.store import Databases


@pytest_asyncio.fixture(params=["sqlite", "postgres"])
async def client(
    request: pytest.FixtureRequest, databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[httpx2.AsyncClient]:
    monkeypatch.setenv("CBR_ENABLED", "true")
    api = create_app(databases.settings(cbr_data_dir=tmp_path if request.param == "sqlite" else None))
    async with (
        api.router.lifespan_context(api),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(api), base_url="http://127.0.0.1") as client,
    ):
        yield client


@pytest_asyncio.fixture
async def cbr_system(client: httpx2.AsyncClient) -> AsyncIterator[CBRSystem]:
    """That of the open app."""
    with CBRSystem() as system:
        yield system


async def test_orch_008_crud_over_http(client: httpx2.AsyncClient, cbr_system: CBRSystem) -> None:
    case_id = "test-case-001"
    cbr_system.add_case({
        "query": "test query",
        "category_path": ["AI"],
        "content": "test content",
        "quality_score": 0.7
    }, case_id=case_id)  # fmt: skip

    response = await client.get(f"/cbr/cases/{case_id}")

    assert response.status_code == 200
    data = response.json()
    assert data["case_id"] == case_id
    assert data["query"] == "test query"
    assert data["quality_score"] == 0.7

    update_request = CBRUpdateRequest(
        query="updated query",
        category_path=["AI", "ML"],
        content="updated content",
        quality_score=0.8,
        metadata={"version": "2.0"},
    )

    response = await client.put(f"/cbr/cases/{case_id}", json=update_request.dict())

    assert response.status_code == 200
    data = response.json()
    assert data["status"] == "success"
    assert "updated_fields" in data

    updated_case = cbr_system.get_case_by_id(case_id)
    assert updated_case is not None
    assert updated_case.query == "updated query"
    assert updated_case.quality_score == 0.8

    quality_request = CBRQualityUpdateRequest(quality_score=0.9)

    response = await client.put(f"/cbr/cases/{case_id}/quality", json=quality_request.dict())

    assert response.status_code == 200
    data = response.json()
    assert data["quality_score"] == 0.9
    assert "previous_quality_score" in data

    updated_case = cbr_system.get_case_by_id(case_id)
    assert updated_case is not None
    assert updated_case.quality_score == 0.9

    assert (await client.put(f"/cbr/cases/{case_id}", json=CBRUpdateRequest().dict())).status_code == 400  # D45

    response = await client.delete(f"/cbr/cases/{case_id}")

    assert response.status_code == 200
    data = response.json()
    assert data["status"] == "success"

    assert cbr_system.get_case_by_id(case_id) is None
    assert (await client.get(f"/cbr/cases/{case_id}")).status_code == 404


async def test_orch_009_a_hundred_suggestions_at_once(client: httpx2.AsyncClient, cbr_system: CBRSystem) -> None:
    for number in range(20):
        cbr_system.add_case({"query": f"query {number}", "category_path": ["AI"], "content": "c"})
    tasks = [
        client.post("/cbr/suggest", json={
            "query": f"query {i}",
            "k": 5
        })
        for i in range(100)
    ]  # fmt: skip

    results = await asyncio.gather(*tasks)

    successful = sum(1 for r in results if r.status_code == 200)
    assert successful >= 95
    for number, result in enumerate(results):
        if result.status_code == 200:
            suggested = [suggestion["query"] for suggestion in result.json()["suggestions"]]
            assert (len(suggested), f"query {number}" in suggested[:1]) == (5, number < 20)
    assert cbr_system.get_stats()["similarity_method_usage"] == {"cosine": successful}


async def test_orch_010_c_the_memory_is_off(client: httpx2.AsyncClient) -> None:
    with mock.patch("os.getenv", return_value="false"):
        response = await client.post("/cbr/suggest", json={
            "query": "test",
            "k": 5
        })  # fmt: skip

        assert response.status_code == 501
        assert "CBR system is not enabled" in response.json()["detail"]
    assert (await client.post("/cbr/suggest", json={"query": "test", "k": 5})).status_code == 200
