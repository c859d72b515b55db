"""The own entries of the lexicon over HTTP: who may change them, what is refused, and the audit lines."""

from __future__ import annotations

from tests.api.confined import House
from tests.api.shape import assert_failure

MEAL = {"spoken": ["긱사 밥"], "official": ["식당운영"]}
MAIL = {"spoken": ["총장님 메일", "총장 편지"], "official": ["정보공개", "민원"]}


async def test_administrators_add_list_and_remove_entries(built: House) -> None:
    admin = await built.client("boss", None, "admin")
    added = await admin.post("/lexicon", json={"entries": [MEAL, MAIL]})
    assert added.status_code == 201, added.text
    assert added.json() == {"entries": [{"number": 1, **MEAL}, {"number": 2, **MAIL}]}
    again = await admin.post("/lexicon", json={"entries": [MAIL]})
    assert (again.status_code, again.json()) == (201, {"entries": []})
    assert (await admin.get("/lexicon")).json() == added.json()
    assert_failure(await admin.post("/lexicon", json={"entries": [{**MEAL, "official": ["급식"]}]}), 409)

    removed = await admin.delete("/lexicon/1")
    assert (removed.status_code, removed.content) == (204, b"")
    assert_failure(await admin.delete("/lexicon/1"), 404)
    assert_failure(await admin.delete("/lexicon/first"), 422)
    assert (await admin.get("/lexicon")).json() == {"entries": [{"number": 2, **MAIL}]}

    lines = [line for line in await built.audited() if line["action"].startswith("lexicon.")]
    assert [(line["actor"], line["action"], line["subjects"], line["details"]) for line in lines] == [
        ("boss", "lexicon.add", ["1"], MEAL),
        ("boss", "lexicon.add", ["2"], MAIL),
        ("boss", "lexicon.remove", ["1"], MEAL),
    ]


async def test_wrong_entries_are_refused_and_nothing_is_added(built: House) -> None:
    admin = await built.client("boss", None, "admin")
    for wrong in (
        {"spoken": ["쉬"], "official": ["휴학"]},
        {"spoken": ["과 바꾸"], "official": ["전과"]},
        {"spoken": [], "official": ["휴학"]},
        {"spoken": ["휴식\x00"], "official": ["휴학"]},
        {"spoken": ["휴식"], "official": ["휴학"], "number": 7},
    ):
        assert_failure(await admin.post("/lexicon", json={"entries": [MEAL, wrong]}), 422)
    assert_failure(await admin.post("/lexicon", json={"entries": []}), 422)
    assert (await admin.get("/lexicon")).json() == {"entries": []}


async def test_editors_and_scoped_administrators_are_refused(built: House) -> None:
    await built.app.lexicon.add("긱사 밥", "식당운영")
    for name, scope, role in (("part", ["AI"], "admin"), ("editor", None, "editor"), ("reader", None, "reader")):
        client = await built.client(name, scope, role)  # type: ignore[arg-type]
        for response in (
            await client.get("/lexicon"),
            await client.post("/lexicon", json={"entries": [MAIL]}),
            await client.delete("/lexicon/1"),
        ):
            assert_failure(response, 403)
    assert [entry.number for entry in await built.app.lexicon.entries()] == [1]
    denied = [line for line in await built.audited() if "/lexicon" in line["action"] and line["decision"] == "denied"]
    assert len(denied) == 9
