"""Editors write into their own branches only, and learn nothing of what others have. Hostile cases 12, 13 and 17."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from dtrag.core.access.scope import Scope
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.errors import Forbidden
from dtrag.ingestion.sources import Source
from tests.api.confined import CANARY, House, house
from tests.api.shape import FORM, assert_failure, form
from tests.cases import each
from tests.store import Databases


@pytest_asyncio.fixture
async def built(houses: Databases) -> AsyncIterator[House]:
    async with house(houses.settings()) as running:
        await running.client("boss", None, "admin")
        await running.client("a", ["AI/ML"], "editor")
        await running.client("hr", ["HR"], "editor")
        yield running


async def upload(client: httpx2.AsyncClient, name: str, text: str, category: str | None) -> httpx2.Response:
    parts = [("files", name.encode(), text.encode())]
    if category is not None:
        parts.append(("category", None, category.encode()))  # type: ignore[arg-type]
    return await client.post("/documents", content=form(*parts), headers=FORM)


async def seen(client: httpx2.AsyncClient) -> set[str]:
    found = (await client.get("/documents")).json()
    assert found["total"]["documents"] == len(found["documents"])
    return {document["title"] for document in found["documents"]}


async def test_lists_and_totals_cover_the_callers_branch(built: House) -> None:
    assert await seen(built.clients["a"]) == {"Trees", "Descent"}
    assert await seen(built.clients["hr"]) == {"Pay"}
    assert len(await seen(built.clients["boss"])) == 6


@each("category", ["HR/Salary", "HR", "AI", "AI/MLOps", "AI/New", "New", "AIX"])
async def test_uploads_into_other_branches_are_refused(built: House, category: str) -> None:
    before = (await built.app.index.snapshot()).taxonomy.nodes.keys()
    assert_failure(await upload(built.clients["a"], "x.md", "# X\n\nText.", category), 403)
    assert (await built.app.index.snapshot()).taxonomy.nodes.keys() == before
    assert len(await seen(built.clients["boss"])) == 6


async def test_uploads_without_a_category(built: House) -> None:
    body = assert_failure(await upload(built.clients["a"], "x.md", "# X\n\nText.", None), 422)
    assert "category inside your own branches" in body["detail"]
    assert (await upload(built.clients["boss"], "x.md", "# X\n\nText.", None)).status_code == 201


async def test_documents_that_name_another_branch_are_refused(built: House) -> None:
    lines = (
        '{"title": "One", "text": "Learning one.", "category_path": ["AI", "ML"]}\n'
        '{"title": "Two", "text": "Learning two.", "category_path": ["HR", "Salary"]}\n'
        '{"title": "Three", "text": "Learning three.", "category_path": ["Else", "Where"]}\n'
    )
    response = await upload(built.clients["a"], "many.jsonl", lines, "AI/ML")
    titles = await seen(built.clients["boss"])
    assert "Two" not in titles and "Three" not in titles
    assert (await built.app.index.snapshot()).taxonomy.find(CategoryPath.parse("Else/Where")) is None
    assert any("inside your own branches" in failed["reason"] for failed in response.json()["failed"])


async def test_a_new_category_below_the_callers_branch(built: House) -> None:
    for text in ("# Deep\n\nLearning.", "# Deep\n\nLearning anew."):
        response = await upload(built.clients["a"], "deep.md", text, "AI/ML/Deep")
        assert response.status_code == 201, response.text
    assert await seen(built.clients["a"]) == {"Trees", "Descent", "Deep"}


async def test_a_file_of_the_same_name_elsewhere_is_neither_replaced_nor_revealed(built: House) -> None:
    secret = "# Salary\n\nThe pay is high."
    assert (await upload(built.clients["boss"], "pay.md", secret, "HR/Salary")).status_code == 201
    assert (await upload(built.clients["hr"], "list.md", secret, "HR/Salary")).status_code == 201
    answers = {}
    for name in ("pay.md", "list.md", "unheard-of.md"):
        # The very bytes that lie there: not even `unchanged` may tell.
        response = await upload(built.clients["a"], name, secret, "AI/ML")
        assert response.status_code == 201
        answers[name] = response.json()
    counts = [answer["counts"] for answer in answers.values()]
    assert counts[0] == counts[1] == counts[2]
    for client, number in (("hr", 3), ("a", 5)):
        assert (await built.clients[client].get("/documents")).json()["total"]["documents"] == number


async def test_the_callers_file_is_replaced(built: House) -> None:
    for text in ("# Mine\n\nFirst.", "# Mine\n\nSecond."):
        assert (await upload(built.clients["a"], "mine.md", text, "AI/ML")).status_code == 201
    assert await seen(built.clients["a"]) == {"Trees", "Descent", "Mine"}


async def test_a_file_whose_document_was_moved_elsewhere_is_unchanged(built: House) -> None:
    first = (await upload(built.clients["a"], "mine.md", "# Mine\n\nFirst.", "AI/ML")).json()
    document_id = first["documents"][0]["document_id"]
    hr = (await built.app.index.snapshot()).taxonomy.find(CategoryPath.parse("HR/Salary"))
    async with built.app.database.connection("owner") as connection:
        await connection.execute("update documents set node_id = %s where document_id = %s", (hr, document_id))
    for text in ("# Mine\n\nFirst.", "# Mine\n\nSecond."):
        response = await upload(built.clients["a"], "mine.md", text, "AI/ML")
        assert_failure(response, 422)
        assert document_id not in response.text
    kept = await built.clients["boss"].get(f"/documents/{document_id}")
    assert "First." in kept.json()["text"]


async def test_the_transaction_itself_refuses_to_replace_what_lies_outside(built: House, tmp_path: Path) -> None:
    """The check before is passed; the document is outside when it is written."""
    app = built.app
    path = tmp_path / "race.md"
    path.write_text("# Race\n\nFirst.")
    source = Source(path, "race.md", "upload:race.md")
    taxonomy = (await app.index.snapshot()).taxonomy
    ml, salary = (taxonomy.find(CategoryPath.parse(name)) for name in ("AI/ML", "HR/Salary"))
    assert ml is not None and salary is not None
    report = await app.ingest_sources([source], "HR/Salary")
    (document_id,) = report.document_ids

    async def inside(*arguments: Any) -> bool:
        return False

    app._writer.reaches_out = inside  # type: ignore[assignment, method-assign]
    path.write_text("# Race\n\nSecond.")
    with pytest.raises(Forbidden):
        await app.ingest_sources([Source(path, "race.md", "upload:race.md")], "AI/ML", scope=Scope(frozenset({ml})))
    await app.recover()
    summary, text = await app.document(document_id)
    assert (list(summary.taxonomy_path), "First." in text) == (["HR", "Salary"], True)


async def test_case_12_a_search_of_others_leaves_nothing_in_the_cache(built: House) -> None:
    asked = {"query": f"machine learning {CANARY}"}
    for _ in range(2):
        everything = (await built.clients["boss"].post("/search", json=asked)).json()
        assert any(CANARY in passage["text"] for passage in everything["results"])
    mine = (await built.clients["a"].post("/search", json=asked)).json()
    assert not mine["metrics"]["cache_hit"]
    assert {tuple(passage["taxonomy_path"]) for passage in mine["results"]} == {("AI", "ML")}
    again = (await built.clients["a"].post("/search", json=asked)).json()
    assert [hit["chunk_id"] for hit in again["hits"]] == [hit["chunk_id"] for hit in mine["hits"]]


async def test_case_13_the_canary_is_a_word_like_any_that_is_nowhere(built: House) -> None:
    a = built.clients["a"]

    def plain(body: dict[str, Any], word: str) -> str:
        body.pop("latency", None)
        metrics = body.get("metrics", {})
        kept = {k: v for k, v in metrics.items() if not k.endswith("_time") and k != "correlation_id"}
        return str({**body, "metrics": kept, "stages": None, "trace_id": None}).replace(word, "WORD")

    for word in (CANARY, f"machine {CANARY}"):
        other = word.replace(CANARY, "qwfpgjlux")
        for mode in ("hybrid", "lexical", "strict"):
            answers = [
                plain((await a.post("/search", json={"query": asked, "mode": mode, "explain": True})).json(), asked)
                for asked in (word, other)
            ]
            assert answers[0] == answers[1]
        questions = [plain((await a.post("/ask", json={"question": asked})).json(), asked) for asked in (word, other)]
        assert questions[0] == questions[1]


async def test_case_17_revoked_rights_apply_from_the_next_request_on(built: House) -> None:
    a, asked = built.clients["a"], {"query": "machine learning"}
    assert (await a.post("/search", json=asked)).json()["total_count"] > 0
    assert (await a.post("/search", json=asked)).json()["metrics"]["cache_hit"]
    await built.app.keys.revoke("a")
    assert_failure(await a.post("/search", json=asked), 401)
    narrower = await built.app.keys.create("a", ["AI/MLOps"], "reader")
    response = await a.post("/search", json=asked, headers={"authorization": f"Bearer {narrower.secret}"})
    assert not response.json()["metrics"]["cache_hit"]
    assert {tuple(passage["taxonomy_path"]) for passage in response.json()["results"]} == {("AI", "MLOps")}
