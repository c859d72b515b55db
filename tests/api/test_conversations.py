"""`/conversations`: one's own, and nobody else's."""

from __future__ import annotations

import asyncio

import pytest

from dtrag.core.access.api_key import Caller
from dtrag.core.conversation import WITHHELD
from tests.api.confined import CANARY, House, house
from tests.api.shape import assert_failure
from tests.cases import each
from tests.model_server import ModelServer
from tests.store import Databases


async def key(built: House, name: str) -> Caller:
    """The caller whom a client's key stands for."""
    secret = built.clients[name].headers["authorization"].split()[1]
    return (await built.app.keys.recognise(secret)).caller()


async def test_turns_are_read_and_deleted(built: House) -> None:
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


async def test_a_conversation_of_another_key_does_not_exist_for_the_caller(built: House) -> None:
    await built.client("kim", None, "reader")
    await built.app.conversations.add("secret", await key(built, "kim"), "what does the boss earn?", "much")
    for name, role in (("lee", "reader"), ("boss", "admin")):
        other = await built.client(name, None, role)  # type: ignore[arg-type]
        assert (await other.get("/conversations")).json()["total"] == 0
        bodies = []
        for method, sent in (("GET", None), ("PUT", {"title": "Mine"}), ("DELETE", None)):
            for conversation in ("secret", "nobodys"):
                response = await other.request(method, f"/conversations/{conversation}", json=sent)
                body = assert_failure(response, 404)
                bodies.append(body["detail"].replace(conversation, "ID"))
        assert len(set(bodies)) == 1
    assert (await built.clients["kim"].get("/conversations/secret")).status_code == 200


async def test_a_conversation_is_found_by_its_questions_and_its_name(built: House) -> None:
    kim, lee = await built.client("kim", None, "reader"), await built.client("lee", None, "reader")
    who = await key(built, "kim")
    for talk, question in (("a", "What is a TREE?"), ("a", "And a leaf?"), ("b", "100% of it?"), ("c", "휴학은?")):
        await built.app.conversations.add(talk, who, question, "An answer.")

    async def found(text: str) -> list[str]:
        listed = (await kim.get("/conversations", params={"q": text})).json()
        assert listed["total"] == len(listed["conversations"])
        return sorted(each["conversation_id"] for each in listed["conversations"])

    assert [await found(text) for text in ("tree", "LEAF", "휴학", "%", "answer", "")] == [
        ["a"],
        ["a"],
        ["c"],
        ["b"],
        [],
        ["a", "b", "c"],
    ]
    renamed = await kim.put("/conversations/c", json={"title": "  Leave\nof absence "})
    assert (renamed.status_code, await found("leave of")) == (204, ["c"])
    assert (await kim.get("/conversations/c")).json()["conversation"]["title"] == "Leave of absence"
    assert (await kim.put("/conversations/c", json={"title": ""})).status_code == 204
    assert await found("leave of") == []
    assert_failure(await kim.put("/conversations/c", json={"title": "x" * 201}), 422)
    assert_failure(await lee.put("/conversations/c", json={"title": "Mine"}), 404)
    assert (await kim.get("/conversations/c")).json()["conversation"]["title"] == ""


async def test_an_answer_about_inaccessible_documents_is_withheld(built: House) -> None:
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


@pytest.mark.parametrize("of_agent", [False, True])
async def test_later_answers_that_repeat_a_document_are_withheld_with_it(houses: Databases, of_agent: bool) -> None:
    """A model repeats from the history what no passage of its own run holds, and again from its own repetition."""
    secret = f"The machine shop pays {CANARY} for learning a second trade."
    with ModelServer(f"{secret} [1]") as model:
        settings = houses.settings(llm="openai:test", llm_base_url=model.url, llm_api_key="k", trace_text="on")
        async with house(settings) as built:
            boss = await built.client("boss", None, "admin")
            asked: dict[str, object] = {"message": "What does the machine shop pay for learning?"}
            if of_agent:
                made = {"version": "1.0.0", "node_paths": [["HR"], ["학사"]], "options": {}}
                agent = (await boss.post("/agents/from-category", json=made)).json()
                asked["agent_id"] = agent["agent_id"]
            first = (await boss.post("/chat/run", json=asked)).json()
            model.reply = f"휴학은 두 학기까지 할 수 있다. [1] {secret}"
            asked |= {
                "message": "휴학은 몇 학기까지 할 수 있나?",
                "conversation_id": first["conversation_id"],
                "context": {"taxonomy_paths": [["학사"]]},
            }
            answers = [first, *[(await boss.post("/chat/run", json=asked)).json() for _ in range(2)]]
            traces = [f"/traces/{answer['metadata']['trace_id']}" for answer in answers]
            talk = f"/conversations/{first['conversation_id']}"
            assert all([CANARY in (await boss.get(path)).text for path in (talk, *traces)])
            [pay] = [found for found in await built.app.documents() if found.title == "Pay"]
            await built.app.delete_document(pay.document_id)
            turns = (await boss.get(talk)).json()["messages"]
            assert [(turn["answer"], turn["withheld"]) for turn in turns] == [("", True)] * 3
            assert not any([CANARY in (await boss.get(path)).text for path in (talk, *traces)])
            model.requests.clear()
            await boss.post("/chat/run", json=asked)
            assert model.requests
            assert CANARY not in str(model.requests)
            last = (await boss.get(talk)).json()["messages"][-1]
            assert not last["withheld"]  # what is withheld is not shown to the model, so nothing rests on it


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


@each("odd", ["a%20b", "%00", "..%2fagents", "a" * 300, "%ED%A0%80", "3f0c6a52-9d1e-4b7a-8c55-0a1b2c3d4e5f"])
async def test_invalid_ids_are_not_found(built: House, odd: str) -> None:
    kim = await built.client("kim", None, "reader")
    for method in ("GET", "DELETE"):
        assert_failure(await kim.request(method, f"/conversations/{odd}"), 404, 405)


async def test_pages_are_checked(built: House) -> None:
    kim = await built.client("kim", None, "reader")
    for query in ("limit=0", "limit=1001", "offset=-1", "limit=x"):
        assert_failure(await kim.get(f"/conversations?{query}"), 422)
