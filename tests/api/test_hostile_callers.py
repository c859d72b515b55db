"""Hostile callers: keys that are none, keys where none belong, pages and hosts of others, and too many requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import httpx2
import pytest
import pytest_asyncio

from tests.api.confined import House, house
from tests.store import Databases

QUESTION = {"query": "machine learning"}


@pytest_asyncio.fixture
async def built(houses: Databases) -> AsyncIterator[House]:
    async with house(houses.settings()) as made:
        await made.client("everything", None, "admin")
        yield made


def anonymous(built: House) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=built.api), base_url="http://localhost:8001", timeout=60
    )


async def test_case_39_invalid_keys_get_the_same_answer_and_are_not_repeated(
    built: House, caplog: pytest.LogCaptureFixture
) -> None:
    keys = built.app.keys
    revoked = (await keys.create("gone", None, "reader")).secret
    await keys.revoke("gone")
    soon = datetime.now(UTC) + timedelta(seconds=3_600)
    right = (await keys.create("right", None, "reader", expires=soon)).secret
    headers: dict[str, dict[str, str]] = {
        "wrong": {"authorization": f"Bearer {right[:-4]}0000"},
        "revoked": {"authorization": f"Bearer {revoked}"},
        "of another shape": {"x-api-key": "' or 1=1; drop table api_keys; --"},
    }
    bodies = []
    async with anonymous(built) as client:
        for sent in headers.values():
            response = await client.post("/search", json=QUESTION, headers=sent)
            assert response.status_code == 401
            bodies.append({**response.json(), "request_id": ""})
        assert bodies[0] == bodies[1] == bodies[2]
        missing = await client.post("/search", json=QUESTION)
        in_query = await client.post(f"/search?key={right}&api_key={right}", json=QUESTION)
        assert (missing.status_code, in_query.status_code) == (401, 401)
        assert right not in in_query.text
        reader = {"authorization": f"Bearer {right}"}
        assert (await client.post("/search", json=QUESTION, headers=reader)).status_code == 200
        written = await client.post("/documents", files={"files": ("a.md", b"# A")}, headers=reader)
        assert written.status_code == 403
        schema = await client.get("/openapi.json", headers=reader)
        assert right not in schema.text
    assert right not in caplog.text
    assert right not in str(await built.audited())


async def test_case_40_pages_of_others_and_hosts_of_others_are_refused(built: House) -> None:
    client = built.clients["everything"]
    asked = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    preflight = await client.options("/search", headers=asked)
    assert "access-control-allow-origin" not in preflight.headers
    posted = await client.post("/search", json=QUESTION, headers={"origin": "https://evil.example"})
    assert posted.status_code == 403
    assert "access-control-allow-origin" not in posted.headers
    assert (await client.post("/search", json=QUESTION, headers={"host": "evil.example"})).status_code == 400


async def test_case_40_a_flood_of_one_key_does_not_affect_others(built: House) -> None:
    secret = (await built.app.keys.create("flood", None, "reader", rate=5)).secret
    async with anonymous(built) as client:
        flood = [
            await client.post("/search", json=QUESTION, headers={"authorization": f"Bearer {secret}"})
            for _ in range(12)
        ]
    refused = [response for response in flood if response.status_code == 429]
    assert len(refused) >= 6
    assert all(int(response.headers["retry-after"]) >= 1 for response in refused)
    assert (await built.clients["everything"].post("/search", json=QUESTION)).status_code == 200


async def test_a_flood_of_refusals_does_not_fill_the_log(built: House) -> None:
    async with anonymous(built) as client:
        for _ in range(90):
            assert (await client.post("/search", json=QUESTION)).status_code == 401
    lines = [line for line in await built.audited() if line["actor"] == "anonymous"]
    assert 60 <= len(lines) < 75
