"""R8: a language model's server that misbehaves in every way, plain and streaming, with a debate and without.

Each time there is an answer in time: the model's, where the fault left it whole, or quotations that say so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from dtrag.app import App, open_app
from dtrag.pipeline.timeouts import OPTIONAL_STEP_TIMEOUTS, STEP_TIMEOUTS
from dtrag.settings import set_feature_flag
from tests.model_server import FAULTS, HARMLESS, ModelServer
from tests.store import Databases

TEXT = "# Leave\n\nParental leave takes at most 90 days. It is paid in full.\n"
REPLY = "Parental leave takes at most 90 days [1]."
QUESTION = "How many days of parental leave are there?"
MOST_CALLS = 8
"""Requests of one call of the model, with what is tried again."""
SLACK = 1.5
"""Seconds beyond the budgets that a busy machine may take; the limit itself is measured in bench/chat.py."""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(REPLY) as serving:
        yield serving


@pytest_asyncio.fixture
async def app(databases: Databases, server: ModelServer, tmp_path: Path) -> AsyncIterator[App]:
    async with open_app(databases.settings(llm="openai:test", llm_base_url=server.url)) as opened:
        (tmp_path / "leave.md").write_text(TEXT, "utf-8")
        await opened.ingest([tmp_path / "leave.md"])
        yield opened


@pytest.fixture(
    params=[pytest.param(False, id="composed"), pytest.param(True, id="debated", marks=pytest.mark.long_fault)]
)
def debated(request: pytest.FixtureRequest) -> Iterator[bool]:
    set_feature_flag("debate_mode", request.param)
    yield request.param
    set_feature_flag("debate_mode", None)


@pytest.fixture(autouse=True)
def short_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Composing has .7 s, a debate 2 s; what is no matter of the model has all the time that a busy machine needs."""
    monkeypatch.setenv("PIPELINE_TIMEOUT_MULTIPLIER", "0.2")
    monkeypatch.setitem(STEP_TIMEOUTS, "retrieve", 30.0)
    monkeypatch.setitem(OPTIONAL_STEP_TIMEOUTS, "cite", 30.0)


def _tasks() -> set[str]:
    """By their names; traces are written in the background. A task that closes a generator has no name of its own."""
    coroutines = [task.get_coro() for task in asyncio.all_tasks()]
    names = {str(getattr(coroutine, "__qualname__", type(coroutine).__name__)) for coroutine in coroutines}
    return {name for name in names if not name.startswith("Traces.")}


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
async def test_r8_there_is_an_answer_in_time(app: App, server: ModelServer, streamed: bool, debated: bool) -> None:
    await app.pipeline.execute(QUESTION)  # what is loaded at the first call is loaded
    before = _tasks()
    for fault in FAULTS:
        server.fault, server.requests = fault, []
        told: list[tuple[str, dict[str, Any]]] = []
        started = time.perf_counter()
        response = await app.pipeline.execute(QUESTION, emit=_listener(told) if streamed else None)
        took = time.perf_counter() - started

        assert took < 0.2 * ((10.5 if debated else 0) + 3.5 + 2.3) + SLACK, fault
        assert "90 days" in response.answer, fault
        assert response.citations, fault
        assert all(source.quote in TEXT for source in response.sources), fault
        if fault in HARMLESS:
            assert (response.degraded, response.model is None) == ((), False), fault
        if response.model is None:
            assert "unavailable" in response.answer, fault
            assert "llm" in response.degraded, fault
        assert len(server.requests) <= MOST_CALLS * (5 if debated else 1), fault
        if streamed:
            name, data = told[-1]
            assert (name, data["name"]) == ("step", "respond"), fault
        assert await _left_over(before) == set(), fault
    server.fault = None
    assert (await app.pipeline.execute(QUESTION)).degraded == ()


def _listener(told: list[tuple[str, dict[str, Any]]]) -> Callable[[str, Mapping[str, Any]], None]:
    return lambda event, data: told.append((event, dict(data)))


async def _left_over(before: set[str]) -> set[str]:
    """What still goes on after ten seconds and did not go on before: no model of these faults would have ended."""
    for _ in range(500):
        if _tasks() <= before:
            break
        await asyncio.sleep(0.02)
    return _tasks() - before


async def test_r8_debate_makes_five_calls_at_most(app: App, server: ModelServer) -> None:
    set_feature_flag("debate_mode", True)
    try:
        response = await app.pipeline.execute(QUESTION)
    finally:
        set_feature_flag("debate_mode", None)
    assert response.debate is not None
    assert response.debate.llm_calls == len(server.requests) == 5
    assert "debate" in response.step_timings
    assert "90 days" in response.answer
