"""Changes of many documents over HTTP: what a dry run says, who may do what, and what others did in between."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from dtrag.ports import StoredItem
from tests.api.confined import House, house
from tests.api.shape import assert_failure
from tests.store import Databases

CHANGES = "/documents/changes"
ML = ["AI", "ML"]


@pytest_asyncio.fixture
async def built(houses: Databases) -> AsyncIterator[House]:
    async with house(houses.settings()) as running:
        await running.client("admin", None, "admin")
        await running.client("whole", None, "editor")
        await running.client("ai", ["AI"], "editor")
        await running.client("hr", ["HR"], "editor")
        await running.client("ops", ["AI/MLOps"], "reader")
        yield running


async def listed(client: httpx2.AsyncClient, category: str = "") -> dict[str, str]:
    """Title -> id of the documents."""
    rows = (await client.get("/documents", params={"category": category})).json()["documents"]
    return {row["title"]: row["document_id"] for row in rows}


async def change(client: httpx2.AsyncClient, ids: list[str], status: int = 200, **more: Any) -> dict[str, Any]:
    body = {"action": "move" if "path" in more else "delete", "document_ids": ids, **more}
    response = await client.post(CHANGES, json=body)
    assert response.status_code == status, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def lines(built: House, action: str) -> list[dict[str, Any]]:
    return [line for line in await built.audited() if line["action"] == action]


async def test_a_move_is_shown_first_and_then_made(built: House) -> None:
    admin, ops = built.clients["admin"], built.clients["ops"]
    ids = sorted((await listed(admin, "AI/ML")).values())
    assert len(ids) == 2
    shown = await change(admin, ids, path=["AI", "MLOps"], dry_run=True)
    assert (shown["dry_run"], shown["documents"], shown["passages"], shown["unchanged"]) == (True, 2, 2, 0)
    assert shown["categories"] == [{"path": ML, "documents": 2}]
    assert (shown["widened"], shown["refused"], shown["lowered"]) == (True, [], [])
    assert {(row["name"], row["gained"], row["lost"]) for row in shown["access"]} == {("ops", 2, 0)}
    assert len(await listed(ops)) == 1, "a dry run changes nothing"

    refused = await change(admin, ids, 409, path=["AI", "MLOps"], state=shown["state"])
    assert "accept_widening" in refused["detail"]
    assert [row["code"] for row in refused["detail_statements"]] == ["move_widens"]
    moved = await change(admin, ids, path=["AI", "MLOps"], state=shown["state"], accept_widening=True)
    assert moved == {**shown, "dry_run": False}
    assert set(await listed(ops, "AI/MLOps")) >= {"Trees", "Descent"}
    again = await change(admin, ids, path=["AI", "MLOps"], state=shown["state"], accept_widening=True)
    assert (again["documents"], again["unchanged"]) == (0, 2), "a repeated request does nothing"
    [line] = await lines(built, "documents.move")
    assert (line["actor"], sorted(line["subjects"]), line["details"]["documents"]) == ("admin", ids, 2)
    requests = await lines(built, "POST /documents/changes")
    assert [line["details"].get("dry_run") for line in requests] == [True, None, False, False]


async def test_a_move_stays_when_the_file_is_read_again(built: House, tmp_path: Path) -> None:
    file = tmp_path / "leave.jsonl"
    file.write_text(json.dumps({"id": "1", "title": "Days", "text": "Days of leave."}) + "\n", "utf-8")
    report = await built.app.ingest([file])
    [document_id] = report.document_ids
    admin = built.clients["admin"]
    item = (await admin.get("/review")).json()["items"][0]
    await change(admin, [document_id], path=["HR", "Salary"], accept_widening=True)
    assert (await admin.get(f"/review/{item['item_id']}")).json()["status"] == "corrected"
    assert_failure(await admin.post(f"/review/{item['item_id']}/skip", json={}), 409)
    file.write_text(json.dumps({"id": "1", "title": "Days", "text": "Days of unpaid leave."}) + "\n", "utf-8")
    await built.app.ingest([file])
    assert (await admin.get(f"/documents/{document_id}")).json()["taxonomy_path"] == ["HR", "Salary"]


async def test_upwards_nothing_widens_and_names_of_keys_are_for_administrators(built: House) -> None:
    ai, whole = built.clients["ai"], built.clients["whole"]
    ids = list((await listed(ai, "AI/ML")).values())
    up = await change(ai, ids, path=["AI"])
    assert (up["documents"], up["widened"], up["access"], up["cases"]) == (2, False, None, None)
    down = await change(ai, ids, path=["AI", "MLOps"], dry_run=True)
    assert (down["widened"], down["access"]) == (True, None)
    assert "ops" not in json.dumps(await change(whole, ids, path=["AI", "MLOps"], dry_run=True))


async def test_documents_outside_the_scope_are_like_unknown_ones(built: House) -> None:
    hr, ai = built.clients["hr"], built.clients["ai"]
    foreign, unknown = (await listed(ai, "AI/ML"))["Trees"], str(uuid.uuid4())
    own = (await listed(hr))["Pay"]
    answers = []
    for other in (foreign, unknown):
        shown = await change(hr, [own, other], path=["HR"], dry_run=True)
        answers.append(json.dumps(shown).replace(other, "ID"))
        assert [row["reason"]["code"] for row in shown["refused"]] == ["change_not_visible"]
        gone = await change(hr, [other])
        assert (gone["documents"], [row["document_id"] for row in gone["refused"]]) == (0, [other])
    assert answers[0] == answers[1]
    assert "Trees" in await listed(ai)
    bodies = [await change(hr, [own], 422, path=path) for path in (ML, ["AI", "Nowhere"])]
    assert bodies[0]["detail"] == bodies[1]["detail"]
    assert (await listed(hr, "HR/Salary")) == {"Pay": own}


@pytest.mark.parametrize("who", ["ops", "nobody"])
async def test_readers_and_callers_without_a_key_change_nothing(built: House, who: str) -> None:
    own = (await listed(built.clients["ops"]))["Rollout"]
    body = {"action": "delete", "document_ids": [own], "dry_run": True}
    if who == "nobody":
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=built.api), base_url="http://localhost:8001"
        ) as client:
            assert_failure(await client.post(CHANGES, json=body), 401)
        return
    assert_failure(await built.clients[who].post(CHANGES, json=body), 403)


async def test_what_others_changed_in_between_is_a_conflict(built: House) -> None:
    admin, ai = built.clients["admin"], built.clients["ai"]
    ids = sorted((await listed(ai, "AI/ML")).values())
    seen = await change(ai, ids, dry_run=True)
    assert (seen["documents"], seen["categories"]) == (2, [{"path": ML, "documents": 2}])
    await change(admin, ids[:1], path=["AI"])
    refused = await change(ai, ids, 409, state=seen["state"])
    assert [row["code"] for row in refused["detail_statements"]] == ["documents_changed"]
    assert set(ids) <= set((await listed(ai)).values()), "all or nothing"
    seen = await change(ai, ids, dry_run=True)
    assert (await admin.delete(f"/documents/{ids[0]}")).status_code == 204
    await change(ai, ids, 409, state=seen["state"])
    seen = await change(ai, ids, dry_run=True)
    gone = await change(ai, ids, state=seen["state"])
    assert (gone["documents"], [row["document_id"] for row in gone["refused"]]) == (1, ids[:1])
    [line] = await lines(built, "documents.delete")
    assert line["subjects"] == ids[1:]


async def test_concurrent_changes_of_the_same_documents(built: House) -> None:
    admin = built.clients["admin"]
    ids = list((await listed(admin, "AI")).values())
    bodies = [
        {"action": "move", "document_ids": ids, "path": path, "accept_widening": True}
        for path in (["AI", "ML"], ["HR"], ["AI", "MLOps"], ["AIX", "Y"])
    ]
    answers = await asyncio.gather(*(admin.post(CHANGES, json=body) for body in bodies))
    assert {answer.status_code for answer in answers} == {200}
    rows = (await admin.get("/documents")).json()["documents"]
    assert len({tuple(row["taxonomy_path"]) for row in rows if row["document_id"] in ids}) == 1
    deletions = [admin.post(CHANGES, json={"action": "delete", "document_ids": ids}) for _ in range(3)]
    answers = await asyncio.gather(*deletions, admin.delete(f"/documents/{ids[0]}"))
    deleted = [answer.json()["documents"] for answer in answers[:3]]
    assert sum(deleted) in {len(ids), len(ids) - 1}
    assert not set(ids) & set((await listed(admin)).values())


async def test_a_source_decides_where_its_documents_are(built: House) -> None:
    admin = built.clients["admin"]
    trees = (await listed(admin))["Trees"]
    pay = (await listed(admin))["Pay"]
    async with built.app.database.connection("owner") as connection:
        row = await (
            await connection.execute("select source_id from documents where document_id = %s", (trees,))
        ).fetchone()
        assert row is not None
    await built.app._source_sync._store.note("posix:/srv", [StoredItem(row["source_id"], "posix:/srv/trees.md", "1")])
    shown = await change(admin, [trees, pay], path=["HR"], accept_widening=True)
    assert [(row["title"], row["reason"]["code"]) for row in shown["refused"]] == [("Trees", "change_placed_by_source")]
    assert (shown["documents"], (await listed(admin, "AI/ML"))["Trees"]) == (1, trees)
    assert (await change(admin, [trees]))["documents"] == 1, "deleting is allowed, as of a single document"


async def test_a_lower_grade_has_to_be_accepted(built: House) -> None:
    admin = built.clients["admin"]
    proposed = await built.app.taxonomy.propose([{"op": "grade", "path": ["HR"], "grade": "S"}])
    await built.app.taxonomy.activate(proposed.version)
    pay = (await listed(admin))["Pay"]
    body: dict[str, Any] = {"path": ["AI"], "accept_widening": True}
    refused = await change(admin, [pay], 409, **body)
    assert [row["code"] for row in refused["detail_statements"]] == ["move_lowers"]
    done = await change(admin, [pay], **body, accept_lowering=True)
    assert done["lowered"] == [{"path": ["HR", "Salary"], "from": "S", "to": "O"}]


@pytest.mark.parametrize(
    "body",
    [
        {"action": "move", "document_ids": ["x"]},
        {"action": "delete", "document_ids": ["x"], "path": ["AI"]},
        {"action": "delete", "document_ids": []},
        {"action": "delete", "document_ids": [str(uuid.UUID(int=number)) for number in range(1_001)]},
        {"action": "burn", "document_ids": ["x"]},
    ],
    ids=["no path", "a path too many", "none", "too many", "unknown"],
)
async def test_what_is_no_change_is_refused(built: House, body: dict[str, Any]) -> None:
    assert_failure(await built.clients["admin"].post(CHANGES, json=body), 422)
