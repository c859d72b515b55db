"""The review queue over HTTP: who sees what waits, who may decide, and where the document is seen afterwards."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest_asyncio

from tests.api.confined import House, house
from tests.api.shape import FORM, assert_failure, form
from tests.cases import each
from tests.integration.books import shelf
from tests.store import Databases

UNKNOWN = "6f0d9a52-0c3e-4b7c-9a39-0d3a3a8e4d11"
LEDGER = {"id": "1", "title": "Ledger", "text": "The ledger lists debits and credits of the quarter."}


@pytest_asyncio.fixture
async def built(houses: Databases, tmp_path: Path) -> AsyncIterator[House]:
    async with house(houses.settings()) as running:
        for name, rows in (("shelf", shelf(20)), ("ledger", [LEDGER])):
            path = tmp_path / f"{name}.jsonl"
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
            await running.app.ingest([path])
        yield running


@pytest_asyncio.fixture
async def boss(built: House) -> httpx2.AsyncClient:
    return await built.client("boss", None, "editor")


async def only_item(client: httpx2.AsyncClient) -> dict[str, Any]:
    response = await client.get("/review")
    assert response.status_code == 200, response.text
    body = response.json()
    assert (body["total"], body["limit"], body["offset"]) == (1, 100, 0)
    [item] = body["items"]
    assert isinstance(item, dict)
    return item


async def titles(client: httpx2.AsyncClient, query: str) -> set[str]:
    response = await client.post("/search", json={"query": query})
    assert response.status_code == 200, response.text
    return {passage["title"] for passage in response.json()["results"]}


async def test_an_upload_says_where_its_documents_are_and_why(boss: httpx2.AsyncClient) -> None:
    async def placed(name: bytes, text: bytes, *category: bytes) -> dict[str, Any]:
        parts = [("files", name, text), *(("category", None, path) for path in category)]
        response = await boss.post("/documents", content=form(*parts), headers=FORM)
        [document] = response.json()["documents"]
        assert isinstance(document["placement"], dict), response.text
        return document["placement"] | {"document_id": document["document_id"]}

    sure = await placed(
        b"soup.md",
        b"# Soup\n\n" + b"First simmer onions, then butter, then whisk the broth, then season the soup with thyme.",
    )
    assert (sure["taxonomy_path"], sure["hitl"]) == (["House", "Kitchen"], False)
    assert sure["confidence"] >= 0.7
    assert {row["code"] for row in sure["reason_statements"]} == {"category_words"}
    unsure = await placed(b"ledger.md", b"# Ledger\n\nThe ledger lists debits.")
    assert unsure["hitl"]
    assert unsure["reasons"]
    there = (await boss.get(f"/documents/{unsure['document_id']}")).json()
    assert there["taxonomy_path"] == []
    moved = await placed(b"ledger.md", b"# Ledger\n\nThe ledger lists debits.", b"House/Garden")
    assert moved["document_id"] == unsure["document_id"]
    assert (moved["taxonomy_path"], moved["confidence"], moved["hitl"]) == (["House", "Garden"], 1.0, False)
    assert [row["code"] for row in moved["reason_statements"]] == ["category_stated"]
    there = (await boss.get(f"/documents/{unsure['document_id']}")).json()
    assert there["taxonomy_path"] == ["House", "Garden"]
    waiting = (await boss.get("/review")).json()["items"]
    assert unsure["document_id"] not in {item["document_id"] for item in waiting}


async def test_a_correction(built: House, boss: httpx2.AsyncClient) -> None:
    garden = await built.client("garden", ["House/Garden"])
    kitchen = await built.client("kitchen", ["House/Kitchen"])
    item = await only_item(boss)
    assert (item["title"], item["status"], item["decided_at"]) == ("Ledger", "waiting", None)
    assert "Ledger" not in await titles(garden, "ledger") | await titles(kitchen, "ledger")
    body = {"path": ["House", "Garden"], "note": "of the shed"}
    response = await boss.post(f"/review/{item['item_id']}/correct", json=body)
    assert response.status_code == 200, response.text
    assert (response.json()["status"], response.json()["note"]) == ("corrected", "of the shed")
    assert "Ledger" in await titles(garden, "ledger")
    assert "Ledger" not in await titles(kitchen, "ledger")
    assert_failure(await boss.post(f"/review/{item['item_id']}/skip", json={}), 409)
    assert (await boss.get(f"/review/{item['item_id']}")).json()["status"] == "corrected"


async def test_scoped_callers_do_not_see_the_queue(built: House, boss: httpx2.AsyncClient) -> None:
    garden = await built.client("garden", ["House/Garden"])
    item = await only_item(boss)
    assert (await garden.get("/review")).json()["items"] == []
    foreign = assert_failure(await garden.get(f"/review/{item['item_id']}"), 404)
    unknown = assert_failure(await garden.get(f"/review/{UNKNOWN}"), 404)
    assert foreign["detail"].replace(item["item_id"], UNKNOWN) == unknown["detail"]
    for action, body in (("approve", {}), ("skip", {}), ("correct", {"path": ["House", "Garden"]})):
        assert_failure(await garden.post(f"/review/{item['item_id']}/{action}", json=body), 404)
        assert_failure(await garden.post(f"/review/{UNKNOWN}/{action}", json=body), 404)
    assert (await only_item(boss))["status"] == "waiting"


async def test_readers_cannot_decide(built: House, boss: httpx2.AsyncClient) -> None:
    reader = await built.client("reader", None, "reader")
    item = await only_item(boss)
    assert_failure(await reader.get("/review"), 403)
    assert_failure(await reader.post(f"/review/{item['item_id']}/skip", json={}), 403)
    assert (await reader.post("/classify", json={"text": "simmer the broth"})).status_code == 200


async def test_classify_writes_nothing_and_names_only_what_may_be_seen(built: House, boss: httpx2.AsyncClient) -> None:
    text = "Simmer onions, whisk the broth, season the soup with thyme and prune nothing."
    asked = {"text": text, "title": "Soup", "chunk_id": "a:0"}
    body = (await boss.post("/classify", json=asked)).json()
    assert (body["canonical"], body["hitl"], body["chunk_id"]) == (["House", "Kitchen"], False, "a:0")
    assert body["candidates"][0] == {"path": ["House", "Kitchen"], "confidence": body["confidence"]}
    garden = await built.client("garden", ["House/Garden"])
    narrowed = await garden.post("/classify", json=asked)
    assert "Kitchen" not in narrowed.text
    assert narrowed.json()["canonical"] in ([], ["House", "Garden"])
    assert narrowed.json()["hitl"] is True
    await only_item(boss)


@each(
    "body, status",
    [
        ({}, 422),
        ({"text": ""}, 422),
        ({"text": " \n"}, 422),
        ({"text": "x", "extra": 1}, 422),
        ({"text": 7}, 422),
        ({"text": "x" * 200_001}, 422),
        ({"text": "\u0000\ufeff\u202e"}, 200),
        ({"text": "한 글 " * 10_000}, 200),
    ],
)
async def test_classify_takes_only_texts(boss: httpx2.AsyncClient, body: dict[str, Any], status: int) -> None:
    response = await boss.post("/classify", json=body)
    assert response.status_code == status, response.text[:300]
    if status != 200:
        assert_failure(response, status)


@each("path", [[], ["House", "Attic"], ["..", "Garden"], ["House/Garden"], ["House", None], "House/Garden", [""] * 9])
async def test_a_correction_needs_a_category_of_the_tree(boss: httpx2.AsyncClient, path: Any) -> None:
    item = await only_item(boss)
    assert_failure(await boss.post(f"/review/{item['item_id']}/correct", json={"path": path}), 422)
    await only_item(boss)


@each("item_id", ["x", "' or 1=1 --", "%00", "0" * 300])
async def test_invalid_ids_are_unknown_items(boss: httpx2.AsyncClient, item_id: str) -> None:
    assert_failure(await boss.get(f"/review/{item_id}"), 404)
