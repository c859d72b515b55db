"""`POST /retrieval` after the contract of Dify's external knowledge: knowledge ids, conditions, scores and failures."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from dtrag.core.access.metadata_conditions import FIELDS, OPERATORS
from dtrag.delivery.api.routes import dify
from tests.api.confined import CANARY, House, house
from tests.api.shape import assert_failure
from tests.cases import each
from tests.integration.test_editions import regulation
from tests.rounds import seeds
from tests.store import Databases

ROWS: dict[str, dict[str, Any]] = {
    "Alpha": {"author": "Kim", "year": 2020, "status": "final"},
    "Beta": {"author": "Kim", "year": 2022, "status": ""},
    "Gamma": {"author": "Lee", "year": 2024},
    "Delta": {"year": "2024"},
}
"""Documents by title, with metadata; all of them have the word of `QUERY`."""
QUERY = "turbine"
NO_EMBEDDER = "No embedder is available: lexical search only. See `dtrag models list`."
ALL = {*ROWS}


@pytest_asyncio.fixture(scope="module")
async def built(houses_of_module: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    file = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    lines = [
        {"id": title, "title": title, "text": f"{title}: a turbine turns.", "metadata": metadata}
        for title, metadata in ROWS.items()
    ]
    file.write_text("\n".join(json.dumps(line) for line in lines), "utf-8")
    async with house(houses_of_module.settings(filter_keys="author,year,status")) as running:
        assert not (await running.app.ingest(file, "AI/Rows")).failed
        await running.client("owner", None, "admin")
        await running.client("ai", ["AI"], "reader")
        await running.client("hr", ["HR"], "reader")
        await running.app.agents.create("1.0.0", [["AI", "Rows"]], name="Rows desk")
        await running.app.agents.create("1.0.0", [["HR", "Salary"]], name="Pay desk")
        yield running


def body_of(*conditions: dict[str, Any], knowledge: str = "all", query: str = QUERY, **setting: Any) -> dict[str, Any]:
    """A request as Dify sends it."""
    sent: dict[str, Any] = {
        "retrieval_setting": {"top_k": 10, "score_threshold": 0.0} | setting,
        "query": query,
        "knowledge_id": knowledge,
    }
    return sent | (
        {"metadata_condition": {"logical_operator": "and", "conditions": [*conditions]}} if conditions else {}
    )


def condition(name: str | list[str], operator: str, *value: Any) -> dict[str, Any]:
    return {"name": name, "comparison_operator": operator, "value": value[0] if value else None}


async def records(client: httpx2.AsyncClient, body: dict[str, Any]) -> list[dict[str, Any]]:
    response = await client.post("/retrieval", json=body)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["records"]
    return found


async def titles(client: httpx2.AsyncClient, *conditions: dict[str, Any], operator: str = "and") -> set[str]:
    body = body_of(*conditions, knowledge="AI/Rows")
    body["metadata_condition"]["logical_operator"] = operator
    return {record["title"] for record in await records(client, body)}


CONDITIONS: list[tuple[str | list[str], str, list[Any], set[str]]] = [
    ("title", "contains", ["a"], ALL),
    ("title", "contains", ["lph"], {"Alpha"}),
    ("author", "contains", ["Le"], {"Gamma"}),
    ("year", "contains", ["20"], {"Delta"}),
    ("author", "not contains", ["Le"], {"Alpha", "Beta"}),
    ("title", "start with", ["D"], {"Delta"}),
    ("title", "start with", ["d"], set()),
    ("title", "end with", ["ta"], {"Beta", "Delta"}),
    ("author", "is", ["Kim"], {"Alpha", "Beta"}),
    ("author", "is", ["kim"], set()),
    ("year", "is", [2024], {"Gamma"}),
    ("year", "is", ["2024"], {"Delta"}),
    ("author", "is not", ["Kim"], {"Gamma"}),
    ("author", "in", [["Kim", "Park"]], {"Alpha", "Beta"}),
    ("author", "in", [[]], set()),
    ("author", "not in", [["Kim", "Park"]], {"Gamma"}),
    ("author", "empty", [], {"Delta"}),
    ("status", "empty", [], {"Beta", "Gamma", "Delta"}),
    ("status", "not empty", [], {"Alpha"}),
    (["author", "status"], "empty", [], {"Delta"}),
    (["author", "status"], "not empty", [], {"Alpha", "Beta", "Gamma"}),
    (["author", "title"], "contains", ["e"], {"Beta", "Gamma", "Delta"}),
    (["author", "title"], "not contains", ["e"], {"Alpha"}),
    ("year", "=", [2022], {"Beta"}),
    ("year", "=", ["2022"], {"Beta"}),
    ("year", "≠", [2022], {"Alpha", "Gamma", "Delta"}),
    ("year", ">", [2020], {"Beta", "Gamma"}),
    ("year", "<", [2022], {"Alpha"}),
    ("year", "≥", [2022], {"Beta", "Gamma"}),
    ("year", "≤", [2022.0], {"Alpha", "Beta"}),
    ("author", ">", [1], set()),
    ("category", "is", ["AI/Rows"], ALL),
    ("category", "is", ["AI"], set()),
    ("category", "in", [["AI/ML", "AI/Rows"]], ALL),
    ("category", "start with", ["AI/R"], ALL),
    ("content_type", "is", ["application/json"], ALL),
    ("content_type", "in", [["text/markdown"]], set()),
    ("content_type", "is not", ["application/json"], set()),
    ("language", "is", ["en"], ALL),
    ("document_id", "not empty", [], ALL),
    ("source_url", "contains", ["rows.jsonl"], ALL),
    ("as_of", "before", ["2024-03-01"], ALL),
    ("as_of", "after", [1_700_000_000], ALL),
]


@each("name, operator, value, expected", CONDITIONS)
async def test_conditions(
    built: House, name: str | list[str], operator: str, value: list[Any], expected: set[str]
) -> None:
    assert await titles(built.clients["ai"], condition(name, operator, *value)) == expected


def test_every_operator_is_in_the_table() -> None:
    assert {operator for _, operator, _, _ in CONDITIONS} == {*OPERATORS, "before", "after"}
    assert {name for name, *_ in CONDITIONS if isinstance(name, str)} >= {*FIELDS}


@each(
    "operator, expected",
    [("and", {"Alpha"}), ("or", {"Alpha", "Beta", "Gamma"}), (None, {"Alpha"})],
)
async def test_conditions_are_combined(built: House, operator: Any, expected: set[str]) -> None:
    both = condition("author", "is", "Kim"), condition("year", "in", [2020, 2024])
    assert await titles(built.clients["ai"], *both, operator=operator) == expected


async def test_conditions_apply_before_the_number_of_records(built: House) -> None:
    client = built.clients["ai"]
    for title in ROWS:
        for each_condition in (condition("title", "is", title), condition("title", "start with", title[:3])):
            [record] = await records(client, body_of(each_condition, top_k=1))
            assert record["title"] == title


async def test_a_limit_that_may_hide_passages_is_reported(built: House, monkeypatch: pytest.MonkeyPatch) -> None:
    body = body_of(condition("title", "is", "Delta"), knowledge="AI/Rows")
    assert (await built.clients["ai"].post("/retrieval", json=body)).json()["notes"] == [NO_EMBEDDER]
    monkeypatch.setattr(dify, "CONSIDERED", 2)
    noted = (await built.clients["ai"].post("/retrieval", json=body)).json()
    assert len(noted["records"]) <= 1
    assert noted["notes"][-1].startswith("The conditions were applied to the best 2 passages")


@each(
    "conditions, words",
    [
        ([condition("year", ">=", 1)], "Known: contains, not contains, start with, end with, is, is not, in, not in"),
        ([condition("year", "matches", "x")], "before, after"),
        ([condition("salary", "is", "x")], "author, status, year, as_of"),
        ([condition(["author", "salary"], "is", "x")], "unknown field"),
        ([condition(["author", "as_of"], "is", "x")], "stands alone"),
        ([condition([], "is", "x")], "unknown field"),
        ([condition("author", "is")], "a string or a number"),
        ([condition("author", "in", "Kim")], "a list of at most 100"),
        ([condition("author", "contains", "")], "with characters"),
        ([condition("author", "contains", 7)], "with characters"),
        ([condition("author", "empty", "Kim")], "takes no value"),
        ([condition("year", ">", "many")], "must be a number"),
        ([condition("year", "before", "2024-03-01")], "apply to as_of"),
        ([condition("as_of", "contains", "2024")], "takes the operators is, before, after"),
        ([condition("as_of", "before", "March")], "a date such as"),
        ([condition("as_of", "before", "0001-01-01")], "a date such as"),
        ([condition("as_of", "after", 1e300)], "a date such as"),
        ([condition("as_of", "is", "2024-03-01")] * 2, "one day"),
        ([condition("content_type", "is", "text/x")], "Unknown content type"),
        ([condition("author", "is", "Kim")] * 17, "at most 16"),
        ([condition("author", "is", "Kim"), condition("salary", "is", "x")], "Condition 2"),
    ],
)
async def test_what_is_unknown_is_refused_and_named(built: House, conditions: list[dict[str, Any]], words: str) -> None:
    for operator in ("and", "or"):
        body = body_of(*conditions)
        body["metadata_condition"]["logical_operator"] = operator
        response = await built.clients["ai"].post("/retrieval", json=body)
        if words == "Unknown content type" and operator == "or":
            body["metadata_condition"]["conditions"] *= 2  # compared, not filtered by
            assert await records(built.clients["ai"], body) == []
            continue
        failure = assert_failure(response, 422)
        assert words in failure["detail"]
        assert (failure["error_code"], failure["error_msg"]) == (422, failure["detail"])


async def test_the_day_is_not_one_of_several_alternatives(built: House) -> None:
    body = body_of(condition("author", "is", "Kim"), condition("as_of", "is", "2024-03-01"))
    assert await records(built.clients["ai"], body)
    body["metadata_condition"]["logical_operator"] = "or"
    assert "combine it by and" in assert_failure(await built.clients["ai"].post("/retrieval", json=body), 422)["detail"]


@each("seed", seeds(40))
async def test_random_conditions_never_return_more_than_they_admit(built: House, seed: int) -> None:
    """An unknown operator or field never returns records, and a known one only records that fulfil it."""
    chance = random.Random(seed)
    everything = await records(built.clients["ai"], body_of())
    assert {record["title"] for record in everything} >= ALL
    for _ in range(10):
        name = chance.choice((*FIELDS, "author", "year", "salary", "metadata.author", "", "AUTHOR"))
        operator = chance.choice((*OPERATORS, ">=", "like", "IS", "", "is  not", "null"))
        value: Any = chance.choice(("Kim", "AI/Rows", "a", "2024", 2022, None, ["Kim"], ["a", 2024], [], "x" * 300))
        joint = chance.choice(("and", "or"))
        body = body_of(condition(name, operator, value))
        if chance.random() < 0.5:
            body["metadata_condition"]["conditions"].append(condition("year", ">", 2021))
        body["metadata_condition"]["logical_operator"] = joint
        response = await built.clients["ai"].post("/retrieval", json=body)
        known = operator in OPERATORS and name in {*FIELDS, "author", "year"}
        assert known or response.status_code == 422, response.text
        if response.status_code != 200:
            assert response.status_code in {403, 422}  # 403: a category outside the scope
            assert "records" not in response.json()
            continue
        returned = response.json()["records"]
        assert {r["metadata"]["chunk_id"] for r in returned} <= {r["metadata"]["chunk_id"] for r in everything}
        for record in returned:
            later = len(body["metadata_condition"]["conditions"]) > 1
            newer = isinstance(record["metadata"].get("year"), int) and record["metadata"]["year"] > 2021
            first = _holds(record["metadata"].get(name), operator, value)
            assert (first and (newer or not later)) if joint == "and" else (first or (later and newer)), record


def _holds(held: Any, operator: str, value: Any) -> bool:
    """The meaning of an operator, written independently of the service."""
    is_set = held not in (None, "")
    number = float(value) if isinstance(value, int | str) and str(value).isdigit() else None
    compared = number is not None and isinstance(held, int)
    meanings: dict[str, Callable[[], bool]] = {
        "contains": lambda: isinstance(held, str) and value in held,
        "not contains": lambda: is_set and not (isinstance(held, str) and value in held),
        "start with": lambda: isinstance(held, str) and held[: len(value)] == value,
        "end with": lambda: isinstance(held, str) and held[-len(value) :] == value,
        "is": lambda: held == value,
        "is not": lambda: is_set and held != value,
        "in": lambda: held in value,
        "not in": lambda: is_set and held not in value,
        "empty": lambda: not is_set,
        "not empty": lambda: is_set,
        "=": lambda: compared and held == number,
        "≠": lambda: is_set and not (compared and held == number),
        ">": lambda: compared and held > number,
        "<": lambda: compared and held < number,
        "≥": lambda: compared and held >= number,
        "≤": lambda: compared and held <= number,
    }
    return bool(meanings[operator]())


@each(
    "knowledge, expected",
    [
        ("all", {"Alpha", "Trees", "Descent", "Rollout"}),
        ("AI", {"Alpha", "Trees", "Descent", "Rollout"}),
        ("ai/ml", {"Trees", "Descent"}),
        ("agent:Rows desk", {"Alpha"}),
    ],
)
async def test_knowledge_is_all_a_category_or_an_agent(built: House, knowledge: str, expected: set[str]) -> None:
    found = await records(built.clients["ai"], body_of(knowledge=knowledge, query="machine learning alpha turbine"))
    assert {record["title"] for record in found} - (ALL - {"Alpha"}) == expected


async def test_unknown_and_invisible_knowledge_are_one(built: House) -> None:
    [hidden] = [agent for agent in (await built.app.agents.every())[0] if agent.name == "Pay desk"]
    invisible = ("HR", "HR/Salary", "agent:Pay desk", f"agent:{hidden.agent_id}")
    unknown = ("Nowhere", "AI/Nowhere", "agent:Nobody", "agent:", "", "AI/../HR", "/", "a/" * 20, "All", "*")
    bodies = set()
    for knowledge in (*invisible, *unknown):
        failure = assert_failure(await built.clients["ai"].post("/retrieval", json=body_of(knowledge=knowledge)), 404)
        failure.pop("request_id")
        bodies.add(json.dumps(failure))
    [only] = bodies
    assert json.loads(only)["error_code"] == 2001
    for knowledge in invisible:
        assert await records(built.clients["owner"], body_of(knowledge=knowledge, query=CANARY))


async def test_a_key_reads_its_own_branches_only(built: House) -> None:
    for knowledge in ("all", "AI"):
        for record in await records(built.clients["ai"], body_of(knowledge=knowledge, query=f"machine {CANARY}")):
            assert record["metadata"]["category"].startswith("AI/")
    [pay] = await records(built.clients["hr"], body_of(query=CANARY))
    assert pay["metadata"]["category"] == "HR/Salary"
    outside = body_of(condition("category", "is", "HR/Salary"))
    assert assert_failure(await built.clients["ai"].post("/retrieval", json=outside), 403)["error_code"] == 1002
    for admitting_nothing in (condition("category", "contains", "HR"), condition("title", "is", "Pay")):
        assert await records(built.clients["ai"], body_of(admitting_nothing, query=CANARY)) == []


async def test_records_are_the_passages_of_a_search(built: House) -> None:
    query = "machine learning"
    searched = (await built.clients["ai"].post("/search", json={"query": query, "top_k": 3})).json()["results"]
    found = await records(built.clients["ai"], body_of(query=query, top_k=3))
    assert [record["metadata"]["chunk_id"] for record in found] == [result["chunk_id"] for result in searched]
    similarities = [max(result["bm25_score"], result["vector_score"]) for result in searched]
    for index, (record, result) in enumerate(zip(found, searched, strict=True)):
        assert set(record) == {"content", "score", "title", "metadata"}
        assert (record["content"], record["title"]) == (result["text"], result["title"])
        assert record["score"] == max(similarities[index:])
        assert (record["metadata"]["start"], record["metadata"]["end"]) == (result["start"], result["end"])
        assert record["metadata"]["category"] == "/".join(result["taxonomy_path"])
        assert None not in record["metadata"].values()


async def test_the_threshold_applies_to_the_score(built: House) -> None:
    found = await records(built.clients["ai"], body_of(query="machine learning with gradient descent"))
    scores = [record["score"] for record in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    limited = await records(
        built.clients["ai"], body_of(query="machine learning with gradient descent", score_threshold=scores[0])
    )
    assert 0 < len(limited) < len(found)
    assert min(record["score"] for record in limited) >= scores[0]
    assert await records(built.clients["ai"], body_of(query="  ")) == []


async def test_failures_have_the_codes_of_the_contract(built: House) -> None:
    transport = httpx2.ASGITransport(app=built.api)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:8001") as client:
        for headers, code in (
            ({}, 1001),
            ({"authorization": "x"}, 1001),
            ({"authorization": "Bearer"}, 1001),
            ({"authorization": "Bearer dtrag_wrong"}, 1002),
        ):
            failure = assert_failure(await client.post("/retrieval", json=body_of(), headers=headers), 401)
            assert (failure["error_code"], failure["error_msg"]) == (code, failure["detail"])
    created = await built.app.keys.create("slow", ["AI"], "reader", rate=1)
    headers = {"authorization": f"Bearer {created.secret}"}
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:8001", headers=headers) as client:
        # Dify tests an endpoint with a request without a body, and takes 404, 403 and 502 for a wrong one.
        assert assert_failure(await client.post("/retrieval"), 415)["error_code"] == 415
        limited = await client.post("/retrieval", json=body_of())
        assert assert_failure(limited, 429)["error_code"] == 429
        assert int(limited.headers["retry-after"]) >= 1


@each(
    "change",
    [
        {"knowledge_id": None},
        {"query": 7},
        {"query": "x" * 10_001},
        {"retrieval_setting": {}},
        {"retrieval_setting": {"top_k": 0, "score_threshold": 0.0}},
        {"retrieval_setting": {"top_k": 1_001, "score_threshold": 0.0}},
        {"retrieval_setting": {"top_k": 3, "score_threshold": 1.5}},
        {"retrieval_setting": {"top_k": 3, "score_threshold": 0.0, "rerank": True}},
        {"metadata_condition": {"logical_operator": "xor", "conditions": []}},
        {"metadata_condition": {"conditions": [{"name": "author", "operator": "is", "value": "Kim"}]}},
        {"metadata_filter": {}},
    ],
)
async def test_other_requests_are_refused(built: House, change: dict[str, Any]) -> None:
    failure = assert_failure(await built.clients["ai"].post("/retrieval", json=body_of() | change), 422)
    assert failure["error_code"] == 422


async def test_null_stands_for_what_is_left_out(built: House) -> None:
    nothing: list[Any] = [None, {"logical_operator": None, "conditions": None}, {"conditions": []}]
    for metadata_condition in nothing:
        body = body_of(score_threshold=None) | {"metadata_condition": metadata_condition}
        assert await records(built.clients["ai"], body) == await records(built.clients["ai"], body_of())


async def test_an_agent_limits_the_number_of_passages(built: House) -> None:
    owner = built.clients["owner"]
    [desk] = [agent for agent in (await owner.get("/agents")).json()["agents"] if agent["name"] == "Rows desk"]
    searched = await owner.post(f"/agents/{desk['agent_id']}/search", json={"query": QUERY})
    found = await records(owner, body_of(knowledge="agent:Rows desk", top_k=1_000))
    assert [record["metadata"]["chunk_id"] for record in found] == [
        result["chunk_id"] for result in searched.json()["results"]
    ]
    assert len(found) <= desk["retrieval"]["rerank"]["final_topk"]


async def test_before_and_after_read_the_texts_of_a_day(built: House) -> None:
    owner = built.clients["owner"]
    for day, count in (("2020. 3. 1.", "서른"), ("2024. 3. 1.", "마흔")):
        text = regulation(day, f"배차는 하루에 {count} 번까지 한다.")
        files = {"files": ("rule.md", text.encode())}
        assert (await owner.post("/documents", files=files, data={"category": "학사"})).status_code == 201
    for operator, value, count in (
        ("before", "2024-03-01", "서른"),
        ("is", "2024-03-01", "마흔"),
        ("is", "2024-02-29", "서른"),
        ("after", "2024-02-28", "서른"),
        ("after", "2024-02-29", "마흔"),
        ("before", 1_709_251_200, "서른"),  # 2024-03-01 in UTC
    ):
        body = body_of(
            condition("as_of", operator, value), knowledge="학사", query="차량관리규정 배차는 하루에 몇 번까지"
        )
        texts = " ".join(record["content"] for record in await records(owner, body))
        assert (count in texts, {"서른": "마흔", "마흔": "서른"}[count] in texts) == (True, False), (operator, value)
    today = await records(owner, body_of(knowledge="학사", query="차량관리규정 배차는 하루에 몇 번까지"))
    assert "마흔" in " ".join(record["content"] for record in today)


async def test_each_request_is_audited_without_its_text(built: House) -> None:
    client = await built.client("audited", ["AI"], "reader")
    found = await records(client, body_of(condition("title", "contains", "Alph"), query="pelargonium turbine"))
    await client.post("/retrieval", json=body_of(knowledge="HR"))
    lines = [line for line in await built.audited() if line["actor"] == "audited"]
    assert [(line["action"], line["details"]["status"]) for line in lines] == [
        ("POST /retrieval", 200),
        ("POST /retrieval", 404),
    ]
    assert set(lines[0]["subjects"]) == {record["metadata"]["document_id"] for record in found}
    assert "pelargonium" not in str(lines) and "Alph" not in str(lines)
