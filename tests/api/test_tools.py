"""Tools over HTTP: who sees which, and an administrator's word about those of MCP servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest_asyncio

from dtrag.tools import execute_tool
from tests.api.confined import House, house
from tests.api.shape import assert_failure
from tests.mcp_setup import ADD, PATIENT_S, Behaviour
from tests.store import Databases

BUILT_IN = ["calculator", "doc_parser", "web_search"]


@pytest_asyncio.fixture
async def built(houses: Databases, tmp_path: Path) -> AsyncIterator[House]:
    path = tmp_path / "servers.toml"
    broken = "[servers.broken]\ncommand = ['/nowhere/at/all']\n"
    path.write_text(broken + Behaviour(tmp_path).table(), "utf-8")
    async with house(houses.settings(mcp_servers=path)) as running:
        await running.app.mcp.refresh(PATIENT_S)
        yield running


async def tools_of(client: httpx2.AsyncClient) -> dict[str, dict[str, Any]]:
    response = await client.get("/tools")
    assert response.status_code == 200, response.text
    return {tool["name"]: tool for tool in response.json()["tools"]}


async def test_a_tool_from_new_to_revoked(built: House) -> None:
    boss = await built.client("boss", None, "admin")
    reader = await built.client("reader", ["AI"], "reader")
    found = await tools_of(boss)
    assert list(found) == [*BUILT_IN, "sums.add"]
    new = found["sums.add"]
    assert (new["server"], new["state"], new["usable"], new["approved_by"]) == ("sums", "new", False, None)
    assert list(await tools_of(reader)) == BUILT_IN

    other = await boss.post("/tools/sums.add/approve", json={"fingerprint": "0" * 64})
    assert_failure(other, 409)
    done = await boss.post("/tools/sums.add/approve", json={"fingerprint": new["fingerprint"]})
    assert done.status_code == 200, done.text
    assert (done.json()["state"], done.json()["usable"], done.json()["approved_by"]) == ("approved", True, "boss")
    assert (await tools_of(reader))["sums.add"]["usable"]
    assert (await execute_tool("sums.add", ADD, registry=built.app.tools)).result == "42"

    gone = await boss.delete("/tools/sums.add/approve")
    assert (gone.status_code, gone.content) == (204, b"")
    assert_failure(await boss.delete("/tools/sums.add/approve"), 404)
    assert list(await tools_of(reader)) == BUILT_IN
    changes = [(line["actor"], line["action"]) for line in await built.audited() if "sums.add" in line["subjects"]]
    assert ("boss", "tools.approve") in changes
    assert ("boss", "tools.revoke") in changes
    assert ("boss", "POST /tools/{name}/approve") in changes


async def test_only_administrators_see_the_servers(built: House) -> None:
    boss = await built.client("boss", None, "admin")
    servers = {server["name"]: server for server in (await boss.get("/tools")).json()["servers"]}
    assert servers["sums"]["problem"] == ""
    assert servers["sums"]["tools"] == 1
    assert "cannot be started" in servers["broken"]["problem"]
    for client in (await built.client("part", ["AI"], "admin"), await built.client("editor", None)):
        assert (await client.get("/tools")).json()["servers"] == []
        assert_failure(await client.post("/tools/sums.add/approve", json={"fingerprint": "0" * 64}), 403)
        assert_failure(await client.delete("/tools/sums.add/approve"), 403)


async def test_what_cannot_be_approved(built: House) -> None:
    boss = await built.client("boss", None, "admin")
    zeros = {"fingerprint": "0" * 64}
    for name in ("calculator", "sums.subtract", "other.add", "sums.add%20", "x" * 3_000):
        assert_failure(await boss.post(f"/tools/{name}/approve", json=zeros), 404)
    assert_failure(await boss.post("/tools/broken.add/approve", json=zeros), 503)
    for body in ({}, {"fingerprint": "0"}, {"fingerprint": None}, zeros | {"more": 1}):
        assert_failure(await boss.post("/tools/sums.add/approve", json=body), 422)
