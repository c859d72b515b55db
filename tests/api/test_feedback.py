"""`POST /chat/feedback`: kept for one's own answers, also while the case memory is off."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest_asyncio

from tests.api.confined import House, house
from tests.api.shape import assert_failure
from tests.api.test_conversations import key
from tests.api.test_traces import asked
from tests.cases import each
from tests.store import Databases


@pytest_asyncio.fixture
async def built(houses: Databases) -> AsyncIterator[House]:
    async with house(houses.settings()) as running:
        yield running


async def rated(built: House, name: str, **body: Any) -> dict[str, Any]:
    """Give feedback as that client."""
    response = await built.clients[name].post("/chat/feedback", json=body)
    assert response.status_code == 200, response.text
    answered: dict[str, Any] = response.json()
    return answered


async def stored(built: House, trace_id: str) -> list[tuple[str, str]]:
    """Feedback and reason of everybody on an answer."""
    async with built.app.database.connection("owner") as connection:
        cursor = await connection.execute(
            "select feedback, reason from answer_feedback where trace_id = %s order by voter", (trace_id,)
        )
        return [(row["feedback"], row["reason"]) for row in await cursor.fetchall()]


async def test_feedback_is_stored_once_and_replaced_by_another(built: House) -> None:
    await built.client("kim", ["AI"], "reader")
    trace_id = await asked(built, "kim")
    first = await rated(built, "kim", trace_id=trace_id, thumbs="up")
    assert (first["trace_id"], first["feedback"], first["changed"]) == (trace_id, "thumbs_up", True)
    assert (first["effect"], first["case_id"]) == ("recorded", None)
    assert "CBR_ENABLED" in first["note"]
    assert (await rated(built, "kim", trace_id=trace_id, rating=5))["changed"] is False
    assert await stored(built, trace_id) == [("thumbs_up", "")]
    changed = await rated(built, "kim", trace_id=trace_id, rating=1, reason="그 조항은 폐지되었다.")
    assert (changed["feedback"], changed["changed"]) == ("thumbs_down", True)
    assert await stored(built, trace_id) == [("thumbs_down", "그 조항은 폐지되었다.")]
    assert (await rated(built, "kim", trace_id=trace_id, rating=3))["feedback"] == "ignored"
    lines = [line for line in await built.audited() if line["action"] == "chat.feedback"]
    assert [(line["actor"], line["subjects"], line["details"]["feedback"]) for line in lines] == [
        ("kim", [trace_id], feedback) for feedback in ("thumbs_up", "thumbs_up", "thumbs_down", "ignored")
    ]
    assert "폐지" not in str(await built.audited())


async def test_a_conversation_shows_its_reader_the_own_feedback_alone(built: House) -> None:
    kim, lee = [await built.client(name, ["AI"], "reader") for name in ("kim", "lee")]
    body = {"message": "what asks questions?", "conversation_id": "talk"}
    answers = [(await kim.post("/chat/run", json=body)).json() for _ in range(2)]
    trace_id, other_id = [answer["metadata"]["trace_id"] for answer in answers]
    await built.app.conversations.add("talk", await key(built, "lee"), "q", "a", trace_id=trace_id)

    async def shown(client: httpx2.AsyncClient) -> list[tuple[str, str | None, str]]:
        messages = (await client.get("/conversations/talk")).json()["messages"]
        return [(turn["trace_id"], turn["feedback"], turn["feedback_reason"]) for turn in messages]

    assert await shown(kim) == [(trace_id, None, ""), (other_id, None, "")]
    await rated(built, "kim", trace_id=trace_id, thumbs="down", reason="폐지")
    assert await shown(kim) == [(trace_id, "thumbs_down", "폐지"), (other_id, None, "")]
    assert await shown(lee) == [(trace_id, None, "")]
    await rated(built, "kim", trace_id=trace_id, rating=3)
    assert (await shown(kim))[0] == (trace_id, "ignored", "")


async def test_the_answer_of_another_key_is_unknown(built: House) -> None:
    for name, scope in (("kim", ["AI"]), ("lee", ["AI"])):
        await built.client(name, scope, "reader")
    admin = await built.client("admin", None, "admin")
    trace_id = await asked(built, "kim")
    foreign = await built.clients["lee"].post("/chat/feedback", json={"trace_id": trace_id, "thumbs": "up"})
    unknown_id = str(uuid.uuid4())
    unknown = await built.clients["lee"].post("/chat/feedback", json={"trace_id": unknown_id, "thumbs": "up"})
    details = [assert_failure(response, 404)["detail"] for response in (foreign, unknown)]
    assert details[0].replace(trace_id, "") == details[1].replace(unknown_id, "")
    assert_failure(await admin.post("/chat/feedback", json={"trace_id": trace_id, "thumbs": "up"}), 404)
    assert_failure(await admin.post("/chat/feedback", json={"trace_id": "../etc", "thumbs": "up"}), 404)
    assert await stored(built, trace_id) == []


@each(
    "body, words",
    [
        ({}, "exactly one of rating"),
        ({"rating": 4, "thumbs": "up"}, "exactly one of rating"),
        ({"rating": 0}, "from 1 to 5"),
        ({"rating": 6}, "from 1 to 5"),
        ({"thumbs": "sideways"}, "up or down"),
        ({"thumbs": "up", "reason": "x" * 1_001}, "1,000"),
    ],
)
async def test_other_ratings_are_refused_with_a_sentence(built: House, body: dict[str, Any], words: str) -> None:
    await built.client("kim", ["AI"], "reader")
    trace_id = await asked(built, "kim")
    response = await built.clients["kim"].post("/chat/feedback", json={"trace_id": trace_id, **body})
    assert words in assert_failure(response, 422)["detail"]


@each("body", [{"thumbs": "up"}, {"trace_id": "x", "rating": True}, {"trace_id": "x", "rating": 4.5}])
async def test_the_shape_of_the_body_is_checked(built: House, body: dict[str, Any]) -> None:
    kim = await built.client("kim", ["AI"], "reader")
    assert_failure(await kim.post("/chat/feedback", json=body), 422)


async def test_an_answer_that_its_reader_found_wrong_waits_without_the_case_memory(built: House) -> None:
    """With its question, draft and passages; whatever its verdict, and once. By default, no setting is needed."""
    kim, editor = await built.client("kim", ["AI"], "reader"), await built.client("editor", ["AI"])
    other = await built.client("other", ["HR"])
    question = "Which rules does machine learning find?"
    answered = await kim.post("/chat/run", json={"message": question, "conversation_id": "talk"})
    trace_id = answered.json()["metadata"]["trace_id"]
    await rated(built, "kim", trace_id=trace_id, rating=3)
    assert (await editor.get("/review")).json()["items"] == []
    for rating in (2, 1):
        await rated(built, "kim", trace_id=trace_id, rating=rating, reason="It is another rule.")
    [item] = (await editor.get("/review")).json()["items"]
    assert (item["proposal"]["question"], item["proposal"]["trace_id"]) == (question, trace_id)
    assert item["proposal"]["decision"] == answered.json()["metadata"]["decision"]
    assert item["proposal"]["text"] == answered.json()["response"]
    shown = (await editor.get(f"/review/{item['item_id']}")).json()["proposal"]
    cited = {passage["chunk_id"] for passage in shown["passages"] if passage["cited"]}
    assert cited == {source["chunk_id"] for source in answered.json()["sources"]} != set()
    assert (await other.get("/review")).json()["items"] == []


async def test_a_question_whose_text_is_nowhere_does_not_wait(built: House) -> None:
    await built.client("kim", ["AI"], "reader")
    await rated(built, "kim", trace_id=await asked(built, "kim"), thumbs="down")
    assert await built.waiting() == []


async def test_ratings_have_a_mean_in_the_metrics(built: House) -> None:
    await built.client("kim", ["AI"], "reader")
    boss = await built.client("boss", None, "admin")

    async def mean() -> str:
        [line] = [
            row for row in (await boss.get("/metrics")).text.splitlines() if row.startswith("dtrag_answer_rating")
        ]
        return line

    assert await mean() == "dtrag_answer_rating_avg 0.0"
    await rated(built, "kim", trace_id=await asked(built, "kim"), rating=4)
    trace_id = await asked(built, "kim")
    for _ in range(2):  # the same again is no rating
        await rated(built, "kim", trace_id=trace_id, thumbs="down")
    assert await mean() == "dtrag_answer_rating_avg 2.5"
