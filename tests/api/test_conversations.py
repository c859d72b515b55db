"""`/conversations`: one's own, and nobody else's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from dtrag.core.caller import Caller
from dtrag.core.conversation import WITHHELD
from dtrag.settings import Settings
from tests.api.confined import House, house
from tests.api.shape import assert_failure


@pytest_asyncio.fixture
async def built(settings: Settings, tmp_path: Path) -> AsyncIterator[House]:
    async with house(settings, tmp_path) as running:
        yield running


async def key(built: House, name: str) -> Caller:
    """The caller whom a client's key stands for."""
    secret = built.clients[name].headers["authorization"].split()[1]
    return (await built.app.keys.recognise(secret)).caller()


async def test_what_was_said_is_read_back_and_deleted(built: House) -> None:
    kim = await built.client("kim", ["AI"], "reader")
    who = await key(built, "kim")
    assert (await kim.get("/conversations")).json() == {"conversations": [], "total": 0, "limit": 100, "offset": 0}
    for number in range(1, 4):
        await built.app.conversations.add("talk-1", who, f"q{number}?", f"a{number}")
    listed = (await kim.get("/conversations")).json()
    [about] = listed["conversations"]
    assert (about["conversation_id"], about["turns"], about["question"], listed["total"]) == ("talk-1", 3, "q1?", 1)
    one = (await kim.get("/conversations/talk-1")).json()
    assert one["conversation"] == about
    assert [(turn["number"], turn["question"], turn["answer"], turn["withheld"]) for turn in one["messages"]] == [
        (number, f"q{number}?", f"a{number}", False) for number in range(1, 4)
    ]
    assert (await kim.delete("/conversations/talk-1")).status_code == 204
    assert_failure(await kim.get("/conversations/talk-1"), 404)
    assert_failure(await kim.delete("/conversations/talk-1"), 404)
    [line] = [line for line in await built.audited() if line["action"] == "conversations.delete"]
    assert (line["actor"], line["subjects"], line["decision"]) == ("kim", ["talk-1"], "done")


async def test_a_conversation_of_another_key_is_not_there(built: House) -> None:
    await built.client("kim", None, "reader")
    await built.app.conversations.add("secret", await key(built, "kim"), "what does the boss earn?", "much")
    for name, role in (("lee", "reader"), ("boss", "admin")):
        other = await built.client(name, None, role)  # type: ignore[arg-type]
        assert (await other.get("/conversations")).json()["total"] == 0
        bodies = []
        for method in ("GET", "DELETE"):
            for conversation in ("secret", "nobodys"):
                body = assert_failure(await other.request(method, f"/conversations/{conversation}"), 404)
                bodies.append(body["detail"].replace(conversation, "ID"))
        assert len(set(bodies)) == 1
    assert (await built.clients["kim"].get("/conversations/secret")).status_code == 200


async def test_an_answer_about_what_is_out_of_reach_now_is_withheld(built: House) -> None:
    kim = await built.client("kim", ["AI"], "reader")
    who = await key(built, "kim")
    [trees] = [d for d in await built.app.documents() if d.title == "Trees"]
    await built.app.conversations.add("talk", who, "what asks questions?", "A decision tree.", [trees.document_id])
    [turn] = (await kim.get("/conversations/talk")).json()["messages"]
    assert (turn["answer"], turn["withheld"]) == ("A decision tree.", False)
    await built.app.delete_document(trees.document_id)
    response = await kim.get("/conversations/talk")
    [turn] = response.json()["messages"]
    assert (turn["answer"], turn["withheld"], "decision tree" in response.text) == ("", True, False)
    assert [m.content for m in await built.app.conversations.history("talk", who)] == ["what asks questions?", WITHHELD]


async def test_reading_and_adding_at_the_same_time(built: House) -> None:
    kim = await built.client("kim", None, "reader")
    who = await key(built, "kim")

    async def add(number: int) -> None:
        await built.app.conversations.add("busy", who, f"q{number}", f"a{number}")

    async def read() -> None:
        response = await kim.get("/conversations/busy")
        assert response.status_code in {200, 404}
        if response.status_code == 200:
            numbers = [turn["number"] for turn in response.json()["messages"]]
            assert numbers == list(range(1, len(numbers) + 1))

    await asyncio.gather(*(add(number) for number in range(20)), *(read() for _ in range(20)))
    assert (await kim.get("/conversations/busy")).json()["conversation"]["turns"] == 20


@pytest.mark.parametrize("odd", ["a%20b", "%00", "..%2fagents", "a" * 300, "%ED%A0%80", "3f0c6a52-9d1e-4b7a-8c55-0a1b2c3d4e5f"])
async def test_odd_ids_lead_nowhere(built: House, odd: str) -> None:
    kim = await built.client("kim", None, "reader")
    for method in ("GET", "DELETE"):
        assert_failure(await kim.request(method, f"/conversations/{odd}"), 404, 405)


async def test_pages_are_checked(built: House) -> None:
    kim = await built.client("kim", None, "reader")
    for query in ("limit=0", "limit=1001", "offset=-1", "limit=x"):
        assert_failure(await kim.get(f"/conversations?{query}"), 422)
