"""Callers without a key where some branches are public: what they may do, what is kept of them, what it may cost."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from dtrag.core.access.api_key import new_secret
from dtrag.errors import Conflict, InvalidInput
from dtrag.governance.public_access import OWNER, SPENT, public_grant
from dtrag.settings import Settings
from tests.api.confined import CANARY, House, house
from tests.api.shape import FORM, assert_failure
from tests.api.test_keys import client_of
from tests.api.test_route_matrix import (
    MINE,
    ROUTES,
    THEIRS,
    UPLOAD,
    Address,
    Kind,
    enabled,  # noqa: F401 - a fixture: the case memory has routes, too
    made_once,
    same,
    send,
)
from tests.cases import each
from tests.model_server import ModelServer
from tests.store import Databases

QUESTION = "What does machine learning find?"
MANY = 1_000_000
FAR = ("203.0.113.7", 1)


@pytest_asyncio.fixture(scope="module")
async def built(houses_of_module: Databases) -> AsyncIterator[House]:
    settings = houses_of_module.settings(
        public="AI/ML, Nowhere",
        public_rate_per_minute=MANY,
        public_rate_in_all=MANY,
        trace_text="on",
        review_below=0.99,
    )
    async with house(settings) as running:
        await running.client("admin", None, "admin")
        yield running


@pytest_asyncio.fixture(scope="module")
async def anyone(built: House) -> AsyncIterator[httpx2.AsyncClient]:
    """A client without a key, on another machine."""
    async with client_of(built.api, address=FAR) as client:
        yield client


@pytest.fixture(scope="module")
def lasting() -> dict[tuple[Kind, str], str]:
    return {}


@each("address", ROUTES)
async def test_only_questions_and_reading_are_open(
    built: House, anyone: httpx2.AsyncClient, lasting: dict[tuple[Kind, str], str], address: Address
) -> None:
    described = ROUTES[address]
    objects = [""]
    if described.about:
        objects = [await made_once(lasting, built, described.about, branch) for branch in (MINE, THEIRS)]
        objects.append(str(uuid.uuid4()))
    answers = [await send(anyone, address, object_id) for object_id in objects]
    if described.need != "browse":
        assert len({assert_failure(response, 401)["detail"] for response in answers}) == 1
        return
    assert answers[0].status_code == described.own, answers[0].text
    assert CANARY not in answers[0].text
    if described.about:
        theirs, missing = answers[1:]
        assert_failure(missing, 404)
        assert same(theirs, objects[1]) == same(missing, objects[2])


async def test_a_key_counts_as_before(built: House, anyone: httpx2.AsyncClient) -> None:
    assert (await anyone.get("/session")).json() == {
        "kind": "public",
        "name": "public",
        "role": "public",
        "scope": ["AI/ML", "Nowhere"],
        "csrf": None,
        "expires_at": None,
        "public": True,
        "provider": None,
        "page_name": "",
        "page_colour": "",
        "regulations": False,
    }
    assert (await anyone.get("/documents", headers={"x-api-key": new_secret()})).status_code == 401
    ended = {"cookie": "dtrag_session=" + "x" * 43}
    assert (await anyone.get("/documents", headers=ended)).status_code == 401
    who = await anyone.get("/session", headers=ended)
    assert who.json()["kind"] == "public"
    assert 'dtrag_session=""' in who.headers["set-cookie"]
    assert (await built.clients["admin"].get("/session")).json()["role"] == "admin"


async def test_while_no_key_exists_this_machine_is_public_too(houses: Databases) -> None:
    async with house(houses.settings(public="AI/ML")) as running, client_of(running.api) as local:
        listed = (await local.get("/documents")).json()["documents"]
        assert {tuple(each["taxonomy_path"]) for each in listed} == {("AI", "ML")}
        assert_failure(await local.post("/documents", content=UPLOAD, headers=FORM), 401)
        assert_failure(await local.get("/documents", headers={"x-api-key": new_secret()}), 401)


async def test_filters_do_not_lead_out(built: House, anyone: httpx2.AsyncClient) -> None:
    body = {"query": CANARY, "filters": {"taxonomy_paths": [["HR"]]}}
    assert_failure(await anyone.post("/search", json=body), 403)
    assert (await built.denials())[-1]["actor"] == "public"


async def test_no_conversation_is_kept(built: House, anyone: httpx2.AsyncClient) -> None:
    """Not even one whose id others could guess."""
    for question in (QUESTION, "And what is it?"):
        body = {"message": question, "conversation_id": "talk"}
        assert (await anyone.post("/chat/run", json=body)).json()["conversation_id"] == ""
    assert await built._rows("select 1 as n from conversations") == []
    earlier = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": "Rules."}]
    messages = {"messages": [*earlier, {"role": "user", "content": "Which rules does it find?"}]}
    assert (await anyone.post("/chat/run", json=messages)).status_code == 200


async def test_the_case_memory_and_the_review_are_not_touched(built: House, anyone: httpx2.AsyncClient) -> None:
    """Neither does an answer show what others asked, nor is anything kept of the question."""
    kim = await built.client("kim", ["AI/ML"], "reader")
    body = {"message": "What does a decision tree ask?"}
    trace_id = (await kim.post("/chat/run", json=body)).json()["metadata"]["trace_id"]
    assert (await kim.post("/chat/feedback", json={"trace_id": trace_id, "thumbs": "up"})).json()["case_id"]
    known = (await kim.post("/chat/run", json=body)).json()
    assert known["answered_before"]["question"] == body["message"]
    unsure = {"message": "Is a switch a machine?"}
    assert (await kim.post("/chat/run", json=unsure)).json()["metadata"]["hitl_required"] is True
    await built.app.retention.flush()
    kept, waiting = await built._rows("select count(*) as n from cbr_logs"), await built.waiting()
    for asked in (body, {"message": "Is a tree a machine?"}):
        answer = (await anyone.post("/chat/run", json=asked)).json()
        assert answer["sources"]
        assert (answer["answered_before"], answer["offered"]) == (None, [])
        assert answer["metadata"]["hitl_required"] is False
    await built.app.retention.flush()
    assert await built._rows("select count(*) as n from cbr_logs") == kept
    assert await built.waiting() == waiting


async def test_traces_have_no_text(built: House, anyone: httpx2.AsyncClient) -> None:
    asked = (await anyone.post("/ask", json={"question": f"{QUESTION} Zebra?"})).json()
    trace = await built.app.traces.get(asked["trace_id"])
    assert (trace.owner, trace.question) == (OWNER, "")
    assert "Zebra" not in str(trace)
    own = (await built.clients["admin"].post("/ask", json={"question": f"{QUESTION} Gnu?"})).json()
    assert "Gnu" in str(await built.app.traces.get(own["trace_id"]))


async def test_agents_are_not_for_callers_without_a_key(built: House, anyone: httpx2.AsyncClient) -> None:
    agent = await built.app.agents.create("1.0.0", [MINE], name="Desk")
    assert [each["id"] for each in (await anyone.get("/v1/models")).json()["data"]] == ["dtrag"]
    body = {"message": QUESTION, "agent_id": str(agent.agent_id)}
    assert_failure(await anyone.post("/chat/run", json=body), 404)


async def test_tools_of_mcp_are_those_that_read(anyone: httpx2.AsyncClient) -> None:
    listed = (await anyone.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).json()
    names = {tool["name"] for tool in listed["result"]["tools"]}
    assert names == {"search", "fetch", "ask", "get_article", "list_categories", "verify_citations"}


async def test_pages_of_other_origins_may_not_ask(anyone: httpx2.AsyncClient) -> None:
    headers = {"origin": "https://evil.example"}
    assert_failure(await anyone.post("/ask", json={"question": QUESTION}, headers=headers), 403)
    listed = {"origin": "http://localhost:3000"}
    answer = await anyone.post("/ask", json={"question": QUESTION}, headers=listed)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, listed["origin"])


async def test_addresses_are_limited_and_all_of_them_together(houses: Databases) -> None:
    settings = houses.settings(public="AI/ML", public_rate_per_minute=3, public_rate_in_all=5)
    async with house(settings) as running:

        async def statuses(address: str, requests: int) -> list[int]:
            async with client_of(running.api, address=(address, 1)) as client:
                return [(await client.get("/session")).status_code for _ in range(requests)]

        assert await statuses("203.0.113.1", 4) == [200, 200, 200, 429]
        assert await statuses("203.0.113.2", 3) == [200, 200, 429]
        admin = await running.client("admin", None, "admin")
        assert (await admin.get("/session")).status_code == 200


async def test_models_have_a_budget(houses: Databases) -> None:
    with ModelServer("Rules. [1]") as model:
        named = {"llm": "openai:test", "llm_base_url": model.url, "llm_api_key": "x", "reader": "off"}
        settings = houses.settings(public="AI/ML", public_tokens_per_day=1, **named)
        async with house(settings) as running, client_of(running.api) as client:

            async def ask(number: int) -> dict[str, Any]:
                return dict((await client.post("/ask", json={"question": f"{QUESTION} {number}"})).json())

            first, second = await ask(1), await ask(2)
            assert (first["model"], second["model"]) == ("openai:test", None)
            assert SPENT in " ".join(second["notes"])
            assert second["citations"]
            calls = len(model.requests)
            admin = await running.client("admin", None, "admin")
            assert (await admin.post("/ask", json={"question": QUESTION})).json()["model"] == "openai:test"
            assert len(model.requests) > calls


async def test_who_sees_a_document_and_what_a_move_makes_public(built: House) -> None:
    admin = built.clients["admin"]
    listed = (await admin.get("/documents?limit=100")).json()["documents"]
    ids = {each["taxonomy_path"][0]: each["document_id"] for each in listed}
    sights = (await admin.get(f"/documents/{ids['AI']}/who")).json()["sights"]
    assert {"kind": "public", "name": "public", "branch": ["AI", "ML"], "role": "public", "id": ""} in sights
    assert "public" not in {each["kind"] for each in (await admin.get(f"/documents/{ids['HR']}/who")).json()["sights"]}
    version = await built.app.taxonomy.propose([{"op": "move", "path": "HR/Salary", "to": "AI/ML"}])
    preview = await built.app.taxonomy.preview(version.version)
    assert ("public", "public") in {(each.kind, each.name) for each in preview.widened}
    with pytest.raises(Conflict, match="become visible to"):
        await built.app.taxonomy.activate(version.version)


async def test_all_categories_are_public_without_the_documents_that_have_none(houses: Databases) -> None:
    async with house(houses.settings(public="*")) as running, client_of(running.api, address=FAR) as anyone:
        admin = await running.client("admin", None, "admin")
        added = await admin.post("/documents", files={"files": ("loose.md", f"# Loose\n\n{CANARY} in no category.")})
        assert added.status_code == 201
        everything = (await admin.get("/documents")).json()["documents"]
        seen = (await anyone.get("/documents")).json()["documents"]
        assert (
            {row["document_id"] for row in seen}
            == {row["document_id"] for row in everything if row["taxonomy_path"]}
            != {row["document_id"] for row in everything}
        )
        assert (await anyone.get("/session")).json()["scope"] == ["*"]
        found = (await anyone.post("/search", json={"query": CANARY})).json()["results"]
        assert [row["taxonomy_path"] for row in found] == [["HR", "Salary"]]
        branches = (await anyone.get("/overview")).json()["branches"]
        assert {tuple(row["path"]) for row in branches} >= {("AI",), ("학사",)}
        assert (await anyone.post("/ask", json={"question": QUESTION})).status_code == 200
        [pay] = [row["document_id"] for row in seen if row["taxonomy_path"] == ["HR", "Salary"]]
        sights = (await admin.get(f"/documents/{pay}/who")).json()["sights"]
        assert {"kind": "public", "name": "public", "branch": None, "role": "public", "id": ""} in sights
        await admin.post("/documents", files={"files": ("new.md", "# New\n\nA new branch.")}, data={"category": "New"})
        assert len((await anyone.get("/documents")).json()["documents"]) == len(seen) + 1


@each("text", ["AI//ML", "a/" * 9, " , /", "*,AI"])
def test_a_setting_that_names_no_paths_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="DTRAG_PUBLIC"):
        public_grant(text)


@each("name", ["public_rate_per_minute", "public_rate_in_all"])
def test_a_rate_is_at_least_one(name: str) -> None:
    with pytest.raises(InvalidInput, match=name.upper()):
        Settings.load(environ={}, public="AI", **{name: 0}).check()
