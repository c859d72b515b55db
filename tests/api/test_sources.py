"""A document part by part, who can see it, keys and settings over HTTP: what the web page shows beside an answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest_asyncio
from httpx2 import AsyncClient

from dtrag.governance.visibility import MAX_CHARACTERS
from tests.api.confined import House
from tests.api.shape import FORM, assert_failure, form
from tests.api.test_keys import client_of
from tests.pdf_writer import Placed, write_pdf

TEXT = "# 휴학 😀\n\n제1조 휴학은 두 학기까지 할 수 있다.\n\n𠮷 A leave of absence takes at most two semesters."


@pytest_asyncio.fixture
async def admin(built: House) -> AsyncClient:
    return await built.client("admin", None, "admin")


async def upload(admin: AsyncClient, name: str, content: bytes, category: str = "학사") -> str:
    sent = form(("files", name.encode(), content), ("category", None, category.encode()))
    response = await admin.post("/documents", content=sent, headers=FORM)
    assert response.status_code == 201, response.text
    return str(response.json()["documents"][0]["document_id"])


async def test_every_citation_is_found_in_its_source(built: House, admin: AsyncClient) -> None:
    await upload(admin, "leave.md", TEXT.encode())
    answer = (await admin.post("/ask", json={"question": "How many semesters does a leave of absence take?"})).json()
    assert answer["citations"]
    for citation in answer["citations"]:
        place = {"start": max(0, citation["start"] - 5), "end": citation["end"] + 5}
        part = (await admin.get(f"/documents/{citation['document_id']}/text", params=place)).json()
        first = citation["start"] - part["start"]
        assert part["text"][first : first + citation["end"] - citation["start"]] == citation["quote"]
        assert citation["chunk_id"] in [passage["chunk_id"] for passage in part["passages"]]


async def test_parts_of_a_text_join_to_the_whole(admin: AsyncClient) -> None:
    document_id = await upload(admin, "leave.md", TEXT.encode())
    whole = (await admin.get(f"/documents/{document_id}")).json()
    text, start = "", 0
    while start < whole["characters"]:
        part = (await admin.get(f"/documents/{document_id}/text?start={start}&end={start + 7}")).json()
        assert part["characters"] == whole["characters"]
        text, start = text + part["text"], part["end"]
    assert text == whole["text"]
    passages = (await admin.get(f"/documents/{document_id}/passages")).json()
    assert passages["total"] == len(passages["passages"]) == whole["chunks"]
    for passage in passages["passages"]:
        assert whole["text"][passage["start"] : passage["end"]].strip()
    too_long = await admin.get(f"/documents/{document_id}/text?end={MAX_CHARACTERS + 1}")
    assert_failure(too_long, 422)
    assert_failure(await admin.get(f"/documents/{document_id}/text?start=9&end=3"), 422)


async def test_passages_of_a_pdf_have_their_page(admin: AsyncClient) -> None:
    pages = [f"Chapter {number}. The pump of hall {number} is checked every week." for number in (1, 2, 3)]
    document_id = await upload(admin, "pumps.pdf", write_pdf([[Placed(72, 700, text)] for text in pages]))
    listed = (await admin.get(f"/documents/{document_id}/text")).json()
    found = {passage["page"] for passage in listed["passages"]}
    assert found <= {1, 2, 3}
    assert 1 in found


async def test_a_quotation_after_a_page_break_has_the_page_on_which_it_begins(admin: AsyncClient) -> None:
    first = ("The pump of hall seven is checked every week by the engineer and", "the valve of hall eight is")
    second = (
        "replaced every year. A spare turbine costs 4200 euros in Lisbon.",
        "Spare turbines are kept in hall nine.",
    )
    pages = [[Placed(72, 700 - 14 * row, text) for row, text in enumerate(lines)] for lines in (first, second)]
    document_id = await upload(admin, "turbines.pdf", write_pdf(pages))
    (passage,) = (await admin.get(f"/documents/{document_id}/passages")).json()["passages"]
    assert passage["page"] == 1
    question = "How much does a spare turbine cost in Lisbon?"
    (citation, *_) = (await admin.post("/ask", json={"question": question})).json()["citations"]
    assert "4200" in citation["quote"]
    assert (citation["page"], citation["label"]) == (2, "turbines, p. 2")
    (source, *_) = (await admin.post("/chat/run", json={"message": question})).json()["sources"]
    assert (source["page"], source["label"]) == (2, "turbines, p. 2")


async def test_who_sees_a_document_and_why(built: House, admin: AsyncClient) -> None:
    await built.client("ml", ["AI/ML"], "reader")
    await built.client("ai", ["HR", "AI"], "editor")
    await built.client("hr", ["HR"], "reader")
    await built.app.keys.create("revoked", ["AI"])
    await built.app.keys.revoke("revoked")
    agent = await built.app.agents.create("1.0.0", [["AI", "ML"]], name="Desk")
    await built.app.agents.create("1.0.0", [["AIX"]], name="Other")
    listed = (await admin.get("/documents?limit=100")).json()["documents"]
    [document_id] = [row["document_id"] for row in listed if row["title"] == "Trees"]
    seen = (await admin.get(f"/documents/{document_id}/who")).json()
    assert seen["category"] == ["AI", "ML"]
    assert [(sight["kind"], sight["name"], sight["branch"], sight["role"]) for sight in seen["sights"]] == [
        ("agent", "Desk", ["AI", "ML"], None),
        ("key", "admin", None, "admin"),
        ("key", "ai", ["AI"], "editor"),
        ("key", "ml", ["AI", "ML"], "reader"),
    ]
    assert seen["sights"][0]["id"] == str(agent.agent_id)
    assert not seen["without_keys"]
    for name, sees in (("ml", True), ("hr", False)):  # what the list says is what happens
        assert (await built.clients[name].get(f"/documents/{document_id}")).status_code == (200 if sees else 404)


async def test_a_document_without_a_category_is_seen_by_the_whole_tree_alone(built: House, admin: AsyncClient) -> None:
    await built.client("ml", ["AI/ML"], "reader")
    listed = await built.app.documents()
    (built.app.settings.data_dir / "loose.md").write_text("zzz qqq xxx", "utf-8")
    report = await built.app.ingest([built.app.settings.data_dir / "loose.md"])
    [read] = report.sources
    [document_id] = read.document_ids
    seen = (await admin.get(f"/documents/{document_id}/who")).json()
    assert len(await built.app.documents()) == len(listed) + 1
    if seen["category"] == []:
        assert [sight["name"] for sight in seen["sights"]] == ["admin"]


async def test_keys_are_created_listed_and_revoked(built: House, admin: AsyncClient) -> None:
    expires = (datetime.now(UTC) + timedelta(days=3)).replace(microsecond=0)
    body: dict[str, Any] = {"name": "HR/desk 1", "role": "editor", "scope": ["HR", ["AI", "ML"], "No/Such"]}
    made = await admin.post("/keys", json={**body, "expires_at": expires.isoformat(), "rate_per_minute": 50})
    assert made.status_code == 201
    created = made.json()
    assert created["unresolved"] == ["No/Such"]
    assert (created["scope"], created["role"], created["rate_per_minute"]) == (["HR", "AI/ML", "No/Such"], "editor", 50)
    assert datetime.fromisoformat(created["expires_at"]) == expires
    listed = await admin.get("/keys")
    assert created["secret"] not in listed.text
    [row] = [key for key in listed.json()["keys"] if key["name"] == "HR/desk 1"]
    assert row == {name: value for name, value in created.items() if name not in {"secret", "unresolved"}}
    async with client_of(built.api, {"x-api-key": created["secret"]}) as client:
        assert (await client.get("/documents")).json()["total"]["documents"] == 3
        assert_failure(await admin.post("/keys", json=body), 409)
        revoked = await admin.delete("/keys/HR/desk 1")
        assert revoked.json()["state"] == "revoked"
        assert_failure(await client.get("/documents"), 401)
    assert_failure(await admin.delete("/keys/HR/desk 1"), 404)
    for wrong in ({"name": ""}, {"name": "x", "role": "owner"}, {"name": "x", "scope": []}, {"name": "x", "rate": 1}):
        assert_failure(await admin.post("/keys", json=wrong), 422)
    past = {"name": "x", "expires_at": "2020-01-01T00:00:00"}
    assert_failure(await admin.post("/keys", json=past), 422)
    actions = [(row.entry.actor, row.entry.action) for row in await built.app.audit.newest(limit=20)]
    assert ("admin", "keys.create") in actions
    assert ("admin", "keys.revoke") in actions


async def test_settings_are_shown_without_secrets(built: House, admin: AsyncClient) -> None:
    shown = (await admin.get("/settings")).json()
    rows = {row["name"]: row for row in shown["settings"]}
    assert rows["embedder"]["value"] == "none"
    assert not rows["embedder"]["is_default"]
    assert rows["port"] == {
        "name": "port",
        "environment": "DTRAG_PORT",
        "value": 8001,
        "default": 8001,
        "is_default": True,
        "secret": False,
        "description": rows["port"]["description"],
        "change": None,
        "fixed": False,
        "changed_by": None,
        "changed_at": None,
    }
    assert all(row["value"] in {None, "(set)"} for row in shown["settings"] if row["secret"])
    assert {flag["name"] for flag in shown["flags"]} >= {"debate_mode"}


async def test_the_audit_log_is_searched_and_verified(built: House, admin: AsyncClient) -> None:
    reader = await built.client("reader", ["AI/ML"], "reader")
    [document] = (await reader.get("/documents?limit=1")).json()["documents"]
    await reader.get(f"/documents/{document['document_id']}/text")
    assert_failure(await reader.get("/keys"), 403)

    async def lines(**filters: str) -> list[tuple[str, str]]:
        response = await admin.get("/audit", params={"actor": "reader", **filters})
        return [(line["action"], line["decision"]) for line in response.json()["lines"]]

    assert await lines(decision="denied") == [("GET /keys", "denied")]
    about = await lines(subject=document["document_id"])
    assert {action for action, _ in about} == {"GET /documents", "GET /documents/{document_id}/text"}
    assert await lines(action="/TEXT") == [("GET /documents/{document_id}/text", "allowed")]
    assert await lines(until="2020-01-01") == []
    assert_failure(await admin.get("/audit", params={"decision": "maybe"}), 422)
    verdict = (await admin.get("/audit/verify")).json()
    assert (verdict["ok"], verdict["first_bad"], verdict["reason"]) == (True, None, "")
    again = (await admin.get("/audit/verify", params={"expect": verdict["head"]})).json()
    assert again["ok"]
    assert again["lines"] > verdict["lines"]
    other = f"{verdict['lines']}:{'0' * 64}"
    assert not (await admin.get("/audit/verify", params={"expect": other})).json()["ok"]
    assert_failure(await admin.get("/audit/verify", params={"expect": "x"}), 422)


async def test_the_reach_of_an_agent(built: House, admin: AsyncClient) -> None:
    agent = await built.app.agents.create("1.0.0", [["AI", "ML"]], name="Desk")
    assert (await admin.get(f"/agents/{agent.agent_id}/reach")).json()["documents"] == 2
    planned = await admin.post("/agents/reach", json={"node_paths": [["AI"], ["HR"]]})
    assert planned.json()["documents"] == 4
    reader = await built.client("reader", ["AI/ML"], "reader")
    assert (await reader.post("/agents/reach", json={"node_paths": [["AI"], ["HR"]]})).json()["documents"] == 2
    assert_failure(await admin.post("/agents/reach", json={"node_paths": []}), 422)
    assert_failure(await admin.post("/agents/reach", json={"node_paths": [[]]}), 422)
