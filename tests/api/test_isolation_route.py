"""The isolation test over HTTP: started once, read when it is done, ended with the service."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from fastapi import FastAPI

from dtrag.counts import Counts
from dtrag.delivery.api.app import create_app
from dtrag.errors import Conflict
from dtrag.isolation.runs import IsolationRun, IsolationRuns, arguments_of
from dtrag.settings import Settings, environment_of
from tests.api.shape import assert_failure
from tests.api.test_keys import client_of

REPORT = {"requests": 50, "leaks": 0, "twins": {"differences": 0}}
OPTIONS = {"requests": 50, "documents": 10, "nodes": 4, "live": True}


def printing(text: str) -> tuple[str, ...]:
    """A command that takes any options and prints the text."""
    return (sys.executable, "-c", f"print({text!r})")


@pytest_asyncio.fixture
async def api(settings: Settings) -> AsyncIterator[FastAPI]:
    created = create_app(settings)
    async with created.router.lifespan_context(created):
        yield created


async def finished(client: httpx2.AsyncClient) -> dict[str, Any]:
    """The state of the run when it is not running any more."""
    while True:
        state: dict[str, Any] = (await client.get("/isolation")).json()
        if state["state"] != "running":
            return state
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("printed", "state", "outcome"),
    [
        (json.dumps(REPORT), "finished", "isolated"),
        (json.dumps(REPORT | {"leaks": 1}), "finished", "leaks"),
        (json.dumps(REPORT | {"twins": {"differences": 2}}), "finished", "leaks"),
        (json.dumps({"error": {"type": "InvalidInput", "message": "There are no documents."}}), "failed", None),
        ("{}", "failed", None),
        ("no JSON", "failed", None),
    ],
)
async def test_a_report_is_read_when_it_is_done(api: FastAPI, printed: str, state: str, outcome: str | None) -> None:
    api.state.service.isolation = IsolationRuns(printing(printed))
    async with client_of(api) as client:
        assert (await client.get("/isolation")).json()["state"] == "never"
        started = await client.post("/isolation", json={"requests": 50})
        assert (started.status_code, started.json()["state"]) == (202, "running")
        run = await finished(client)
        assert (run["state"], run["outcome"]) == (state, outcome)
        assert (run["report"] is None) == bool(run["problem"]) == (state == "failed")
        assert run["started_at"] <= run["finished_at"]


async def test_one_run_at_a_time_that_ends_with_the_service(settings: Settings) -> None:
    api = create_app(settings)
    runs = api.state.service.isolation = IsolationRuns((sys.executable, "-c", "import time; time.sleep(600)"))
    async with api.router.lifespan_context(api), client_of(api) as client:
        assert (await client.post("/isolation", json={})).status_code == 202
        assert_failure(await client.post("/isolation", json={}), 409)
        assert_failure(await client.post("/isolation", json={"requests": 1}), 422)
    assert runs._task is not None
    assert runs._task.cancelled()


async def test_another_worker_reads_the_run(settings: Settings, tmp_path: Path) -> None:
    with (tmp_path / "counts").open("w+b") as file:
        counts = [Counts(file.fileno(), seats=2, seat=seat) for seat in range(2)]
        runs, others = IsolationRuns(printing(json.dumps(REPORT)), counts=counts[0]), IsolationRuns(counts=counts[1])
        assert (others.last.state, runs.start(settings, {}).state, others.last.state) == ("never", "running", "running")
        with pytest.raises(Conflict):
            others.start(settings, {})
        assert runs._task is not None
        await runs._task
        assert others.last == runs.last
        assert others.last.outcome == "isolated"
        runs.last = IsolationRun("running")
        counts[1].vacate(0)  # its process was killed
        assert others.last.state == "failed"


def test_the_process_has_the_settings_of_the_service(settings: Settings) -> None:
    variables = environment_of(settings)
    assert variables["DTRAG_DATA_DIR"] == str(settings.data_dir)
    assert variables["DTRAG_EMBEDDER"] == "none"
    again = Settings.load(environ=variables)
    assert again == settings
    assert arguments_of(OPTIONS) == ["--requests", "50", "--documents", "10", "--nodes", "4", "--live"]
