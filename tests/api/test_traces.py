"""`/traces`: how one's own answers came about; for administrators of the whole tree everybody's."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from tests.api.confined import House, house
from tests.api.shape import assert_failure
from tests.api.test_chat_streams import Leaver, service_of
from tests.api.test_chat_streams import asked as model_asked
from tests.cases import each
from tests.model_server import ModelServer
from tests.store import Databases

QUESTION = "What does a decision tree ask?"


async def asked(built: House, name: str) -> str:
    """Ask as that client; returns the trace's id."""
    response = await built.clients[name].post("/ask", json={"question": QUESTION})
    assert response.status_code == 200, response.text
    return str(response.json()["trace_id"])


@pytest.mark.usefixtures("shipped_limits")
async def test_every_step_is_shown_with_its_budget(built: House) -> None:
    kim = await built.client("kim", ["AI"], "reader")
    trace_id = await asked(built, "kim")
    response = await kim.get(f"/traces/{trace_id}")
    assert response.status_code == 200, response.text
    trace = response.json()
    steps = {step["name"]: step for step in trace["steps"]}
    assert list(steps) == ["intent", "retrieve", "compose", "cite", "respond"]
    for step in steps.values():
        assert (step["outcome"], 0 <= step["seconds"] <= step["budget"]) == ("done", True)
    starts = [step["started"] for step in trace["steps"]]
    assert starts == sorted(starts)
    assert starts[0] >= 0
    assert steps["retrieve"]["budget"] == 2.0
    assert steps["retrieve"]["facts"]["lexical_candidates"] >= steps["retrieve"]["facts"]["passages"] > 0
    assert (trace["decision"], trace["calls"]) == ("answer", [])
    assert trace["taxonomy_version"] == (await kim.get("/taxonomy/active/tree")).json()["version"] != "1.0.0"
    assert trace["document_ids"]
    listed = (await kim.get("/documents")).json()["documents"]
    titles = {document["document_id"]: document["title"] for document in listed}
    assert trace["titles"] == {document_id: titles[document_id] for document_id in trace["document_ids"]}
    assert QUESTION not in response.text
    [line] = (await kim.get("/traces")).json()["traces"]
    assert (line["trace_id"], line["model_calls"], line["question"]) == (trace_id, 0, "")
    cited = [passage for passage in trace["passages"] if passage["cited"]]
    assert line["titles"] == [titles[cited[0]["document_id"]]]
    assert len(trace["passages"]) == steps["retrieve"]["facts"]["passages"]
    for passage in trace["passages"]:
        assert passage["label"].startswith(titles[passage["document_id"]])


async def test_passages_of_a_deleted_document_have_no_names(built: House) -> None:
    boss = await built.client("boss", None, "admin")
    trace_id = await asked(built, "boss")
    used = (await boss.get(f"/traces/{trace_id}")).json()["passages"]
    gone = next(passage["document_id"] for passage in used if passage["cited"])
    await built.app.delete_document(gone)
    after = (await boss.get(f"/traces/{trace_id}")).json()
    assert gone not in after["titles"]
    assert [passage["label"] is None for passage in after["passages"]] == [
        passage["document_id"] == gone for passage in used
    ]
    assert (await boss.get("/traces")).json()["traces"][0]["titles"] == [None]


async def test_traces_of_a_time(built: House) -> None:
    kim = await built.client("kim", ["AI"], "reader")
    first, second = [await asked(built, "kim") for _ in range(2)]
    at = {line["trace_id"]: line["created_at"] for line in (await kim.get("/traces")).json()["traces"]}
    assert list(at) == [second, first]
    for query, expected in (
        ({"since": at[second]}, [second]),
        ({"until": at[second]}, [first]),
        ({"since": at[first], "until": at[first]}, []),
    ):
        response = await kim.get("/traces", params=query)
        assert [line["trace_id"] for line in response.json()["traces"]] == expected
    assert_failure(await kim.get("/traces?since=yesterday"), 422)


async def test_texts_are_stored_when_enabled(houses: Databases) -> None:
    async with house(houses.settings(trace_text="on")) as built:
        kim = await built.client("kim", None, "reader")
        trace = (await kim.get(f"/traces/{await asked(built, 'kim')}")).json()
        assert (trace["question"], "decision tree" in trace["answer"]) == (QUESTION, True)
        assert (await kim.get("/traces")).json()["traces"][0]["question"] == QUESTION


async def test_a_trace_of_another_key_does_not_exist_for_the_caller(built: House) -> None:
    for name, scope, role in (
        ("kim", None, "reader"),
        ("lee", None, "editor"),
        ("confined", ["AI"], "admin"),
        ("boss", None, "admin"),
    ):
        await built.client(name, scope, role)  # type: ignore[arg-type]
    trace_id = await asked(built, "kim")
    for name in ("lee", "confined"):
        foreign = assert_failure(await built.clients[name].get(f"/traces/{trace_id}"), 404)
        unknown_id = str(uuid.uuid4())
        unknown = assert_failure(await built.clients[name].get(f"/traces/{unknown_id}"), 404)
        assert foreign["detail"].replace(trace_id, "ID") == unknown["detail"].replace(unknown_id, "ID")
        assert (await built.clients[name].get("/traces")).json() == {"traces": []}
    for name in ("kim", "boss"):
        assert (await built.clients[name].get(f"/traces/{trace_id}")).status_code == 200


async def test_a_trace_needs_access_to_its_documents(built: House) -> None:
    kim = await built.client("kim", ["AI"], "reader")
    trace_id = await asked(built, "kim")
    used = (await kim.get(f"/traces/{trace_id}")).json()["document_ids"]
    await built.app.delete_document(used[0])
    assert_failure(await kim.get(f"/traces/{trace_id}"), 404)
    assert (await kim.get("/traces")).json() == {"traces": []}


@pytest.mark.parametrize("of_agent", [False, True])
async def test_an_abandoned_answer_ends_and_leaves_no_trace(houses: Databases, of_agent: bool) -> None:
    with ModelServer(fault="hang") as model:
        settings = houses.settings(llm="openai:test", llm_base_url=model.url, llm_api_key="x")
        async with house(settings) as built:
            client = await built.client("all", None)
            path = "/ask"
            if of_agent:
                body = {"version": "1.0.0", "node_paths": [["AI"]], "options": {}}
                agent = (await client.post("/agents/from-category", json=body)).json()
                path = f"/agents/{agent['agent_id']}/ask"
            leaver = Leaver(built, path, {"question": QUESTION})
            call = asyncio.create_task(built.api(leaver.scope, leaver.receive, leaver.send))
            async with asyncio.timeout(10):
                await model_asked(model, 1)
                assert len(service_of(built).in_flight) == 1
                leaver.left.set()
                await call
            assert not len(service_of(built).in_flight)
            assert await asyncio.to_thread(model.wait_until_idle, 3.0)
            assert (await client.get("/traces")).json() == {"traces": []}


async def test_reading_a_trace_is_in_the_audit_log(built: House) -> None:
    kim = await built.client("kim", ["AI"], "reader")
    trace_id = await asked(built, "kim")
    await kim.get(f"/traces/{trace_id}")
    await built.app.audit.newest()
    [line] = [line for line in await built.audited() if line["action"] == "GET /traces/{trace_id}"]
    assert (line["actor"], line["subjects"][0], line["decision"]) == ("kim", trace_id, "allowed")


@each("odd", ["x", "%00", "..%2fagents", "1", "a" * 300])
async def test_invalid_ids_are_not_found(built: House, odd: str) -> None:
    kim = await built.client("kim", None, "reader")
    assert_failure(await kim.get(f"/traces/{odd}"), 404, 405)


async def test_limits_are_checked(built: House) -> None:
    kim = await built.client("kim", None, "reader")
    for query in ("limit=0", "limit=1001", "limit=x"):
        assert_failure(await kim.get(f"/traces?{query}"), 422)
