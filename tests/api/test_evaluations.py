"""`/evaluations`: kept runs, for administrators of the whole tree only."""

from __future__ import annotations

import uuid

import pytest

import dtrag.core.evaluation_run as evaluation_run_module
from dtrag.core.evaluation_run import EvaluationRun
from dtrag.core.response import plain
from tests.api.confined import House
from tests.api.shape import assert_failure
from tests.builders import MINUTE, NOON, evaluation_run


async def test_runs_are_listed_and_shown(built: House) -> None:
    runs = [evaluation_run(at=NOON + number * MINUTE, dataset=f"set {number}") for number in range(3)]
    for run in runs:
        await built.app.evaluations.keep(run)
    admin = await built.client("admin", None, "admin")
    listed = (await admin.get("/evaluations", params={"limit": 2})).json()["evaluations"]
    assert [line["dataset"] for line in listed] == ["set 2", "set 1"]
    assert listed[0]["measures"]["contained"]["value"] == 0.5 and listed[0]["questions"] == 2
    older = await admin.get("/evaluations", params={"after": listed[-1]["run_id"]})
    assert [line["dataset"] for line in older.json()["evaluations"]] == ["set 0"]
    shown = (await admin.get(f"/evaluations/{runs[0].run_id}")).json()
    assert EvaluationRun.from_dict(shown) == runs[0], "what --against reads"
    assert_failure(await admin.get(f"/evaluations/{uuid.uuid4()}"), 404)
    assert_failure(await admin.get("/evaluations/latest"), 404)


async def test_the_list_shows_the_stored_measures(built: House, monkeypatch: pytest.MonkeyPatch) -> None:
    run = evaluation_run()
    await built.app.evaluations.keep(run)
    expected = plain(run.summary())
    admin = await built.client("admin", None, "admin")

    def estimate_again(_: object) -> None:
        raise AssertionError("the resamples are drawn when a run is stored, not for every list")

    monkeypatch.setattr(evaluation_run_module, "estimates", estimate_again)
    assert (await admin.get("/evaluations", params={"limit": 100})).json()["evaluations"] == [expected]
    assert_failure(await admin.get("/evaluations", params={"limit": 101}), 422)


async def test_only_administrators_of_the_whole_tree_read_them(built: House) -> None:
    run = evaluation_run()
    await built.app.evaluations.keep(run)
    editor, branch = await built.client("editor", None, "editor"), await built.client("branch", ["AI/ML"], "admin")
    for client in (editor, branch):
        assert_failure(await client.get("/evaluations"), 403)
        assert_failure(await client.get(f"/evaluations/{run.run_id}"), 403)
