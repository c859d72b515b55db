"""Words of a question that was asked in a wide scope: no caller of a narrower one reads any of them, on any route."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from dtrag.core.access.api_key import Role
from dtrag.core.access.confinement import confined
from dtrag.core.access.scope import Access, Grant
from dtrag.core.taxonomy.tree import CategoryPath
from tests.api.confined import House, house
from tests.api.test_route_matrix import MINE, ROUTES, THEIRS
from tests.store import Databases

SECRET = "quixotry"
"""A word of questions, comments and notes, and of no document."""
QUESTION = f"Which rules does machine learning find about {SECRET}?"
PLAIN = "Which rules does machine learning find?"
NARROW: tuple[tuple[Role, list[str]], ...] = (
    ("reader", ["AI/ML"]),
    ("editor", ["AI"]),
    ("admin", ["AI"]),
    ("admin", ["HR/Salary"]),
)


@dataclass(frozen=True)
class Asked:
    """What a caller of a wide scope left behind, by id."""

    case_id: str
    log_id: str
    trace_id: str
    item_id: str


@pytest.fixture(autouse=True)
def enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CBR_ENABLED", "true")
    monkeypatch.setenv("FEATURE_NEURAL_CASE_SELECTOR", "true")


@pytest_asyncio.fixture(params=["postgres", "sqlite"])
async def built(houses: Databases, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    folder = tmp_path / "cases" if request.param == "sqlite" else None
    async with house(houses.settings(cbr_data_dir=folder, trace_text="on")) as running:
        yield running


async def chat(client: httpx2.AsyncClient, question: str) -> dict[str, Any]:
    answered = await client.post("/chat/run", json={"message": question, "conversation_id": "talk"})
    assert answered.status_code == 200, answered.text
    body: dict[str, Any] = answered.json()
    return body


async def ask_and_rate(built: House, client: httpx2.AsyncClient) -> Asked:
    """Questions with the word about documents of AI/ML: one voted up, one disputed and corrected, one suggested."""
    trace_id = (await chat(client, QUESTION))["metadata"]["trace_id"]
    rated = await client.post("/chat/feedback", json={"trace_id": trace_id, "thumbs": "up", "reason": f"Good {SECRET}"})
    assert rated.json()["case_id"], rated.text
    disputed = (await chat(client, f"Where is the {SECRET} of a decision tree?"))["metadata"]["trace_id"]
    vote = {"trace_id": disputed, "thumbs": "down", "reason": f"No {SECRET} there"}
    assert (await client.post("/chat/feedback", json=vote)).status_code == 200
    boss = await built.client("boss", None, "admin")
    [item] = [row for row in (await boss.get("/review")).json()["items"] if SECRET in row["proposal"]["question"]]
    passages = (await boss.get(f"/review/{item['item_id']}")).json()["proposal"]["passages"]
    chosen = [row["chunk_id"] for row in passages][:1]
    address = f"/review/{item['item_id']}/correct"
    corrected = await boss.post(address, json={"passages": chosen, "note": f"The {SECRET}"})
    assert corrected.status_code == 200, corrected.text
    suggested = await client.post("/cbr/suggest", json={"query": QUESTION, "category_path": MINE})
    case_id = rated.json()["case_id"]
    log_id = suggested.json()["log_id"]
    voted = await client.post("/cbr/feedback", json={"log_id": log_id, "case_id": case_id, "feedback": "selected"})
    assert voted.status_code == 200, voted.text
    return Asked(case_id, log_id, trace_id, item["item_id"])


async def everything_said_to(client: httpx2.AsyncClient, asked: Asked, case_ids: list[str]) -> dict[str, str]:
    """The responses of all routes, of those with an id for every case and object of the asker. None of the requests
    has the word."""
    said = {}
    for (method, path), described in ROUTES.items():
        addresses = [path]
        if "{case_id}" in path:
            addresses = [path.replace("{case_id}", case_id) for case_id in case_ids]
        known = {"{item_id}": asked.item_id, "{trace_id}": asked.trace_id, "{conversation_id}": "talk", "{name}": "x"}
        for name, value in known.items():
            addresses = [address.replace(name, value) for address in addresses]
        for address in addresses:
            if "{" in address or (method, path) == ("POST", "/documents"):
                continue
            response = await client.request(method, address, **({"json": described.sent} if described.sent else {}))
            said[f"{method} {address}"] = response.text
    for query in ("?status=archived", "?status=active", "?stale=false", "?limit=1"):
        said[f"cases{query}"] = (await client.get(f"/cbr/cases{query}")).text
    for method in ("cosine", "jaccard", "euclidean", "semantic"):
        body = {"query": PLAIN, "k": 50, "similarity_method": method}
        said[f"suggest {method}"] = (await client.post("/cbr/suggest", json=body)).text
    for mode in ("hybrid", "neural", "bm25"):
        said[f"neural {mode}"] = (await client.post("/search/neural", json={"query": PLAIN, "mode": mode})).text
    said["ask"] = (await client.post("/ask", json={"question": PLAIN})).text
    return said


@pytest.mark.parametrize("wide", [None, ["AI", "HR/Salary"]])
async def test_no_narrower_caller_reads_a_word(
    built: House, wide: list[str] | None, caplog: pytest.LogCaptureFixture
) -> None:
    asker = await built.client("asker", wide, "editor" if wide else "admin")
    boss = await built.client("boss", None, "admin")
    with caplog.at_level(logging.DEBUG, logger="dtrag"):
        asked = await ask_and_rate(built, asker)
        await built.app.retention.flush()
        stored = (await boss.get("/cbr/cases")).json()["cases"]
        case_ids = [row["case_id"] for row in stored]
        assert len([row for row in stored if SECRET in row["query"]]) == 2  # of the answer, and of the correction
        assert all(row["category_path"][:1] == ["AI"] for row in stored)  # in the category of every reader below
        narrow = [await built.client(f"{role} of {scope[0]}", scope, role) for role, scope in NARROW]
        for status in ("active", "archived"):
            change = {"status": status}
            assert (await boss.put(f"/cbr/cases/{asked.case_id}", json=change)).status_code == 200
            for client in narrow:
                said = await everything_said_to(client, asked, case_ids)
                assert {name for name, text in said.items() if SECRET in text.lower()} == set()
                listed = (await client.get("/cbr/cases")).json()["cases"]
                assert not {row["case_id"] for row in listed} & set(case_ids)
                assert (await client.get(f"/cbr/cases/{asked.case_id}")).status_code == 404
                stats = (await client.get("/cbr/stats")).json()["cbr_system_stats"]
                assert stats["total_cases"] == len(listed)
        for client in narrow:
            repeated = (await client.post("/ask", json={"question": QUESTION})).json()
            assert repeated["answered_before"] is None
    assert SECRET not in caplog.text
    assert SECRET not in str(await built.audited())
    assert SECRET not in (await boss.get("/metrics")).text


async def test_the_asker_and_wider_callers_read_it(built: House) -> None:
    asker = await built.client("asker", ["AI", "HR/Salary"], "admin")
    asked = await ask_and_rate(built, asker)
    await built.app.retention.flush()
    same = await built.client("same", ["HR", "AI"], "admin")
    boss = await built.client("boss", None, "admin")
    for client in (asker, same, boss):
        assert SECRET in (await client.get(f"/cbr/cases/{asked.case_id}")).json()["query"]
        assert SECRET in (await client.get("/cbr/logs")).text
    assert SECRET in (await asker.get(f"/traces/{asked.trace_id}")).text
    assert SECRET in (await asker.get("/conversations/talk")).text


async def test_a_chosen_category_is_an_audience(built: House) -> None:
    """By an editor of the case, and by a reviewer of the answer; the passages must be visible, too."""
    boss = await built.client("boss", None, "admin")
    asked = await ask_and_rate(built, boss)
    reader, foreign = await built.client("reader", ["AI/ML"], "reader"), await built.client("other", THEIRS, "reader")
    assert (await reader.get(f"/cbr/cases/{asked.case_id}")).status_code == 404
    assert (await boss.put(f"/cbr/cases/{asked.case_id}", json={"category_path": MINE})).status_code == 200
    assert SECRET in (await reader.get(f"/cbr/cases/{asked.case_id}")).json()["query"]
    assert (await foreign.get(f"/cbr/cases/{asked.case_id}")).status_code == 404

    disputed = (await chat(boss, f"Is {SECRET} a decision tree?"))["metadata"]["trace_id"]
    await boss.post("/chat/feedback", json={"trace_id": disputed, "thumbs": "down"})
    [item] = [row for row in (await boss.get("/review")).json()["items"] if SECRET in row["proposal"]["question"]]
    found = (await boss.post("/search", json={"query": "decision tree", "top_k": 1})).json()
    chosen = [row["chunk_id"] for row in found["hits"]]
    address = f"/review/{item['item_id']}/correct"
    published = await boss.post(address, json={"passages": chosen, "path": MINE})
    assert published.status_code == 200, published.text
    case = await reader.get(f"/cbr/cases/review-{item['item_id']}")
    assert (SECRET in case.json()["query"], case.json()["category_path"]) == (True, MINE)


async def test_functions_that_are_confined_read_none(built: House) -> None:
    """As commands and tools that run for a caller: without a caller of their own they are the local user."""
    boss = await built.client("boss", None, "admin")
    asked = await ask_and_rate(built, boss)
    taxonomy = (await built.app.index.snapshot()).taxonomy
    narrow = Access((Grant.of([CategoryPath.parse("AI")], taxonomy),))
    cases = built.app.cases
    assert SECRET in str(await cases.export())
    with confined(narrow):
        parts = [await cases.export(), await cases.page(), await cases.logs(), await cases.suggest(PLAIN)]
        assert SECRET not in str(parts)
        assert (await built.app.reuse.recall(QUESTION, narrow)).candidates == 0
    assert SECRET in str(await cases.get(asked.case_id))
