"""Hostile cases 1-11: a caller who may see AI/ML asks `POST /search` for more, in every spelling of it.

The canary lies in HR/Salary. Every refusal of an attempt is a 403 with a line in the audit log.
"""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from tests.api.confined import CANARY, House, house
from tests.api.shape import assert_failure
from tests.store import Databases

DETECTED = "Filter bypass attempt detected"
MINE = {("AI", "ML")}


@pytest_asyncio.fixture(scope="module")
async def built(houses_of_module: Databases) -> AsyncIterator[House]:
    async with house(houses_of_module.settings()) as running:
        yield running


@pytest_asyncio.fixture
async def boss(built: House) -> httpx2.AsyncClient:
    return await built.client("boss", None, "admin")


@pytest_asyncio.fixture
async def a(built: House, boss: httpx2.AsyncClient) -> httpx2.AsyncClient:
    return await built.client("a", ["AI/ML"])


async def ask(client: httpx2.AsyncClient, filters: Any, query: str = f"machine learning {CANARY}") -> httpx2.Response:
    return await client.post("/search", json={"query": query, "filters": filters})


def paths_of(response: httpx2.Response) -> set[tuple[str, ...]]:
    assert response.status_code == 200, response.text
    body = response.json()
    assert [hit["metadata"]["canonical_path"] for hit in body["hits"]] == [
        passage["taxonomy_path"] for passage in body["results"]
    ]
    return {tuple(hit["metadata"]["canonical_path"]) for hit in body["hits"]}


async def refused(built: House, client: httpx2.AsyncClient, filters: Any) -> None:
    """403, in words and in the audit log; and the same as one of a batch."""
    before = len(await built.denials())
    assert DETECTED in assert_failure(await ask(client, filters), 403)["detail"]
    batch = await client.post("/search/batch", json={"searches": [{"query": "x", "filters": filters}, {"query": "x"}]})
    first, second = batch.json()["answers"]
    assert (first["status"], DETECTED in first["detail"]) == (403, True)
    assert "hits" in second
    assert len(await built.denials()) == before + 2


async def test_without_filters_the_scope_is_the_callers_branch(a: httpx2.AsyncClient, boss: httpx2.AsyncClient) -> None:
    assert paths_of(await ask(a, None)) == MINE
    assert paths_of(await ask(boss, None)) > {("HR", "Salary"), ("AI", "MLOps"), ("AIX", "Y")}


@pytest.mark.parametrize("key", ["allowed_category_paths", "taxonomy_paths", "canonical_in"])
async def test_case_01_a_foreign_branch(built: House, a: httpx2.AsyncClient, key: str) -> None:
    for asked in ([["hr"]], [["HR", "Salary"]], [["AI", "ML"], ["HR"]], [["AI", "MLOps"]], [["nowhere"]]):
        await refused(built, a, {key: asked})


async def test_case_01_the_intersection_and_never_the_request_alone(a: httpx2.AsyncClient) -> None:
    assert paths_of(await ask(a, {"allowed_category_paths": [["AI"]]})) == MINE
    assert paths_of(await ask(a, {"allowed_category_paths": [["AI", "ML"]]})) == MINE
    assert paths_of(await ask(a, {"allowed_category_paths": [["AI", "ML", "not there"]]})) == set()


async def test_case_01_existing_or_not_makes_no_difference(a: httpx2.AsyncClient) -> None:
    there, nowhere = [(await ask(a, {"taxonomy_paths": [[name]]})).json() for name in ("HR", "HX")]
    del there["request_id"], nowhere["request_id"]
    assert there == nowhere


async def test_case_02_upwards(built: House, a: httpx2.AsyncClient, boss: httpx2.AsyncClient) -> None:
    for client in (a, boss):
        await refused(built, client, {"allowed_category_paths": [["AI", "ML", "..", "HR"]]})
    made = await a.post(
        "/agents/from-category", json={"version": "1.0.0", "node_paths": [["AI", "ML", "..", "HR"]], "options": {}}
    )
    assert "Unsafe characters detected" in assert_failure(made, 422)["detail"]


@pytest.mark.parametrize("key", ["allowed_category_paths", "taxonomy_paths", "canonical_in"])
async def test_case_03_empty_is_never_everything(a: httpx2.AsyncClient, boss: httpx2.AsyncClient, key: str) -> None:
    for client in (a, boss):
        empty: list[Any] = [[], [[]], None, ""]
        for asked in empty:
            response = await ask(client, {key: asked})
            assert response.status_code in {200, 422}, response.text
            assert response.json().get("hits", []) == []


async def test_case_03_null_among_the_paths(built: House, a: httpx2.AsyncClient) -> None:
    await refused(built, a, {"allowed_category_paths": [None]})
    await refused(built, a, {"allowed_category_paths": [["AI", None]]})


async def test_case_04_prefixes_are_whole_names(boss: httpx2.AsyncClient, a: httpx2.AsyncClient) -> None:
    assert paths_of(await ask(boss, {"taxonomy_paths": [["ai"]]})) == {("AI", "ML"), ("AI", "MLOps")}
    assert paths_of(await ask(boss, {"taxonomy_paths": [["ai", "ml"]]})) == MINE
    assert paths_of(await ask(a, None)) == MINE


async def test_case_05_full_width_is_the_same_category(a: httpx2.AsyncClient) -> None:
    assert paths_of(await ask(a, {"taxonomy_paths": [["ＡＩ", "ＭＬ"]]})) == MINE


async def test_case_05_full_width_of_a_foreign_one_is_foreign(built: House, a: httpx2.AsyncClient) -> None:
    await refused(built, a, {"taxonomy_paths": [["ＨＲ"]]})


async def test_case_06_look_alikes(built: House, a: httpx2.AsyncClient, boss: httpx2.AsyncClient) -> None:
    mixed = await ask(boss, {"taxonomy_paths": [["A\u0406"]]})
    assert "look-alike" in assert_failure(mixed, 422)["detail"]
    assert paths_of(await ask(boss, {"taxonomy_paths": [["\u0410\u0406"]]})) == set()
    await refused(built, a, {"taxonomy_paths": [["\u0410\u0406"]]})


@pytest.mark.parametrize("hidden", ["A\u200bI", "A\u202eI", "A\u00adI", "AI\ufeff", "A\u3164I"])
async def test_case_07_invisible_characters(a: httpx2.AsyncClient, boss: httpx2.AsyncClient, hidden: str) -> None:
    for client in (a, boss):
        body = assert_failure(await ask(client, {"taxonomy_paths": [[hidden]]}), 422)
        assert "Unsafe characters" in body["detail"]


async def test_case_08_both_normal_forms_of_korean(boss: httpx2.AsyncClient) -> None:
    for form in ("NFC", "NFD"):
        spelled = unicodedata.normalize(form, "학사")
        assert paths_of(await ask(boss, {"taxonomy_paths": [[spelled]]}, "휴학")) == {("학사",)}


@pytest.mark.parametrize(
    "case",
    [("STRASSE", "straße", True), ("\u212aelvin", "kelvin", True), ("\u0130x", "ix", False), ("\u0131x", "ix", False)],
)
async def test_case_09_folding_is_the_same_on_both_sides(
    built: House, boss: httpx2.AsyncClient, tmp_path: Path, case: tuple[str, str, bool]
) -> None:
    one, other, same = case
    (tmp_path / f"{ord(one[0])}.md").write_text(f"# Note\n\nA note about folding {ord(one[0])}.", "utf-8")
    await built.app.ingest([tmp_path], category=[one])
    query = f"folding {ord(one[0])}"
    assert len(paths_of(await ask(boss, {"taxonomy_paths": [[one]]}, query))) == 1
    assert bool(paths_of(await ask(boss, {"taxonomy_paths": [[other]]}, query))) is same


@pytest.mark.parametrize("asked", [[["x" * 10_000]], [["AI"]] * 10_000, [["x"] * 10_000]])
async def test_case_10_too_long_or_too_many(a: httpx2.AsyncClient, boss: httpx2.AsyncClient, asked: Any) -> None:
    for client in (a, boss):
        body = assert_failure(await ask(client, {"taxonomy_paths": asked}), 422)
        assert "at most" in body["detail"] or "1 to 8 names" in body["detail"]


@pytest.mark.parametrize(
    "filters",
    [
        {"bypass_attempt": True},
        {"allowed_category_paths": [["AI", "ML"]], "bypass_attempt": True},
        {"bypass_attempt": None},
        {"canonical_in": False},
        {"canonical_path": None},
        {"__proto__": {"scope": None}},
        {"constructor": 1},
        {"taxonomy_paths": {"$ne": [["AI"]]}},
        {"taxonomy_paths": [["AI' OR 1=1 --"]]},
        {"taxonomy_paths": [["'; DROP TABLE chunks; --"]]},
        {"taxonomy_paths": [["AI UNION SELECT text"]]},
        {"taxonomy_paths": [["AI\u0000"]]},
        {"taxonomy_paths": [["undefined"]]},
        {"taxonomy_paths": [["../HR"]]},
    ],
)
async def test_case_11_attempts(
    built: House, a: httpx2.AsyncClient, boss: httpx2.AsyncClient, filters: dict[str, Any]
) -> None:
    for client in (a, boss):
        await refused(built, client, filters)


async def test_case_11_an_unknown_key_is_a_mistake(built: House, a: httpx2.AsyncClient) -> None:
    before = len(await built.denials())
    assert "Unknown filter" in assert_failure(await ask(a, {"colour": "red"}), 422)["detail"]
    assert len(await built.denials()) == before


async def test_questions_are_checked_like_searches(a: httpx2.AsyncClient) -> None:
    for filters in ({"taxonomy_paths": [["HR"]]}, {"bypass_attempt": True}):
        response = await a.post("/ask", json={"question": f"What does the shop pay, {CANARY}?", "filters": filters})
        assert DETECTED in assert_failure(response, 403)["detail"]


async def test_the_audit_log_has_no_word_of_the_request(built: House, a: httpx2.AsyncClient) -> None:
    await refused(built, a, {"taxonomy_paths": [["HR", "Salary"]]})
    last = (await built.denials())[-1]
    assert last["actor"] == "a"
    assert last["details"]["kind"] == "bypass"
    assert "Salary" not in str(last)


async def test_the_metrics_count_attempts_by_kind(a: httpx2.AsyncClient, boss: httpx2.AsyncClient) -> None:
    before = (await boss.get("/metrics/filter")).json()["security_metrics"]
    await ask(a, {"taxonomy_paths": [["AI", "..", "HR"]]})
    await ask(a, {"taxonomy_paths": [["x' OR 1=1"]]})
    await ask(a, {"taxonomy_paths": [["HR"]]})
    after = (await boss.get("/metrics/filter")).json()["security_metrics"]
    for kind in ("path_traversal_attempts", "injection_attempts", "bypass_attempts"):
        assert after[kind] == before[kind] + 1
    assert after["last_violation"] > (before["last_violation"] or "")
    assert_failure(await a.get("/metrics/filter"), 403)


async def test_results_are_not_shared_between_scopes_that_reach_the_same_documents(
    built: House, boss: httpx2.AsyncClient, a: httpx2.AsyncClient
) -> None:
    """Statistics are counted in the caller's scope: the scores of a wider caller tell of documents outside of it."""
    wide = await built.client("wide", None, "reader")  # sees no paths of the server, as `a`

    async def scores(client: httpx2.AsyncClient, **filters: Any) -> list[float]:
        body = {"query": "machine learning finds rules", "filters": filters}
        return [passage["bm25_score"] for passage in (await client.post("/search", json=body)).json()["results"]]

    own = await scores(a)
    uploaded = await boss.post(
        "/documents", files={"files": ("new.md", b"# New\n\nA machine.")}, data={"category": "HR"}
    )
    assert uploaded.status_code == 201  # nothing is cached any more
    assert await scores(wide, taxonomy_paths=[["AI", "ML"]]) != own
    assert await scores(a) == own
