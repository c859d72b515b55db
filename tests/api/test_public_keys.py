"""Keys for the pages of other sites: one agent, questions only, on their own origins."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator

import httpx2
import pytest
import pytest_asyncio

from dtrag.core.agent import Agent
from dtrag.errors import InvalidInput
from tests.api.confined import CANARY, House, house
from tests.api.shape import assert_failure
from tests.api.test_keys import client_of
from tests.api.test_route_matrix import (
    ROUTES,
    Address,
    enabled,  # noqa: F401 - a fixture: the case memory has routes, too
    make,
    send,
)
from tests.cases import each
from tests.store import Databases

SITE, OTHER = "https://www.example.org", "https://evil.example"
QUESTION = {"question": "What does machine learning find?"}


@pytest_asyncio.fixture(scope="module")
async def built(houses_of_module: Databases) -> AsyncIterator[House]:
    async with house(houses_of_module.settings()) as running:
        await running.client("admin", None, "admin")
        await running.client("reader", ["AI/ML"], "reader")
        yield running


@pytest_asyncio.fixture(scope="module")
async def desk(built: House) -> Agent:
    return await built.app.agents.create("1.0.0", [["AI", "ML"]], name="Desk")


@pytest_asyncio.fixture(scope="module")
async def site(built: House, desk: Agent) -> AsyncIterator[httpx2.AsyncClient]:
    """A page of the site, with its key."""
    created = await built.app.keys.create("site", role="public", agent=desk, origins=[SITE], rate=1_000_000)
    async with client_of(built.api, {"x-api-key": created.secret, "origin": SITE}) as client:
        yield client


@pytest_asyncio.fixture(scope="module")
async def program(built: House, desk: Agent) -> AsyncIterator[httpx2.AsyncClient]:
    """A program with a public key that is not limited to pages."""
    created = await built.app.keys.create("program", role="public", agent=desk, rate=1_000_000)
    async with client_of(built.api, {"x-api-key": created.secret}) as client:
        yield client


async def test_a_page_of_the_site_asks_the_agent(site: httpx2.AsyncClient, desk: Agent) -> None:
    asked = {"access-control-request-method": "POST", "access-control-request-headers": "content-type, x-api-key"}
    preflight = await site.options(f"/agents/{desk.agent_id}/ask", headers=asked)
    assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (204, SITE)
    answer = await site.post(f"/agents/{desk.agent_id}/ask", json=QUESTION)
    assert answer.status_code == 200, answer.text
    assert answer.headers["access-control-allow-origin"] == SITE
    assert "access-control-allow-credentials" not in answer.headers
    assert answer.json()["citations"]
    assert int(answer.headers["ratelimit-limit"]) == 1_000_000


async def test_the_answer_is_streamed_to_a_page_that_accepts_events(
    built: House, site: httpx2.AsyncClient, desk: Agent
) -> None:
    address = f"/agents/{desk.agent_id}/ask"
    whole = (await site.post(address, json=QUESTION)).json()
    streamed = await site.post(address, json=QUESTION, headers={"accept": "text/event-stream"})
    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert streamed.headers["access-control-allow-origin"] == SITE
    events = [tuple(lines.splitlines()) for lines in streamed.text.strip().split("\n\n")]
    names = [lines[0].removeprefix("event: ") for lines in events]
    assert (names[0], names.count("done"), names[-1]) == ("step", 1, "done")
    done = json.loads(events[-1][1].removeprefix("data: "))
    assert done.keys() == whole.keys()
    assert [done[name] for name in ("text", "citations", "agent_id")] == [
        whole[name] for name in ("text", "citations", "agent_id")
    ]
    await built.app.audit.newest()
    [noted] = [line for line in await built.audited() if line["action"] == f"POST {address} answered"]
    assert noted["subjects"][:-1] == list(dict.fromkeys(citation["document_id"] for citation in whole["citations"]))
    refused = await site.post(address, json={"question": ""}, headers={"accept": "text/event-stream"})
    assert_failure(refused, 422)


async def test_the_key_sees_the_branches_of_the_agent_only(site: httpx2.AsyncClient, desk: Agent) -> None:
    body = {"question": f"What does the machine shop pay {CANARY} for?"}
    assert CANARY not in str((await site.post(f"/agents/{desk.agent_id}/ask", json=body)).json()["citations"])
    outside = body | {"filters": {"taxonomy_paths": [["HR"]]}}
    assert_failure(await site.post(f"/agents/{desk.agent_id}/ask", json=outside), 403)


async def test_other_agents_do_not_exist_for_the_key(built: House, site: httpx2.AsyncClient, desk: Agent) -> None:
    same_branch = await built.app.agents.create("1.0.0", [["AI", "ML"]], name="Other desk")
    for agent_id in (str(same_branch.agent_id), str(uuid.uuid4())):
        assert_failure(await site.post(f"/agents/{agent_id}/ask", json=QUESTION), 404)


@each("address", [address for address, described in ROUTES.items() if described.need != "ask"])
async def test_every_other_route_is_refused(built: House, program: httpx2.AsyncClient, address: Address) -> None:
    about = ROUTES[address].about
    object_id = await make(built, about, ["AI", "ML"]) if about else ""
    assert "role public" in assert_failure(await send(program, address, object_id), 403)["detail"]


async def test_other_origins_are_refused(built: House, site: httpx2.AsyncClient, desk: Agent) -> None:
    path = f"/agents/{desk.agent_id}/ask"
    refused = await site.post(path, json=QUESTION, headers={"origin": OTHER})
    assert_failure(refused, 403)
    assert "access-control-allow-origin" not in refused.headers
    own = await site.post(path, json=QUESTION, headers={"origin": "http://localhost:8001"})
    assert_failure(own, 403)  # the key is for the pages of the site
    preflight = await site.options(path, headers={"origin": OTHER, "access-control-request-method": "POST"})
    assert "access-control-allow-origin" not in preflight.headers
    reader = await built.clients["reader"].post(path, json=QUESTION, headers={"origin": SITE})
    assert_failure(reader, 403)  # pages of the site may not use other keys
    for other_route in ("/search", "/session", f"/agents/{desk.agent_id}/search"):
        sent = await site.post(other_route, json={"query": "x"}, headers={"origin": SITE})
        assert_failure(sent, 403)
        assert "access-control-allow-origin" not in sent.headers


async def test_a_public_key_does_not_sign_in(built: House, desk: Agent) -> None:
    created = await built.app.keys.create("no-session", role="public", agent=desk)
    async with client_of(built.api) as client:
        assert_failure(await client.post("/session", json={"key": created.secret}), 403)
        brief = await client.get("/health", headers={"x-api-key": created.secret})
        assert brief.json().keys() == {"status", "features"}


async def test_the_key_ends_with_its_agent(built: House) -> None:
    admin = built.clients["admin"]
    agent_id = (await admin.post("/agents/from-category", json={"version": "1.0.0", "node_paths": [["AI"]]})).json()[
        "agent_id"
    ]
    body = {"name": "short", "role": "public", "agent_id": agent_id, "origins": [SITE]}
    made = (await admin.post("/keys", json=body)).json()
    assert (made["agent_id"], made["origins"], made["scope"]) == (agent_id, [SITE], ["AI"])
    headers = {"x-api-key": made["secret"], "origin": SITE}
    async with client_of(built.api, headers) as client:
        assert (await client.post(f"/agents/{agent_id}/ask", json=QUESTION)).status_code == 200
        await admin.delete(f"/agents/{agent_id}")
        built.app.keys._known.clear()  # as after five seconds
        assert_failure(await client.post(f"/agents/{agent_id}/ask", json=QUESTION), 401)
    [row] = [key for key in (await admin.get("/keys")).json()["keys"] if key["name"] == "short"]
    assert row["state"] == "revoked"


async def test_what_a_public_key_needs(built: House, desk: Agent) -> None:
    keys, admin = built.app.keys, built.clients["admin"]
    for wrong in (
        {"role": "public"},
        {"role": "reader", "agent_id": str(desk.agent_id)},
        {"role": "reader", "origins": [SITE]},
        {"role": "public", "agent_id": str(desk.agent_id), "scope": ["AI"]},
        {"role": "public", "agent_id": str(desk.agent_id), "origins": ["*"]},
        {"role": "public", "agent_id": str(desk.agent_id), "origins": ["www.example.org"]},
        {"role": "public", "agent_id": str(desk.agent_id), "origins": [f"{SITE}/page"]},
    ):
        assert_failure(await admin.post("/keys", json={"name": "wrong", **wrong}), 422)
    unknown = {"name": "wrong", "role": "public", "agent_id": str(uuid.uuid4())}
    assert_failure(await admin.post("/keys", json=unknown), 404)
    with pytest.raises(InvalidInput):
        await keys.create("wrong", role="public", agent=desk, origins=[SITE] * 21)
