"""Agents over HTTP: made, changed, exported, held to their manifests, and seen by those alone who may."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
import yaml

from dtrag.errors import BudgetSpent, InvalidInput, NotFound
from tests.api.confined import CANARY, House
from tests.api.shape import assert_failure

OPTIONS = {
    "mcp_tools": ["searcher"],
    "override_settings": {"retrieval": {"bm25_topk": 3, "vector_topk": 2}, "features": {"hitl_below_conf": 0.9}},
    "budgets": {"tokens_per_day": 100, "krw_per_day": 5},
}


@pytest_asyncio.fixture
async def boss(built: House) -> httpx2.AsyncClient:
    return await built.client("boss", None, "admin")


@pytest_asyncio.fixture
async def a(built: House, boss: httpx2.AsyncClient) -> httpx2.AsyncClient:
    return await built.client("a", ["AI/ML"])


async def made(client: httpx2.AsyncClient, *paths: list[str], **more: Any) -> dict[str, Any]:
    body = {"version": "1.0.0", "node_paths": list(paths) or [["AI", "ML"]], "options": {}, **more}
    response = await client.post("/agents/from-category", json=body)
    assert response.status_code == 200, response.text
    agent: dict[str, Any] = response.json()
    return agent


def branches(response: httpx2.Response) -> set[tuple[str, ...]]:
    assert response.status_code == 200, response.text
    return {tuple(hit["metadata"]["canonical_path"]) for hit in response.json()["hits"]}


async def test_an_agent_is_stored(boss: httpx2.AsyncClient) -> None:
    agent = await made(boss, ["AI", "ML"], name="Learner", options=OPTIONS)
    assert (agent["name"], agent["edition"], agent["unresolved_paths"], agent["created_by"]) == (
        "Learner",
        1,
        [],
        "boss",
    )
    assert agent["budgets"] == OPTIONS["budgets"]
    assert (await boss.get(f"/agents/{agent['agent_id']}")).json() == agent
    listed = (await boss.get("/agents")).json()
    assert (listed["agents"], listed["total"]) == ([agent], 1)


async def test_the_newest_are_listed_first_and_in_pages(boss: httpx2.AsyncClient) -> None:
    ids = [(await made(boss))["agent_id"] for _ in range(3)]
    assert [agent["agent_id"] for agent in (await boss.get("/agents")).json()["agents"]] == ids[::-1]
    page = (await boss.get("/agents", params={"limit": 1, "offset": 1})).json()
    assert ([agent["agent_id"] for agent in page["agents"]], page["total"]) == ([ids[1]], 3)
    assert_failure(await boss.get("/agents", params={"limit": 0}), 422)


async def test_a_change_is_a_new_edition(boss: httpx2.AsyncClient) -> None:
    agent = await made(boss, name="Learner")
    address = f"/agents/{agent['agent_id']}"
    body = {"version": "1.0.0", "node_paths": [["HR"]], "options": OPTIONS, "edition": 1}
    changed = (await boss.put(address, json=body)).json()
    assert (changed["edition"], changed["name"]) == (2, "Learner")
    assert changed["allowed_category_paths"] == [["hr"]]
    assert changed["created_at"] == agent["created_at"] < changed["updated_at"]
    assert "edition 2" in assert_failure(await boss.put(address, json=body), 409)["detail"]
    kept = (await boss.get(f"{address}/editions")).json()["editions"]
    assert [edition["edition"] for edition in kept] == [2, 1]
    assert [edition["manifest"]["allowed_category_paths"] for edition in kept] == [[["hr"]], [["ai", "ml"]]]
    assert branches(await boss.post(f"{address}/search", json={"query": "machine learning"})) == {("HR", "Salary")}


async def test_of_changes_at_once_each_is_an_edition_of_its_own_or_a_conflict(boss: httpx2.AsyncClient) -> None:
    agent = await made(boss)
    body = {"version": "1.0.0", "node_paths": [["HR"]]}
    answers = await asyncio.gather(*(boss.put(f"/agents/{agent['agent_id']}", json=body) for _ in range(8)))
    done = [answer.json()["edition"] for answer in answers if answer.status_code == 200]
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert done
    assert len(set(done)) == len(done)
    kept = (await boss.get(f"/agents/{agent['agent_id']}/editions")).json()["editions"]
    assert [edition["edition"] for edition in kept] == list(range(len(done) + 1, 0, -1))


async def test_a_deleted_agent_does_not_exist(boss: httpx2.AsyncClient) -> None:
    address = f"/agents/{(await made(boss))['agent_id']}"
    assert (await boss.delete(address)).status_code == 204
    for path in ("", "/manifest", "/editions", "/spending"):
        assert_failure(await boss.get(address + path), 404)
    assert_failure(await boss.delete(address), 404)
    assert_failure(await boss.post(f"{address}/search", json={"query": "x"}), 404)


async def test_the_manifest_in_both_forms(boss: httpx2.AsyncClient) -> None:
    agent = await made(boss, ["학사"], name="학사 도우미", options=OPTIONS)
    address = f"/agents/{agent['agent_id']}/manifest"
    as_json = await boss.get(address)
    as_yaml = await boss.get(address, params={"format": "yaml"})
    assert as_yaml.headers["content-type"].startswith("application/yaml")
    assert "학사" in as_yaml.text
    assert yaml.safe_load(as_yaml.text) == as_json.json()
    assert set(agent) - set(as_json.json()) == {
        "agent_id", "edition", "unresolved_paths", "created_by", "created_at", "updated_at",
    }  # fmt: skip
    assert_failure(await boss.get(address, params={"format": "toml"}), 422)


async def test_a_path_that_leads_nowhere_holds_nothing_until_it_does(built: House, boss: httpx2.AsyncClient) -> None:
    agent = await made(boss, ["Law", "Contracts"], ["HR"])
    address = f"/agents/{agent['agent_id']}"
    assert agent["unresolved_paths"] == ["Law/Contracts"]
    asked = {"query": "machine learning contracts"}
    assert branches(await boss.post(f"{address}/search", json=asked)) == {("HR", "Salary")}
    form = {"files": ("contract.md", b"# Contracts\n\nA machine learning contract.", "text/markdown")}
    assert (await boss.post("/documents", files=form, data={"category": "law/contracts"})).status_code == 201
    assert branches(await boss.post(f"{address}/search", json=asked)) == {("HR", "Salary"), ("law", "contracts")}
    assert (await boss.get(address)).json()["unresolved_paths"] == []


async def test_an_agent_is_confined_by_its_manifest(boss: httpx2.AsyncClient) -> None:
    address = f"/agents/{(await made(boss, ['AI', 'ML'], ['학사']))['agent_id']}"
    found = await boss.post(f"{address}/search", json={"query": f"machine learning {CANARY} 휴학"})
    assert branches(found) == {("AI", "ML"), ("학사",)}
    narrowed = {"query": "machine learning", "filters": {"taxonomy_paths": [["학사"]]}}
    assert branches(await boss.post(f"{address}/search", json=narrowed)) == set()
    for filters in ({"taxonomy_paths": [["HR"]]}, {"bypass_attempt": True}, {"taxonomy_paths": [["nowhere"]]}):
        for route, text in (("search", "query"), ("ask", "question")):
            response = await boss.post(f"{address}/{route}", json={text: "machine learning", "filters": filters})
            assert "Filter bypass attempt detected" in assert_failure(response, 403)["detail"]


async def test_limits_of_the_manifest_apply(built: House, boss: httpx2.AsyncClient, tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"{number}.md").write_text(f"# Note {number}\n\nMachine learning, note {number}.", "utf-8")
    await built.app.ingest([tmp_path / f"{number}.md" for number in range(12)], category=["AI", "ML"])
    usual = f"/agents/{(await made(boss))['agent_id']}/search"
    asked = {"query": "machine learning note"}
    body = (await boss.post(usual, json=asked)).json()
    assert (len(body["hits"]), body["metrics"]["bm25_candidates"]) == (5, 12)
    assert len((await boss.post(usual, json={**asked, "top_k": 100})).json()["hits"]) == 5
    assert len((await boss.post(usual, json={**asked, "top_k": 2})).json()["hits"]) == 2
    few = f"/agents/{(await made(boss, options=OPTIONS))['agent_id']}/search"
    body = (await boss.post(few, json=asked)).json()
    assert (len(body["hits"]), body["metrics"]["bm25_candidates"]) == (3, 3)
    for top_k in (0, -1, 1001, "5"):
        assert_failure(await boss.post(usual, json={**asked, "top_k": top_k}), 422)


async def test_foreign_and_unknown_agents_are_alike(boss: httpx2.AsyncClient, a: httpx2.AsyncClient) -> None:
    foreign = [await made(boss, *paths) for paths in ([["HR"]], [["AI"]], [["AI", "ML"], ["HR"]], [["nowhere"]])]
    own = await made(boss, ["AI", "ML"], ["AI", "ML", "later"])
    listed = (await a.get("/agents")).json()
    assert ([agent["agent_id"] for agent in listed["agents"]], listed["total"]) == ([own["agent_id"]], 1)
    unknown = str(uuid.uuid4())
    body = {"version": "1.0.0", "node_paths": [["AI", "ML"]]}
    for agent in foreign:
        for method, path, sent in (
            ("GET", "", None),
            ("GET", "/manifest", None),
            ("GET", "/editions", None),
            ("GET", "/spending", None),
            ("PUT", "", body),
            ("DELETE", "", None),
            ("POST", "/search", {"query": "x"}),
            ("POST", "/ask", {"question": "x"}),
        ):
            bodies = []
            for agent_id in (agent["agent_id"], unknown):
                response = await a.request(method, f"/agents/{agent_id}{path}", json=sent)
                failure = assert_failure(response, 404)
                bodies.append((failure["detail"].replace(agent_id, "ID"), failure["type"]))
            assert bodies[0] == bodies[1]
    assert len((await boss.get("/agents")).json()["agents"]) == 5
    assert_failure(await a.get("/agents/no-uuid"), 404)


async def test_no_caller_can_create_an_agent_with_a_wider_scope(built: House, a: httpx2.AsyncClient) -> None:
    for paths in ([["HR"]], [["AI"]], [["AI", "ML"], ["AI", "MLOps"]], [["nowhere"]]):
        response = await a.post("/agents/from-category", json={"version": "1.0.0", "node_paths": paths})
        assert "exceed your own scope" in assert_failure(response, 403)["detail"]
    own = await made(a, ["AI", "ML"])
    response = await a.put(f"/agents/{own['agent_id']}", json={"version": "1.0.0", "node_paths": [["HR"]]})
    assert_failure(response, 403)
    assert (await a.get(f"/agents/{own['agent_id']}")).json() == own


async def test_readers_cannot_create_agents(built: House, boss: httpx2.AsyncClient) -> None:
    reader = await built.client("reader", ["AI/ML"], "reader")
    own = await made(boss)
    address = f"/agents/{own['agent_id']}"
    body = {"version": "1.0.0", "node_paths": [["AI", "ML"]]}
    for response in (
        await reader.post("/agents/from-category", json=body),
        await reader.put(address, json=body),
        await reader.delete(address),
    ):
        assert_failure(response, 403)
    assert branches(await reader.post(f"{address}/search", json={"query": "machine learning"})) == {("AI", "ML")}


async def test_an_answer_below_the_threshold_waits_for_review(built: House, boss: httpx2.AsyncClient) -> None:
    careful = await made(boss, options=OPTIONS)
    bold = await made(boss, options={"override_settings": {"features": {"hitl_below_conf": 0.1}}})
    question = {"question": "Which regulations about weather and gardens follow the slope of the loss?"}
    answer = (await boss.post(f"/agents/{careful['agent_id']}/ask", json=question)).json()
    assert answer["hitl_required"] is True
    assert answer["confidence"] < 0.9
    assert any("review queue" in note for note in answer["notes"])
    answer = (await boss.post(f"/agents/{bold['agent_id']}/ask", json=question)).json()
    assert (answer["hitl_required"], answer["decision"]) == (False, "answer")
    assert "slope of the loss" in answer["text"]
    assert answer["citations"]
    waiting = await built.waiting()
    assert [item["agent_id"] for item in waiting] == [careful["agent_id"]]
    [item] = (await boss.get("/review")).json()["items"]
    assert "passages" not in item["proposal"]
    address = f"/review/{item['item_id']}"
    shown = (await boss.get(address)).json()["proposal"]
    assert "threshold 0.90" in shown["reasons"][0]
    chunk_id = shown["passages"][0]["chunk_id"]
    malformed: list[dict[str, Any]] = [{}, {"passages": []}, {"passages": [7]}, {"passages": "x"}]
    for body in (*malformed, {"passages": ["x"], "path": ["AI"]}):
        assert_failure(await boss.post(f"{address}/correct", json=body), 422)
    assert_failure(await boss.post(f"{address}/correct", json={"path": ["AI"]}), 422)
    assert_failure(await boss.post(f"{address}/correct", json={"passages": [chunk_id + "9"]}), 422)
    corrected = await boss.post(f"{address}/correct", json={"passages": [chunk_id], "note": "this one"})
    assert corrected.status_code == 200, corrected.text
    assert (corrected.json()["status"], corrected.json()["note"]) == ("corrected", "this one")
    assert corrected.json()["proposal"]["chosen"] == [chunk_id]
    assert_failure(await boss.post(f"{address}/correct", json={"passages": [chunk_id]}), 409)


async def test_an_answer_comes_from_its_branches_alone(boss: httpx2.AsyncClient) -> None:
    agent = await made(boss, ["AI"])
    answer = (
        await boss.post(f"/agents/{agent['agent_id']}/ask", json={"question": f"What does the shop pay in {CANARY}?"})
    ).json()
    assert CANARY not in answer["text"]
    assert answer["hitl_required"] is True


async def test_after_the_budget_is_spent_answers_are_quotations(built: House, boss: httpx2.AsyncClient) -> None:
    shown = await made(boss, name="Thrifty", options=OPTIONS)
    agents, address = built.app.agents, f"/agents/{shown['agent_id']}"
    agent = await agents.get(shown["agent_id"])
    await agents.check_budget(agent)
    await agents.charge(agent, 1, 99, 4.999999)
    await agents.check_budget(agent)
    await agents.charge(agent, 1, 0, 0.000001)
    with pytest.raises(BudgetSpent, match="'Thrifty' has used its budget of 5 won"):
        await agents.check_budget(agent)
    await agents.charge(agent, 1, 1, 0)
    with pytest.raises(BudgetSpent, match="100 tokens"):
        await agents.check_budget(agent)
    spent = (await boss.get(f"{address}/spending")).json()
    assert (spent["calls"], spent["tokens"], spent["krw"]) == (3, 100, 5.0)
    assert (spent["tokens_per_day"], spent["krw_per_day"]) == (100, 5.0)
    answer = (await boss.post(f"{address}/ask", json={"question": "What does a decision tree ask?"})).json()
    assert answer["citations"]
    assert any("budget for today is used up" in note for note in answer["notes"])


async def test_without_limits_in_the_manifest_the_settings_apply(built: House, boss: httpx2.AsyncClient) -> None:
    shown = await made(boss)
    spent = (await boss.get(f"/agents/{shown['agent_id']}/spending")).json()
    settings = built.app.settings
    assert (spent["tokens_per_day"], spent["krw_per_day"]) == (
        settings.agent_tokens_per_day,
        settings.agent_krw_per_day,
    )
    agent = await built.app.agents.get(shown["agent_id"])
    await built.app.agents.charge(agent, 1, settings.agent_tokens_per_day, 0)
    with pytest.raises(BudgetSpent):
        await built.app.agents.check_budget(agent)


async def test_no_charge_is_lost(built: House, boss: httpx2.AsyncClient) -> None:
    agent = await built.app.agents.get((await made(boss))["agent_id"])
    await asyncio.gather(*(built.app.agents.charge(agent, 1, 7, 0.25) for _ in range(40)))
    used = await built.app.agents.spending(agent)
    assert (used.calls, used.tokens, used.krw) == (40, 280, 10.0)
    for less in ((-1, 0, 0), (0, -1, 0), (0, 0, -0.1)):
        with pytest.raises(InvalidInput):
            await built.app.agents.charge(agent, *less)
    await built.app.agents.delete(str(agent.agent_id))
    with pytest.raises(NotFound):
        await built.app.agents.charge(agent, 1, 1, 1)


async def test_only_tools_on_its_list_by_their_exact_names(built: House, boss: httpx2.AsyncClient) -> None:
    agents = built.app.agents
    agent = await agents.get((await made(boss, options={"mcp_tools": ["calculator", "searcher"]}))["agent_id"])
    asked = [
        "searcher",
        "Calculator",
        "calculator\u200b",
        " calculator",
        "../calculator",
        "*",
        "translator",
        "searcher",
    ]
    assert agents.allowed_tools(agent, asked) == ("searcher",)
    none = await agents.get((await made(boss))["agent_id"])
    assert agents.allowed_tools(none, ["searcher", "*", ""]) == ()


async def test_changes_and_refusals_are_in_the_audit_log(built: House, a: httpx2.AsyncClient) -> None:
    own = await made(a)
    await a.put(f"/agents/{own['agent_id']}", json={"version": "1.0.0", "node_paths": [["AI", "ML", "deep"]]})
    await a.post("/agents/from-category", json={"version": "1.0.0", "node_paths": [["HR"]]})
    await a.delete(f"/agents/{own['agent_id']}")
    rows = [line for line in await built.audited() if line["action"].startswith("agents.")]
    assert [(row["action"], row["decision"]) for row in rows] == [
        ("agents.create", "done"),
        ("agents.update", "done"),
        ("agents.create", "denied"),
        ("agents.delete", "done"),
    ]
    assert all(row["actor"] == "a" for row in rows)
    assert [list(row["subjects"]) for row in rows] == [[own["agent_id"]]] * 2 + [[]] + [[own["agent_id"]]]
    assert all([branch["path"] for branch in row["scope"]] == [["AI", "ML"]] for row in rows)


async def test_a_declined_question_offers_only_headings_and_counts_of_the_scope(
    boss: httpx2.AsyncClient, a: httpx2.AsyncClient
) -> None:
    question = f"Which machine paints {CANARY} zeppelins and harbour ferries yellow on cold Sundays?"
    for path, body in (("/ask", {"question": question}), ("/chat/run", {"message": question})):
        whole, own = [(await client.post(path, json=body)).json() for client in (boss, a)]
        assert CANARY not in whole["declined"]["unknown_words"]
        assert own["declined"]["searched"] < whole["declined"]["searched"]
        assert CANARY in own["declined"]["unknown_words"]
        assert {heading["label"] for heading in own["declined"]["nearest"]} <= {"Trees", "Descent"}
        assert any(heading["label"] == "Pay" for heading in whole["declined"]["nearest"])
        metadata = own.get("metadata", own)
        codes = [statement["code"] for statement in metadata["reason_statements"]]
        assert codes[1:] == ["searched", "unknown_words", "nearest_headings"]
        assert " ".join(each["text"] for each in metadata["reason_statements"]) == metadata["reason"]
        assert [each["text"] for each in metadata["note_statements"]] == metadata["notes"]
