"""`/cbr` over HTTP: the shapes of the texts, who may do what, sentences of refusals, and races."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from dtrag import FeedbackRequest, FeedbackType
from tests.api.confined import CANARY, House, house
from tests.api.shape import assert_failure
from tests.cases import each
from tests.store import Databases

QUESTION = "What does machine learning find?"
CASE = {"query": QUESTION, "category_path": ["AI", "ML"], "content": "See the book of trees.", "quality_score": 0.6}
UNKNOWN = "6f0d9a52-0c3e-4b7c-9a39-0d3a3a8e4d11"
SUGGESTION = {
    "case_id",
    "query",
    "category_path",
    "content",
    "similarity_score",
    "quality_score",
    "metadata",
    "usage_count",
}


@pytest.fixture(autouse=True)
def enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CBR_ENABLED", "true")
    monkeypatch.setenv("FEATURE_NEURAL_CASE_SELECTOR", "true")


@pytest_asyncio.fixture(params=["postgres", "sqlite"])
async def built(houses: Databases, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    folder = tmp_path / "cases" if request.param == "sqlite" else None
    async with house(houses.settings(cbr_data_dir=folder)) as running:
        yield running


@pytest_asyncio.fixture
async def boss(built: House) -> httpx2.AsyncClient:
    return await built.client("boss", None, "admin")


async def add(client: httpx2.AsyncClient, **changed: Any) -> dict[str, Any]:
    response = await client.post("/cbr/case", json=CASE | changed)
    assert response.status_code == 200, response.text
    body = response.json()
    assert isinstance(body, dict)
    return body


async def suggest(client: httpx2.AsyncClient, query: str = QUESTION, **more: Any) -> dict[str, Any]:
    response = await client.post("/cbr/suggest", json={"query": query, **more})
    assert response.status_code == 200, response.text
    body = response.json()
    assert isinstance(body, dict)
    return body


async def vote(client: httpx2.AsyncClient, log_id: str, case_id: str, feedback: str = "thumbs_up") -> httpx2.Response:
    return await client.post("/cbr/feedback", json={"log_id": log_id, "case_id": case_id, "feedback": feedback})


async def test_a_case_is_added_suggested_and_voted_on(boss: httpx2.AsyncClient) -> None:
    case = await add(boss, metadata={"source": "help desk"})
    assert (case["query"], case["quality_score"], case["usage_count"]) == (QUESTION, 0.6, 0)
    suggested = await suggest(boss, "What can machine learning find?", k=3, category_path=["AI", "ML"])
    assert (suggested["k_requested"], suggested["k_returned"]) == (3, 1)
    assert suggested["execution_time_ms"] > 0
    [row] = suggested["suggestions"]
    assert row.keys() == SUGGESTION
    assert (row["case_id"], row["similarity_score"]) == (case["case_id"], pytest.approx(4 / 6))
    assert row["metadata"] == {"source": "help desk"}
    voted = await vote(boss, suggested["log_id"], case["case_id"])
    assert voted.status_code == 200, voted.text
    assert voted.json() | {"message": ""} == {
        "status": "success",
        "log_id": suggested["log_id"],
        "case_id": case["case_id"],
        "feedback": "thumbs_up",
        "quality_score": 0.7,
        "usage_count": 1,
        "success_rate": 1.0,
        "message": "",
    }
    ignored = await vote(boss, (await suggest(boss))["log_id"], case["case_id"], "ignored")
    assert (ignored.json()["quality_score"], ignored.json()["usage_count"]) == (0.7, 2)
    log_id = (await suggest(boss))["log_id"]
    sent = FeedbackRequest(log_id, case["case_id"], FeedbackType.THUMBS_DOWN, success=False).dict()
    assert (await boss.post("/cbr/feedback", json=sent)).json()["quality_score"] == 0.6


async def test_the_options_of_suggestions(boss: httpx2.AsyncClient) -> None:
    low, high = await add(boss, quality_score=0.2), await add(boss, quality_score=0.9, metadata={"n": 1})
    both = await suggest(boss)
    assert [row["case_id"] for row in both["suggestions"]] == [high["case_id"], low["case_id"]]
    good = await suggest(boss, min_quality_score=0.5, include_metadata=False)
    assert [(row["case_id"], row["metadata"]) for row in good["suggestions"]] == [(high["case_id"], {})]
    assert (await suggest(boss, k=1))["k_returned"] == 1
    assert (await suggest(boss, category_path=["AI"]))["suggestions"] == []
    assert (await suggest(boss, category_path=["ai"], include_subcategories=True))["k_returned"] == 2
    by_words = await suggest(boss, similarity_method="semantic")
    assert (by_words["similarity_method"], by_words["k_returned"]) == ("cosine", 2)
    assert "words" in by_words["notes"][0]


async def test_nothing_in_common_is_no_suggestion(boss: httpx2.AsyncClient) -> None:
    await add(boss)
    assert (await suggest(boss, "Where are bicycles parked?"))["suggestions"] == []
    assert (await suggest(boss, "Where are bicycles parked?", similarity_method="jaccard"))["suggestions"] == []


async def test_a_category_outside_the_tree_is_named(boss: httpx2.AsyncClient) -> None:
    assert (await add(boss))["notes"] == []
    added = await add(boss, category_path=["AI", "Robots"])
    assert "The category AI/Robots is not in the tree" in added["notes"][0]
    assert [note["code"] for note in added["note_statements"]] == ["case_outside_tree"]


async def test_interactions_are_counted_with_and_without_votes(boss: httpx2.AsyncClient) -> None:
    case_id = (await add(boss))["case_id"]
    await vote(boss, (await suggest(boss))["log_id"], case_id)
    await suggest(boss)
    stats = (await boss.get("/cbr/stats")).json()
    figures = stats["cbr_system_stats"]
    assert (figures["total_interactions"], figures["successful_interactions"], figures["success_rate"]) == (2, 1, 1.0)
    assert stats["neural_selector_readiness"]["total_interactions"] == 1


async def test_reading_changing_and_deleting(boss: httpx2.AsyncClient) -> None:
    case_id = (await add(boss, case_id="case-001"))["case_id"]
    assert case_id == "case-001"
    read = (await boss.get("/cbr/cases/case-001")).json()
    assert (read["query"], read["category_path"], read["origin"]) == (QUESTION, ["AI", "ML"], "manual")
    sent = {"query": "updated query", "category_path": None, "content": None, "quality_score": 0.8, "metadata": None}
    changed = await boss.put("/cbr/cases/case-001", json=sent)
    assert changed.status_code == 200, changed.text
    assert changed.json().keys() == {"status", "case_id", "message", "updated_fields", "updated_at"}
    assert changed.json()["updated_fields"] == ["query", "quality_score"]
    quality = await boss.put("/cbr/cases/case-001/quality", json={"quality_score": 0.9})
    assert (quality.json()["quality_score"], quality.json()["previous_quality_score"]) == (0.9, 0.8)
    assert quality.json().keys() == {
        "status",
        "case_id",
        "quality_score",
        "previous_quality_score",
        "message",
        "updated_at",
    }
    read = (await boss.get("/cbr/cases/case-001")).json()
    assert (read["query"], read["quality_score"], read["content"]) == ("updated query", 0.9, CASE["content"])
    await suggest(boss, "updated query")
    deleted = await boss.delete("/cbr/cases/case-001")
    assert deleted.json().keys() == {"status", "case_id", "message", "deleted_at"}
    assert_failure(await boss.get("/cbr/cases/case-001"), 404)
    assert (await boss.get("/cbr/logs")).json()["logs"] == []


async def test_another_question_or_passage_forgets_what_confirmed_a_case(
    built: House, boss: httpx2.AsyncClient
) -> None:
    [hit] = (await boss.post("/search", json={"query": "gradient descent slope", "top_k": 1})).json()["results"]
    case_id = (await add(boss, passages=[hit["chunk_id"]]))["case_id"]
    await vote(boss, (await suggest(boss))["log_id"], case_id)
    editor = await built.client("editor", ["AI"])
    for change, upvotes in (({"content": "New."}, 1), ({"query": QUESTION}, 1), ({"passages": []}, 0)):
        await editor.put(f"/cbr/cases/{case_id}", json=change)
        assert (await boss.get(f"/cbr/cases/{case_id}")).json()["upvotes"] == upvotes
    [editors] = [str(key.key_id) for key in await built.app.keys.every() if key.name == "editor"]
    assert (await boss.get("/cbr/export")).json()["training_data"]["cases"][0]["author"] == editors


async def test_figures_logs_and_export(boss: httpx2.AsyncClient) -> None:
    case_id = (await add(boss))["case_id"]
    log_id = (await suggest(boss, category_path=["AI", "ML"]))["log_id"]
    await suggest(boss, "something else", category_path=["AI", "ML"])
    await vote(boss, log_id, case_id, "selected")
    stats = (await boss.get("/cbr/stats")).json()
    assert stats.keys() == {"cbr_system_stats", "performance", "neural_selector_readiness", "reuse", "timestamp"}
    figures = stats["cbr_system_stats"]
    assert (figures["total_cases"], figures["total_usage_count"], figures["most_used_case"]) == (1, 1, case_id)
    assert figures["category_distribution"] == {"AI/ML": 1}
    assert figures["similarity_method_usage"] == {"cosine": 2}
    assert stats["performance"]["target_response_time_ms"] == 200
    assert stats["neural_selector_readiness"]["ready_for_training"] is False
    logs = (await boss.get("/cbr/logs")).json()
    assert logs.keys() == {"logs", "total_count", "neural_selector_readiness"}
    assert [row["query"] for row in logs["logs"]] == ["something else", QUESTION]
    [successful] = (await boss.get("/cbr/logs", params={"success_only": True})).json()["logs"]
    assert (successful["log_id"], successful["feedback"], successful["success_flag"]) == (log_id, "selected", True)
    exported = (await boss.get("/cbr/export")).json()
    assert exported.keys() == {"training_data", "ready_for_neural_selector"}
    assert exported["training_data"].keys() == {"cases", "interactions", "metadata", "statistics"}
    assert exported["training_data"]["metadata"]["case_count"] == 1


async def test_lists_and_stale_cases(built: House, boss: httpx2.AsyncClient, tmp_path: Path) -> None:
    hits = (await boss.post("/search", json={"query": "gradient descent slope"})).json()["results"]
    plain, citing = await add(boss), await add(boss, passages=[hits[0]["chunk_id"]])
    assert citing["passages"] == [hits[0]["chunk_id"]]
    listed = (await boss.get("/cbr/cases", params={"limit": 1})).json()
    rest = (await boss.get("/cbr/cases", params={"limit": 1, "after": listed["next"]})).json()
    assert {row["case_id"] for row in listed["cases"] + rest["cases"]} == {plain["case_id"], citing["case_id"]}
    assert rest["next"] is None
    assert (await boss.get("/cbr/cases", params={"stale": True})).json()["cases"] == []
    deleted = await boss.delete(f"/documents/{hits[0]['chunk_id'].rpartition(':')[0]}")
    assert deleted.status_code == 204
    [stale] = (await boss.get("/cbr/cases", params={"stale": True})).json()["cases"]
    assert (stale["case_id"], stale["stale_passages"]) == (citing["case_id"], citing["passages"])


@each(
    "method, path, body, status",
    [
        ("PUT", "/cbr/cases/case-001", {}, 400),
        ("PUT", "/cbr/cases/case-001", {"query": "  "}, 400),
        ("PUT", "/cbr/cases/case-001", {"content": ""}, 400),
        ("PUT", "/cbr/cases/case-001", {"category_path": []}, 400),
        ("GET", "/cbr/cases/%20", None, 400),
        ("PUT", "/cbr/cases/%20/quality", {"quality_score": 0.5}, 400),
        ("DELETE", "/cbr/cases/%20", None, 400),
        ("POST", "/cbr/case", CASE | {"category_path": []}, 400),
        ("POST", "/cbr/case", CASE | {"query": " "}, 400),
        ("GET", f"/cbr/cases/{UNKNOWN}", None, 404),
        ("PUT", f"/cbr/cases/{UNKNOWN}", {"content": "x"}, 404),
        ("PUT", f"/cbr/cases/{UNKNOWN}/quality", {"quality_score": 0.5}, 404),
        ("DELETE", f"/cbr/cases/{UNKNOWN}", None, 404),
        ("POST", "/cbr/feedback", {"log_id": "log-001", "case_id": "case-001", "feedback": "thumbs_up"}, 404),
        ("POST", "/cbr/case", CASE | {"case_id": "case-001"}, 409),
        ("POST", "/cbr/case", CASE | {"case_id": "a/b"}, 422),
        ("POST", "/cbr/case", CASE | {"passages": [f"{UNKNOWN}:0"]}, 422),
        ("POST", "/cbr/case", CASE | {"metadata": {"a": [[[[[[[[[1]]]]]]]]]}}, 422),
        ("POST", "/cbr/case", CASE | {"as_of": "yesterday"}, 422),
        ("POST", "/cbr/case", CASE | {"unknown": 1}, 422),
        ("PUT", "/cbr/cases/case-001/quality", {"quality_score": 1.1}, 422),
        ("POST", "/cbr/suggest", {"query": ""}, 422),
        ("POST", "/cbr/suggest", {"query": "   "}, 422),
        ("POST", "/cbr/suggest", {"query": "x" * 1_001}, 422),
        ("POST", "/cbr/suggest", {"query": "x", "k": 51}, 422),
        ("POST", "/cbr/suggest", {"query": "x", "similarity_method": "hamming"}, 422),
        ("POST", "/cbr/suggest", {"query": "x", "category_path": ["a/b"]}, 422),
        ("POST", "/cbr/feedback", {"log_id": "l", "case_id": "c", "feedback": "love"}, 422),
        ("GET", "/cbr/logs?limit=0", None, 422),
        ("GET", "/cbr/cases?limit=1001", None, 422),
        ("GET", "/cbr/export?limit=100001", None, 422),
    ],
)
async def test_refusals(boss: httpx2.AsyncClient, method: str, path: str, body: Any, status: int) -> None:
    await boss.post("/cbr/case", json=CASE | {"case_id": "case-001"})
    response = await boss.request(method, path, json=body) if body is not None else await boss.request(method, path)
    assert_failure(response, status)


async def test_hostile_texts_are_stored_or_refused(boss: httpx2.AsyncClient) -> None:
    for text in ("' OR 1=1 --", "%", "\\", "a\x00b", "🙂", "{}[]", "x" * 1_000):
        case_id = (await add(boss, query=text, content=text, metadata={text: text}))["case_id"]
        read = (await boss.get(f"/cbr/cases/{case_id}")).json()
        assert (read["query"], read["content"]) == (text.replace("\x00", ""),) * 2
        found = await suggest(boss, text)
        assert found["suggestions"][0]["case_id"] == case_id
    raw = json.dumps(CASE).encode().replace(b"See the book of trees.", b"\\ud800")
    assert_failure(await boss.post("/cbr/case", content=raw, headers={"content-type": "application/json"}), 422)


async def test_a_case_says_why_it_is_not_shown_as_answered_before(built: House, boss: httpx2.AsyncClient) -> None:
    async def judged(**expected: Any) -> dict[str, Any]:
        read: dict[str, Any] = (await boss.get(f"/cbr/cases/{case_id}")).json()
        assert {name: read[name] for name in expected} == expected
        return read

    passage = (await boss.post("/search", json={"query": QUESTION})).json()["results"][0]["chunk_id"]
    case_id = (await add(boss))["case_id"]
    await judged(reuse="no_passages", stale=False, supporters=0, supported_at=None, right=0, wrong=0)
    case_id = (await add(boss, passages=[passage]))["case_id"]
    await judged(reuse="unconfirmed", stale=False)
    kim, lee = await built.client("kim", None, "reader"), await built.client("lee", None, "reader")
    for voter, thumbs, expected in (
        (kim, "thumbs_up", {"reuse": "reused", "supporters": 1}),
        (lee, "thumbs_down", {"reuse": "thumbs_down", "supporters": 1}),
    ):
        assert (await vote(voter, (await suggest(voter))["log_id"], case_id, thumbs)).status_code == 200
        assert (await judged(**expected))["supported_at"] is not None
    await boss.delete(f"/documents/{passage.rpartition(':')[0]}")
    await judged(reuse="stale", stale=True, stale_passages=[passage])
    await boss.put(f"/cbr/cases/{case_id}", json={"status": "archived"})
    await judged(reuse="archived")


async def test_a_foreign_case_is_like_an_unknown_one(built: House, boss: httpx2.AsyncClient) -> None:
    foreign = await add(boss, query=f"Who pays {CANARY}?", category_path=["HR", "Salary"], content=CANARY)
    log_id = (await suggest(boss, f"Who pays {CANARY}?"))["log_id"]
    editor = await built.client("editor", ["AI/ML"])
    own = await add(editor, content="Mine.")
    found = await suggest(editor, f"Does machine learning find who pays {CANARY}?", k=50)
    assert [row["case_id"] for row in found["suggestions"]] == [own["case_id"]]
    assert (await suggest(editor, CANARY, category_path=["HR", "Salary"]))["suggestions"] == []
    for method, end, body in (
        ("GET", "", None),
        ("PUT", "", {"quality_score": 0.0}),
        ("PUT", "/quality", {"quality_score": 0.0}),
        ("DELETE", "", None),
    ):
        bodies = []
        for case_id in (foreign["case_id"], UNKNOWN):
            response = await editor.request(method, f"/cbr/cases/{case_id}{end}", json=body)
            bodies.append(assert_failure(response, 404)["detail"].replace(case_id, "ID"))
        assert bodies[0] == bodies[1]
    for log, case_id in ((log_id, foreign["case_id"]), (found["log_id"], foreign["case_id"]), (UNKNOWN, UNKNOWN)):
        assert_failure(await vote(editor, log, case_id, "thumbs_down"), 404)
    assert CANARY not in (await editor.get("/cbr/cases")).text
    assert (await editor.get("/cbr/stats")).json()["cbr_system_stats"]["total_cases"] == 1
    assert_failure(await editor.post("/cbr/case", json=CASE | {"category_path": ["HR", "Salary"]}), 403)
    for path in ("/cbr/logs", "/cbr/export"):
        assert_failure(await editor.get(path), 403)
        scoped = await (await built.client("scoped-admin", ["AI/ML"], "admin")).get(path)
        assert (scoped.status_code, CANARY in scoped.text) == (200, False)
    assert (await boss.get(f"/cbr/cases/{foreign['case_id']}")).json()["quality_score"] == 0.6


async def test_a_narrow_scope_is_told_no_category_outside(built: House, boss: httpx2.AsyncClient) -> None:
    """Not even the former path of a category that was moved into the scope."""
    scoped = await built.client("scoped-admin", ["AI/ML"], "admin")
    payroll = await built.client("payroll", ["HR/Salary"], "reader")
    paths = (["AI", "ML"], ["HR", "Salary"], ["AIX", "Y"])
    for path in paths:
        case_id = (await add(boss, category_path=path, query=f"What does {path[-1]} find?"))["case_id"]
        log_id = (await suggest(boss, f"What does {path[-1]} find?", category_path=path))["log_id"]
        await vote(boss, log_id, case_id)
    for asker, path in ((scoped, paths[0]), (payroll, paths[1])):
        await suggest(asker, f"What does {path[-1]} pay?", category_path=path)

    async def told() -> tuple[Any, set[str], set[str]]:
        """The categories of figures, of interactions and of all cases; no other name is in any response."""
        responses = {path: await scoped.get(path) for path in ("/cbr/stats", "/cbr/logs", "/cbr/export", "/cbr/cases")}
        hits = await scoped.post("/search/neural", json={"query": "What does Salary find?"})
        for response in (*responses.values(), hits):
            assert response.status_code == 200, response.text
            assert '"HR' not in response.text and "AIX" not in response.text
        stats, logs, export, cases = (response.json() for response in responses.values())
        rows = [*export["training_data"]["cases"], *cases["cases"], *hits.json()["hits"]]
        interactions = [*logs["logs"], *export["training_data"]["interactions"]]
        assert export["training_data"]["statistics"] == stats["cbr_system_stats"]
        return (
            stats["cbr_system_stats"]["category_distribution"],
            {"/".join(row["category_path"]) for row in interactions},
            {"/".join(row["category_path"]) for row in rows},
        )

    assert await told() == ({"AI/ML": 1}, {"AI/ML"}, {"AI/ML"})
    version = await built.app.taxonomy.propose([{"op": "move", "path": "HR/Salary", "to": "AI/ML"}])
    await built.app.taxonomy.activate(version.version, accept_widening=True)
    both = {"AI/ML", "AI/ML/Salary"}
    assert await told() == ({"AI/ML": 1, "AI/ML/Salary": 1}, both, both)


async def test_readers_read_and_vote_only(built: House, boss: httpx2.AsyncClient) -> None:
    case_id = (await add(boss))["case_id"]
    reader = await built.client("reader", ["AI"], "reader")
    log_id = (await suggest(reader))["log_id"]
    assert (await vote(reader, log_id, case_id)).status_code == 200
    assert (await reader.get(f"/cbr/cases/{case_id}")).json()["quality_score"] == 0.7
    assert_failure(await reader.post("/cbr/case", json=CASE), 403)
    assert_failure(await reader.put(f"/cbr/cases/{case_id}", json={"content": "x"}), 403)
    assert_failure(await reader.delete(f"/cbr/cases/{case_id}"), 403)


async def test_two_hundred_votes_at_once_are_all_counted(built: House, boss: httpx2.AsyncClient) -> None:
    case_id = (await add(boss, quality_score=0.0))["case_id"]
    log_ids = [found["log_id"] for found in await asyncio.gather(*(suggest(boss, k=1) for _ in range(200)))]
    votes = await asyncio.gather(
        *(
            vote(boss, log_id, case_id, "thumbs_down" if number % 4 else "ignored")
            for number, log_id in enumerate(log_ids)
        )
    )
    assert {response.status_code for response in votes} == {200}
    case = (await boss.get(f"/cbr/cases/{case_id}")).json()
    assert (case["usage_count"], case["quality_score"], case["downvotes"]) == (200, 0.0, 150)
    again = await asyncio.gather(*(vote(boss, log_ids[0], case_id, "ignored") for _ in range(20)))
    assert {response.json()["usage_count"] for response in again} == {200}


async def test_a_hundred_suggestions_at_once_are_all_answered(built: House, boss: httpx2.AsyncClient) -> None:
    await add(boss)
    answers = await asyncio.gather(
        *(boss.post("/cbr/suggest", json={"query": f"query {n}", "k": 5}) for n in range(100))
    )
    assert [response.status_code for response in answers] == [200] * 100
    assert len({response.json()["log_id"] for response in answers}) == 100


async def test_everything_is_501_while_the_memory_is_off(
    built: House, boss: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(boss, case_id="case-001")
    monkeypatch.setenv("CBR_ENABLED", "false")
    for method, path, body in (
        ("POST", "/cbr/suggest", {"query": "x"}),
        ("POST", "/cbr/feedback", {"log_id": "l", "case_id": "c", "feedback": "ignored"}),
        ("POST", "/cbr/case", CASE),
        ("GET", "/cbr/cases", None),
        ("GET", "/cbr/cases/case-001", None),
        ("PUT", "/cbr/cases/case-001", {"content": "x"}),
        ("PUT", "/cbr/cases/case-001/quality", {"quality_score": 0.5}),
        ("DELETE", "/cbr/cases/case-001", None),
        ("GET", "/cbr/stats", None),
        ("GET", "/cbr/logs", None),
        ("GET", "/cbr/export", None),
    ):
        detail = assert_failure(await boss.request(method, path, json=body), 501)["detail"]
        assert detail.startswith("CBR system is not enabled. Set CBR_ENABLED=true")
    assert (await boss.get("/health")).json()["features"]["B-O4"] == "cbr-system-disabled"
    monkeypatch.setenv("CBR_ENABLED", "true")
    assert (await boss.get("/cbr/cases/case-001")).status_code == 200
    health = (await boss.get("/health")).json()
    assert (health["features"]["B-O4"], health["checks"]["case memory"]["status"]) == ("cbr-system-enabled", "healthy")


async def test_metrics_hold_the_figures(built: House, boss: httpx2.AsyncClient) -> None:
    case_id = (await add(boss))["case_id"]
    await vote(boss, (await suggest(boss))["log_id"], case_id)
    lines = dict(line.rsplit(" ", 1) for line in (await boss.get("/metrics")).text.splitlines() if line[0] != "#")
    assert lines["dtrag_cbr_enabled"] == "1.0"
    assert (lines["dtrag_cbr_total_cases"], lines["dtrag_cbr_quality_score_avg"]) == ("1.0", "0.7")
    assert (lines["dtrag_cbr_total_interactions"], lines["dtrag_cbr_success_rate"]) == ("1.0", "1.0")
    assert float(lines["dtrag_cbr_suggestion_latency_avg"]) > 0
    assert lines['dtrag_cbr_feedback_total{feedback="thumbs_up"}'] == "1.0"


async def test_no_text_reaches_the_logs(
    built: House, boss: httpx2.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="dtrag"):
        case_id = (await add(boss, query=CANARY, content=CANARY, metadata={"word": CANARY}))["case_id"]
        await suggest(boss, CANARY)
        await boss.put(f"/cbr/cases/{case_id}", json={"query": f"{CANARY} {uuid.uuid4()}"})
        assert_failure(await boss.post("/cbr/suggest", json={"query": CANARY * 200}), 422)
    assert CANARY not in caplog.text
    audited = await built.audited()
    assert CANARY not in json.dumps(audited)
    own = [
        (line["action"], line["subjects"], line["decision"]) for line in audited if line["action"].startswith("cases.")
    ]
    assert own == [("cases.add", [case_id], "done"), ("cases.change", [case_id], "done")]


async def test_no_place_in_the_list_fails(boss: httpx2.AsyncClient) -> None:
    stored = await add(boss)
    response = await boss.get("/cbr/cases", params={"after": "\x00"})
    assert response.status_code == 200, response.text
    assert [row["case_id"] for row in response.json()["cases"]] == [stored["case_id"]]
    assert_failure(await boss.get("/cbr/export", params={"limit": 10_001}), 422)
