"""Executing tools: exact errors, held time limits, and no tool that can take others with it."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import pytest

from dtrag.errors import InvalidInput
from dtrag.settings import set_feature_flag
from dtrag.tools import Tool, ToolRegistry, execute_plan, execute_tool, tool
from dtrag.tools.executor import BLOCKED, CUT, GRACE, MOST_TOOLS
from tests.clock import Clock

ANYTHING = {"type": "object"}


@tool
async def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


@tool
async def sleeper(seconds: float = 60.0) -> str:
    """Sleeps."""
    await asyncio.sleep(seconds)
    return "slept"


@pytest.fixture
def registry() -> ToolRegistry:
    made = ToolRegistry()
    made.register(double)
    made.register(sleeper)
    return made


@pytest.fixture
def policy() -> Iterator[None]:
    set_feature_flag("tools_policy", True)
    yield
    set_feature_flag("tools_policy", None)


def with_tool(execute: Any, timeout: float = 30.0) -> ToolRegistry:
    made = ToolRegistry()
    made.register(Tool("it", "Under test.", ANYTHING, execute, timeout))
    return made


async def test_the_result_of_a_tool_is_returned(registry: ToolRegistry) -> None:
    done = await execute_tool("double", {"number": 21}, registry=registry)
    assert (done.success, done.result, done.error, done.tool_name, done.note) == (True, 42, None, "double", "")
    assert 0 < done.elapsed < 5


async def test_an_unknown_tool_is_not_found(registry: ToolRegistry) -> None:
    done = await execute_tool("triple", {}, registry=registry)
    assert (done.success, done.result, done.error) == (False, None, "Tool 'triple' not found")


async def test_an_invalid_input_is_not_executed(registry: ToolRegistry) -> None:
    done = await execute_tool("double", {"number": "21"}, registry=registry)
    assert done.error == "Input validation failed: '21' is not of type 'integer' (number)"
    missing = await execute_tool("double", {}, registry=registry)
    assert missing.error == "Input validation failed: 'number' is a required property"
    assert (await execute_tool("double", MappingProxyType({"number": 2}), registry=registry)).result == 4
    no_object: Any = [21]
    assert "must be an object" in str((await execute_tool("double", no_object, registry=registry)).error)


async def test_a_tool_that_exceeds_its_timeout_is_cancelled(registry: ToolRegistry) -> None:
    stopped = asyncio.Event()

    async def slow(given: dict[str, Any]) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    started = time.perf_counter()
    done = await execute_tool("it", {}, 0.2, registry=with_tool(slow))
    assert 0.2 <= time.perf_counter() - started < 2
    assert (done.success, done.error) == (False, "Tool execution timeout (0.2s)")
    assert stopped.is_set()


async def test_the_timeout_of_the_tool_itself_applies_too() -> None:
    done = await execute_tool("it", {}, registry=with_tool(sleeper.execute, timeout=0.1))
    assert done.error == "Tool execution timeout (0.1s)"


def stopping(clock: Clock) -> Any:
    """A tool's function that takes an hour on the moved clock, and no real time."""

    async def execute(given: dict[str, Any]) -> None:
        await clock.sleep(3_600)

    return execute


async def test_a_whole_number_of_seconds_is_reported_as_in_the_specification(clock: Clock) -> None:
    assert (await execute_tool("it", {}, 1, registry=with_tool(stopping(clock)))).error == (
        "Tool execution timeout (1.0s)"
    )


async def test_a_tool_that_ignores_its_cancellation_is_abandoned() -> None:
    released = asyncio.Event()

    async def stubborn(given: dict[str, Any]) -> str:
        while not released.is_set():
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                await released.wait()
        return "late"

    started = time.perf_counter()
    done = await execute_tool("it", {}, 0.1, registry=with_tool(stubborn))
    assert done.error == "Tool execution timeout (0.1s)"
    assert time.perf_counter() - started < 0.1 + GRACE + 2
    released.set()
    await asyncio.sleep(0.05)
    gc.collect()


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf")])
async def test_an_invalid_timeout_is_refused(registry: ToolRegistry, seconds: float) -> None:
    with pytest.raises(InvalidInput, match="above 0"):
        await execute_tool("double", {"number": 1}, seconds, registry=registry)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no such thing"), "Execution error: no such thing"),
        (KeyError(), "Execution error: KeyError"),
        (Unspeakable(), "Execution error: Unspeakable"),
        (SystemExit("out"), "Execution error: out"),
        (KeyboardInterrupt(), "Execution error: KeyboardInterrupt"),
        (GeneratorExit(), "Execution error: GeneratorExit"),
        (BaseException("all of it"), "Execution error: all of it"),
        (asyncio.CancelledError(), "Execution error: the tool was cancelled"),
        (ConnectionError("password=hunter2 refused"), "Execution error: password=*** refused"),
        (ValueError("x" * 10_000), "Execution error: " + "x" * 500),
    ],
)
async def test_whatever_a_tool_raises_ends_only_this_tool(error: BaseException, said: str) -> None:
    async def fail(given: dict[str, Any]) -> None:
        raise error

    done = await execute_tool("it", {}, registry=with_tool(fail))
    assert (done.success, done.result, done.error) == (False, None, said)


async def test_an_output_that_is_not_json_is_an_error() -> None:
    async def odd(given: dict[str, Any]) -> object:
        return object()

    done = await execute_tool("it", {}, registry=with_tool(odd))
    assert done.error == "Execution error: the tool returned a value of type object, which is not JSON"


async def test_a_long_output_is_cut_and_says_so() -> None:
    async def talkative(given: dict[str, Any]) -> dict[str, str]:
        return {"text": "word " * 100_000}

    done = await execute_tool("it", {}, registry=with_tool(talkative))
    assert done.success
    assert 60_000 < len(done.result["text"]) <= 65_536
    assert done.note == CUT


async def test_cancelling_the_caller_cancels_the_tool() -> None:
    running, stopped = asyncio.Event(), asyncio.Event()

    async def slow(given: dict[str, Any]) -> None:
        running.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    caller = asyncio.create_task(execute_tool("it", {}, registry=with_tool(slow)))
    await running.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await asyncio.wait_for(stopped.wait(), 5)


async def test_a_blocking_function_does_not_hold_up_the_loop(registry: ToolRegistry) -> None:
    released = threading.Event()

    @tool
    def block() -> str:
        """Blocks."""
        released.wait(60)
        return "released"

    registry.register(block)
    running = asyncio.create_task(execute_tool("block", {}, 0.3, registry=registry))
    other = await execute_tool("double", {"number": 1}, registry=registry)
    assert other.result == 2
    assert not running.done()
    assert (await running).error == "Tool execution timeout (0.3s)"
    released.set()


# --- policy -------------------------------------------------------------------------------------------------------


async def test_the_whitelist_holds_while_the_flag_is_on(
    registry: ToolRegistry, monkeypatch: pytest.MonkeyPatch, policy: None, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TOOL_WHITELIST", "sleeper")
    with caplog.at_level(logging.WARNING, "dtrag.tools"):
        done = await execute_tool("double", {"number": 1}, registry=registry)
    assert (done.success, done.error) == (False, BLOCKED)
    assert [record.getMessage() for record in caplog.records] == ["Tool 'double' blocked by whitelist"]
    monkeypatch.setenv("TOOL_WHITELIST", "double")
    assert (await execute_tool("double", {"number": 1}, registry=registry)).success


async def test_without_the_flag_the_whitelist_is_not_used(
    registry: ToolRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOL_WHITELIST", "sleeper")
    monkeypatch.delenv("FEATURE_TOOLS_POLICY", raising=False)
    assert (await execute_tool("double", {"number": 1}, registry=registry)).success


async def test_a_caller_may_use_fewer_tools_than_the_policy_allows_never_more(
    registry: ToolRegistry, monkeypatch: pytest.MonkeyPatch, policy: None
) -> None:
    monkeypatch.setenv("TOOL_WHITELIST", "double")
    given = {"number": 1}
    assert (await execute_tool("double", given, registry=registry, allowed=["double"])).success
    assert (await execute_tool("double", given, registry=registry, allowed=[])).error == BLOCKED
    assert (await execute_tool("sleeper", {}, registry=registry, allowed=["sleeper"])).error == BLOCKED
    set_feature_flag("tools_policy", False)
    assert (await execute_tool("double", given, registry=registry, allowed=["sleeper"])).error == BLOCKED


# --- plans --------------------------------------------------------------------------------------------------------


async def test_the_tools_of_a_plan_run_concurrently_with_results_in_order(registry: ToolRegistry) -> None:
    both = asyncio.Barrier(2)

    async def meet(given: dict[str, Any]) -> str:
        await both.wait()
        return "met"

    registry.register(Tool("meet", "Waits for its other call.", ANYTHING, meet, 30.0))
    plan = {"tools": ["meet", "double", "meet", "nothing"], "inputs": {"double": {"number": 4}, "meet": {}}}
    rows = await execute_plan(plan, registry=registry)
    assert [row["tool"] for row in rows] == plan["tools"]
    assert [row["success"] for row in rows] == [True, True, True, False]
    assert [row["result"] for row in rows] == ["met", 8, "met", None]
    assert rows[3]["error"] == "Tool 'nothing' not found"
    assert all(set(row) == {"tool", "success", "result", "error", "elapsed"} for row in rows)


async def test_finished_results_are_kept_when_the_time_of_the_step_is_over(
    registry: ToolRegistry, clock: Clock
) -> None:
    registry.register(Tool("slow", "Under test.", ANYTHING, stopping(clock), 30.0))
    plan = {"tools": ["double", "slow"], "inputs": {"double": {"number": 4}}}
    rows = await execute_plan(plan, registry=registry, seconds=4.0)
    assert (rows[0]["result"], rows[1]["error"]) == (8, "Tool execution timeout (3.8s)")


async def test_a_step_has_a_second_for_each_tool(clock: Clock) -> None:
    rows = await execute_plan({"tools": ["it"]}, registry=with_tool(stopping(clock)))
    assert rows[0]["error"] == "Tool execution timeout (0.95s)"


@pytest.mark.parametrize("plan", [None, {}, {"tools": []}, {"tools": None}, {"tools": "double"}])
async def test_a_plan_without_tools_runs_none(plan: dict[str, Any] | None, registry: ToolRegistry) -> None:
    assert await execute_plan(plan, registry=registry) == []


async def test_an_invalid_plan_fails_tool_by_tool(registry: ToolRegistry) -> None:
    rows = await execute_plan({"tools": [None, 3, "double"], "inputs": ["x"]}, registry=registry)
    assert [row["error"] for row in rows] == [
        "Tool 'None' not found",
        "Tool '3' not found",
        "Input validation failed: 'number' is a required property",
    ]


async def test_a_plan_runs_a_limited_number_of_tools(registry: ToolRegistry) -> None:
    plan = {"tools": ["double"] * (MOST_TOOLS + 2), "inputs": {"double": {"number": 1}}}
    rows = await execute_plan(plan, registry=registry)
    assert [row["success"] for row in rows] == [True] * MOST_TOOLS + [False, False]
    assert rows[-1]["error"] == "Execution error: a plan runs at most 16 tools"


async def test_tools_beyond_the_maximum_give_no_time_to_the_others(clock: Clock) -> None:
    registry = with_tool(stopping(clock))
    rows = await execute_plan({"tools": ["it"] * 2 * MOST_TOOLS}, registry=registry, seconds=4.0)
    assert rows[0]["error"] == "Tool execution timeout (1.9s)"


async def test_a_cut_output_is_noted_in_its_row() -> None:
    async def talkative(given: dict[str, Any]) -> str:
        return "x" * 1_000_000

    rows = await execute_plan({"tools": ["it"]}, registry=with_tool(talkative))
    assert rows[0]["note"] == CUT
