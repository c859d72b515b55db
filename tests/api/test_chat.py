"""Chat over HTTP: one body, or events while the answer is made; conversations, agents, filters, and every failure."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.api.confined import CANARY, House, house
from tests.api.shape import assert_failure
from tests.store import Databases

QUESTION = "What does machine learning find?"


@pytest_asyncio.fixture
async def built(houses: Databases) -> AsyncIterator[House]:
    async with house(houses.settings()) as running:
        await running.client("all", None)
        await running.client("ml", ["AI/ML"])
        await running.client("hr", ["HR"])
        yield running


def events_of(text: str) -> list[tuple[str, Any]]:
    """Names and data of the events, comments left out."""
    found = []
    for block in text.strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


async def test_an_answer_with_its_sources(built: House) -> None:
    response = await built.clients["all"].post("/chat/run", json={"message": QUESTION, "context": {}})
    assert response.status_code == 200, response.text
    body = response.json()
    assert body["response"] == body["answer"]
    assert "[1]" in body["response"]
    assert [source["number"] for source in body["sources"]] == list(range(1, len(body["sources"]) + 1))
    assert body["sources"][0]["quote"] in body["response"]
    assert body["passage"] is None, "the answer is all of its passage"
    assert 0 <= body["confidence"] <= 1
    about = body["metadata"]
    assert about["intent"] == "question"
    assert {"intent", "retrieve", "compose", "respond"} <= set(about["step_timings"])
    assert about["model"] is None
    assert about["tokens"] == about["cost"] == 0
    await built.app.audit.newest()
    lines = [line for line in await built.audited() if line["action"] == "POST /chat/run"]
    cited = dict.fromkeys(source["document_id"] for source in body["sources"])
    assert lines[-1]["subjects"] == [*cited, about["trace_id"]]


async def test_a_turn_and_its_trace_are_one_transaction_before_the_reply_ends(built: House) -> None:
    answer = (await built.clients["all"].post("/chat/run", json={"message": QUESTION})).json()
    async with built.app.database.connection("owner") as connection:
        cursor = await connection.execute(
            "select t.xmin::text = r.xmin::text as together from conversation_turns t join traces r using (trace_id)"
            " where t.conversation_id = %s",
            [answer["conversation_id"]],
        )
        assert await cursor.fetchall() == [{"together": True}]


async def test_a_conversation_continues_and_belongs_to_its_key(built: House) -> None:
    mine, theirs = built.clients["all"], built.clients["hr"]
    first = (await mine.post("/chat/run", json={"message": QUESTION})).json()
    talk = first["conversation_id"]
    again = (await mine.post("/chat/run", json={"message": "And what of trees?", "conversation_id": talk})).json()
    assert again["conversation_id"] == talk
    other = await theirs.post("/chat/run", json={"message": "And what of trees?", "conversation_id": talk})
    assert other.json()["conversation_id"] == talk
    for client, turns in ((mine, 2), (theirs, 1)):
        assert len((await client.get(f"/conversations/{talk}")).json()["messages"]) == turns


async def test_a_conversation_that_the_client_keeps(built: House) -> None:
    said = [
        {"role": "system", "content": "Answer in French."},
        {"role": "user", "content": "What is a decision tree?"},
        {"role": "assistant", "content": "It asks one question after another."},
        {"role": "user", "content": QUESTION},
    ]
    response = await built.clients["all"].post("/chat/run", json={"messages": said})
    assert response.status_code == 200
    assert response.json()["sources"]
    refused: list[dict[str, Any]] = [{}, {"message": "x", "messages": said}, {"messages": said[:-1]}, {"messages": []}]
    for wrong in refused:
        assert_failure(await built.clients["all"].post("/chat/run", json=wrong), 422)


async def test_branches_and_filters(built: House) -> None:
    ask = built.clients["all"].post
    named: dict[str, Any] = {"taxonomy_paths": [["HR"]]}
    for context in (named, {"filters": named}):
        body = (await ask("/chat/run", json={"message": f"What does {CANARY} mean?", "context": context})).json()
        assert [source["title"] for source in body["sources"]] in (["Pay"], [])
    assert_failure(await ask("/chat/run", json={"message": "x", "context": named | {"filters": named}}), 422)
    for bad in ({"top_k": 0}, {"top_k": 1.5}, {"debate": 1}, {"unknown": 1}, {"filters": {"nothing": 1}}):
        assert_failure(await ask("/chat/run", json={"message": "x", "context": bad}), 422)


@pytest.mark.parametrize("path", ["/chat/run", "/chat/stream"])
async def test_invalid_requests_are_refused(built: House, path: str) -> None:
    ml = built.clients["ml"]
    outside = {"message": "x", "context": {"taxonomy_paths": [["HR"]]}}
    assert_failure(await ml.post(path, json=outside), 403)
    assert (await built.denials())[-1]["details"]["path"] == path
    assert_failure(await ml.post(path, json={"message": "  "}), 422)
    assert_failure(await ml.post(path, json={"message": "x" * 10_001}), 422)
    assert_failure(await ml.post(path, json={"message": "x", "conversation_id": "../x"}), 422)
    assert_failure(await ml.post(path, json={"message": "x", "agent_id": "no"}), 404)
    assert_failure(await ml.post(path, content=b"{", headers={"content-type": "application/json"}), 400)


async def test_an_agent_answers_from_its_branches(built: House) -> None:
    mine = built.clients["all"]
    made = await mine.post("/agents/from-category", json={"version": "1.0.0", "node_paths": [["AI", "ML"]]})
    agent_id = made.json()["agent_id"]
    for asked in ({"agent_id": agent_id}, {"context": {"agent_id": agent_id}}):
        body = (await mine.post("/chat/run", json={"message": QUESTION} | asked)).json()
        assert body["metadata"]["agent_id"] == agent_id
        assert {source["title"] for source in body["sources"]} <= {"Trees", "Descent"}
    assert_failure(await built.clients["hr"].post("/chat/run", json={"message": "x", "agent_id": agent_id}), 404)
    both = {"message": "x", "agent_id": agent_id, "context": {"agent_id": "other"}}
    assert_failure(await mine.post("/chat/run", json=both), 422)


async def test_a_stream_has_the_answer_of_run(built: House) -> None:
    mine = built.clients["all"]
    response = await mine.post("/chat/stream", json={"message": QUESTION, "conversation_id": "talk-1"})
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    told = events_of(response.text)
    names = [name for name, _ in told]
    assert names[-1] == "done"
    assert names.count("done") == 1
    assert {"step", "citations"} <= set(names)
    steps = [data["name"] for name, data in told if name == "step"]
    assert [name for name in steps if name in {"intent", "retrieve", "compose", "respond"}] == [
        "intent",
        "retrieve",
        "compose",
        "respond",
    ]
    done = told[-1][1]
    plain = (await mine.post("/chat/run", json={"message": QUESTION})).json()
    assert done["response"] == plain["response"]
    assert done["sources"] == plain["sources"]
    assert done.keys() == plain.keys()
    await built.app.audit.newest()
    noted = [line for line in await built.audited() if line["action"] == "POST /chat/stream answered"]
    cited = dict.fromkeys(source["document_id"] for source in done["sources"])
    assert noted[-1]["subjects"] == [*cited, done["metadata"]["trace_id"]]
