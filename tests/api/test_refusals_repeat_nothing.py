"""What is not valid is refused in words that repeat neither keys of filters nor names of categories that were sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from tests.api.confined import house
from tests.api.shape import assert_failure
from tests.store import Databases

SENT = "Qwertzuiop"
PATH = [f"{SENT};"]


@pytest_asyncio.fixture
async def client(houses: Databases) -> AsyncIterator[httpx2.AsyncClient]:
    async with house(houses.settings()) as built:
        yield await built.client("a", ["AI/ML"])


async def test_no_refusal_repeats_what_was_sent(client: httpx2.AsyncClient) -> None:
    filters: list[dict[str, Any]] = [
        {SENT: 1},
        {"metadata": {SENT: 1}},
        {"content_types": [SENT]},
        {"date_from": SENT},
        {"taxonomy_paths": [PATH]},
        {"taxonomy_paths": [[f"{SENT}\u0430"]]},
    ]
    agent = {"version": "1.0.0", "node_paths": [["AI", "ML"]]}
    requests: list[tuple[str, Any]] = [
        *(("/search", {"query": "x", "filters": sent}) for sent in filters),
        *(("/chat/run", {"message": "x", "context": {"filters": sent}}) for sent in filters),
        ("/search", {"query": "x", "mode": SENT}),
        ("/agents/from-category", {**agent, "node_paths": [PATH]}),
        ("/agents/from-category", {**agent, "version": SENT}),
        ("/agents/from-category", {**agent, "options": {"mcp_tools": [SENT]}}),
        ("/filter/test", {"allowed_paths": [PATH], "test_documents": []}),
    ]
    for route, body in requests:
        detail = assert_failure(await client.post(route, json=body), 422)["detail"]
        assert SENT not in detail, (route, body)
    checked = (await client.post("/filter/validate", json=[PATH])).json()
    assert (checked["valid"], SENT in checked["message"]) == (False, False)


@pytest.mark.parametrize("name", [SENT])
async def test_a_batch_repeats_nothing_either(client: httpx2.AsyncClient, name: str) -> None:
    answered = await client.post("/search/batch", json={"searches": [{"query": "x", "filters": {name: 1}}]})
    [failure] = answered.json()["answers"]
    assert (failure["status"], name in failure["detail"]) == (422, False)
