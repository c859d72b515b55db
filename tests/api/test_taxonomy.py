"""`/taxonomy` as callers of different rights see it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tests.api.confined import House


def paths(tree: list[dict[str, Any]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in tree:
        found |= {"/".join(node["path"]): node["documents"]} | paths(node["children"])
    return found


async def test_a_scoped_caller_sees_own_branches_with_the_names_above(built: House) -> None:
    everyone = await built.client("all", None, "admin")
    ml = await built.client("ml", ["AI/ML"])
    whole = (await everyone.get("/taxonomy/active/tree")).json()
    assert paths(whole["tree"])["HR/Salary"] == 1
    own = await ml.get("/taxonomy/active/tree")
    assert paths(own.json()["tree"]) == {"AI": 0, "AI/ML": 2}
    assert (await ml.get(f"/api/taxonomy/tree/{quote(own.json()['version'])}")).json() == own.json()
    assert (await everyone.get("/api/taxonomy/tree/1.0.0")).json() == whole
    assert (await ml.get("/taxonomy/7.0.0/tree")).status_code == 404
    bad = await ml.get("/taxonomy/newest/tree")
    assert bad.status_code == 422 and bad.json()["detail"].startswith("Invalid version format")
    for path in ("/taxonomy", "/taxonomy/active/diff/1.0.0"):
        assert (await ml.get(path)).status_code == 403


def ids(tree: list[dict[str, Any]]) -> list[Any]:
    return [found for node in tree for found in (node["node_id"], *ids(node["children"]))]


async def test_ids_and_version_reveal_nothing_of_the_rest_of_the_tree(built: House) -> None:
    admin = await built.client("all", None, "admin")
    ml = await built.client("ml", ["AI/ML"])
    assert all(isinstance(found, int) for found in ids((await admin.get("/taxonomy/active/tree")).json()["tree"]))
    before = (await ml.get("/taxonomy/active/tree")).json()
    assert set(ids(before["tree"])) == {None}
    rename = {"operations": [{"op": "rename", "path": "HR", "name": "People"}]}
    version = (await admin.post("/taxonomy", json=rename)).json()["version"]
    refusals = [await ml.get(f"/taxonomy/{name}/tree") for name in ("1.0.0", version, "9.9.9")]
    assert {(answer.status_code, answer.json()["detail"]) for answer in refusals} == {
        (404, "There is no such version of the category tree that you may see. Ask for active.")
    }
    assert (await admin.post(f"/taxonomy/{version}/activate", json={})).status_code == 200
    assert (await ml.get("/taxonomy/active/tree")).json() == before
    asked = (await ml.post("/chat/run", json={"message": "What does machine learning find?"})).json()
    assert asked["metadata"]["taxonomy_version"] == before["version"]
    rename = {"operations": [{"op": "rename", "path": "AI/ML", "name": "Learning"}]}
    version = (await admin.post("/taxonomy", json=rename)).json()["version"]
    assert (await admin.post(f"/taxonomy/{version}/activate", json={})).status_code == 200
    after = (await ml.get("/taxonomy/active/tree")).json()
    assert after["version"] != before["version"] and paths(after["tree"]) == {"AI": 0, "AI/Learning": 2}


async def test_a_change_is_proposed_previewed_activated_and_rolled_back(built: House) -> None:
    admin = await built.client("all", None, "admin")
    ml = await built.client("ml", ["AI/ML"])
    body = {"operations": [{"op": "merge", "paths": ["AI/ML"], "into": "HR/Salary"}], "rationale": "one house"}
    assert (await ml.post("/taxonomy", json=body)).status_code == 403
    made = (await admin.post("/taxonomy", json=body)).json()
    assert (made["version"], made["parent"], made["active"]) == ("2.0.0", "1.0.0", False)
    await built.client("pay", ["HR"])
    seen = (await admin.get("/taxonomy/2.0.0/preview")).json()
    assert seen["documents"] == 2 and {row["name"]: row["gained"] for row in seen["access"]} == {"ml": 0, "pay": 2}
    refused = await admin.post("/taxonomy/2.0.0/activate", json={})
    assert refused.status_code == 409 and "key pay (2)" in refused.json()["detail"]
    assert (await admin.post("/taxonomy/2.0.0/activate", json={"accept_widening": True})).status_code == 200
    found = await ml.post("/search", json={"query": "machine learning"})
    assert found.status_code == 200 and found.json()["hits"] == []
    diff = (await admin.get("/taxonomy/2.0.0/diff/1.0.0")).json()
    assert diff["merged"] == [{"from": ["AI", "ML"], "to": ["HR", "Salary"]}]
    back = await admin.post("/taxonomy/1.0.0/rollback", json={"accept_widening": True})
    assert back.status_code == 200
    assert (await ml.post("/search", json={"query": "machine learning"})).json()["hits"]
    listed = (await admin.get("/taxonomy")).json()["versions"]
    assert {row["version"]: row["active"] for row in listed} == {"1.0.0": True, "2.0.0": False}
    lines = [(row["action"], row["decision"]) for row in await built.audited() if row["action"].startswith("taxonomy.")]
    assert lines == [
        ("taxonomy.propose", "done"),
        ("taxonomy.activate", "denied"),
        ("taxonomy.activate", "done"),
        ("taxonomy.rollback", "done"),
    ]
