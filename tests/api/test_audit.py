"""Every request leaves one line in the audit log, with what it was about and without what it said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from dtrag.core.access.audit_chain import AuditEntry, AuditRow, ChainHead
from dtrag.delivery.api.audited import UNLOGGED
from dtrag.errors import DatabaseUnavailable
from dtrag.governance.audit import Audit
from tests.api.confined import CANARY, House
from tests.api.shape import assert_failure


async def newest(built: House, limit: int = 1) -> list[AuditRow]:
    return await built.app.audit.newest(limit=limit)


async def test_a_search_is_logged_with_the_ids_of_its_answer(built: House) -> None:
    ml = await built.client("ml", ["AI/ML"])
    answer = (await ml.post("/search", json={"query": "machine learning"}, headers={"x-request-id": "r-17"})).json()
    found = {result["metadata"]["document_id"] for result in answer["results"]}
    assert len(found) == 2
    [line] = await newest(built)
    assert (line.entry.actor, line.entry.action, line.entry.decision) == ("ml", "POST /search", "allowed")
    assert set(line.entry.subjects) == found
    assert line.entry.scope is not None
    assert [anchor["path"] for anchor in line.entry.scope] == [["AI", "ML"]]
    assert line.entry.details == {"status": 200, "request_id": "r-17"}


async def test_refusals_changes_and_strangers_are_logged(built: House) -> None:
    ml, owner = await built.client("ml", ["AI/ML"], "editor"), await built.client("owner", None, "admin")
    all_documents = (await owner.get("/documents")).json()["documents"]
    foreign = next(d["document_id"] for d in all_documents if d["title"] == "Pay")
    own = next(d["document_id"] for d in all_documents if d["title"] == "Trees")
    [line] = await newest(built)
    assert set(line.entry.subjects) == {document["document_id"] for document in all_documents}
    for request, expected in (
        (ml.get(f"/documents/{foreign}"), ("ml", "GET /documents/{document_id}", "denied", [foreign], 404)),
        (ml.delete(f"/documents/{own}"), ("ml", "DELETE /documents/{document_id}", "done", [own], 204)),
        (ml.get("/audit"), ("ml", "GET /audit", "denied", [], 403)),
        (ml.get("/nowhere"), ("ml", "GET (none)", "denied", [], 404)),
        (
            ml.post("/search", json={"query": "x"}, headers={"authorization": "Bearer wrong"}),
            ("anonymous", "POST (none)", "denied", [], 401),
        ),
    ):
        await request
        [row] = await newest(built)
        line_ = row.entry
        assert (line_.actor, line_.action, line_.decision, line_.subjects, line_.details["status"]) == expected


async def test_no_line_contains_text_of_questions_or_documents(built: House) -> None:
    owner = await built.client("owner", None, "admin")
    for path, body in (
        ("/search", {"query": f"{CANARY} pelargonium", "explain": True}),
        ("/ask", {"question": f"What is {CANARY} pelargonium?"}),
        ("/search/batch", {"searches": [{"query": f"{CANARY} pelargonium"}]}),
    ):
        assert (await owner.post(path, json=body)).status_code == 200
    rows = await newest(built, 100)
    written = json.dumps([[r.entry.actor, r.entry.action, r.entry.scope, dict(r.entry.details)] for r in rows])
    written += json.dumps([list(row.entry.subjects) for row in rows])
    assert "/search/batch" in written
    assert CANARY not in written
    assert "pelargonium" not in written
    assert (await built.app.audit.verify()).ok


async def test_health_and_metrics_requests_are_not_logged(built: House) -> None:
    owner = await built.client("owner", None, "admin")
    [before] = await newest(built)
    for path in sorted(UNLOGGED):
        await owner.get(path)
    assert [row.number for row in await newest(built)] == [before.number]


async def test_the_log_is_read_by_pages(built: House) -> None:
    owner = await built.client("owner", None, "admin")
    for _ in range(3):
        await owner.get("/documents")
    seen: list[dict[str, Any]] = []
    before: dict[str, Any] = {}
    while True:
        page = (await owner.get("/audit", params={"limit": 2, **before})).json()
        seen += page["lines"]
        if page["before"] is None:
            break
        before = {"before": page["before"]}
    assert seen[-1]["number"] == 1
    assert len({line["number"] for line in seen}) == len(seen)
    assert {line["actor"] for line in (await owner.get("/audit?actor=owner")).json()["lines"]} == {"owner"}
    assert (await owner.get("/audit?since=2999-01-01")).json() == {"lines": [], "before": None}
    assert_failure(await owner.get("/audit?limit=0"), 422)
    for until in ("2030-01-30", "2030-01-31T00:00:00Z"):
        reversed_range = await owner.get("/audit", params={"since": "2030-01-31", "until": until})
        assert "`until` must be later than `since`" in assert_failure(reversed_range, 422)["detail"]


class Away:
    """A log that cannot be written."""

    async def append(self, entries: Sequence[AuditEntry]) -> ChainHead:
        raise DatabaseUnavailable(reason="it is away.")

    async def page(self, after: int, wanted: int) -> list[AuditRow]:
        return []

    async def newest(self, *_: object) -> list[AuditRow]:
        return []


async def test_without_its_audit_line_no_answer_is_returned(built: House, monkeypatch: pytest.MonkeyPatch) -> None:
    ml = await built.client("ml", ["AI/ML"], "editor")
    monkeypatch.setattr(built.app, "audit", Audit(Away()))
    body = assert_failure(await ml.get("/documents/unknown"), 503)
    assert "audit log" in body["detail"]
    assert (await ml.get("/documents")).status_code == 200, "reads are noted, and wait for a better moment"
