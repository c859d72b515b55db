"""The acceptance text of the tools, scenario by scenario (TOOLS-1 to TOOLS-10), with decisions D22 to D24."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from dtrag.app import App
from dtrag.pipeline.state import PipelineState
from dtrag.pipeline.steps import step4_tools_debate
from dtrag.settings import get_env_manager
from dtrag.tools import Tool, ToolExecutionResult, execute_tool, get_tool_registry, list_tools
from tests.clock import Clock

BUILT_IN = {"web_search", "doc_parser", "calculator"}
FLAGS = ("mcp_tools", "tools_policy", "debate_mode")


@pytest.fixture(autouse=True)
def flags(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every scenario begins with all flags off and an empty environment."""
    monkeypatch.delenv("TOOL_WHITELIST", raising=False)
    monkeypatch.delenv("DTRAG_ENV", raising=False)
    switch(dict.fromkeys(FLAGS, False))
    yield
    switch(dict.fromkeys(FLAGS))


def switch(values: Mapping[str, bool | None]) -> None:
    for name, value in values.items():
        get_env_manager().set_feature_flag(name, value)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


async def slow(given: dict[str, Any]) -> None:
    await asyncio.sleep(3_600)


async def failing(given: dict[str, Any]) -> None:
    raise RuntimeError("the service is down")


def registered(app: App, name: str, execute: Any) -> None:
    app.tools.register(Tool(name, "For a scenario.", {"type": "object"}, execute))


async def test_tools_1_the_registered_tools_are_listed(app: App) -> None:
    switch({"mcp_tools": True})
    listed = list_tools()
    assert isinstance(listed, list)
    assert {tool["name"] for tool in listed} == BUILT_IN
    for tool in listed:
        assert {"name", "description", "input_schema"} <= set(tool)
        assert tool["description"]
        assert tool["input_schema"]["type"] == "object"


async def test_tools_2_a_tool_on_the_whitelist_is_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    switch({"tools_policy": True})
    monkeypatch.setenv("TOOL_WHITELIST", "web_search,calculator")
    done = await execute_tool("web_search", {"query": "test"})
    assert isinstance(done, ToolExecutionResult)
    assert done.success is True
    assert done.result is not None


async def test_tools_3_a_tool_off_the_whitelist_is_blocked(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    switch({"tools_policy": True})
    monkeypatch.setenv("TOOL_WHITELIST", "calculator")
    with caplog.at_level(logging.WARNING):
        done = await execute_tool("web_search", {"query": "test"})
    assert (done.success, done.error) == (False, "Blocked by whitelist policy")
    assert said(caplog) == ["Tool 'web_search' blocked by whitelist"]
    assert caplog.records[0].levelno == logging.WARNING


async def test_tools_4_a_tool_is_stopped_after_thirty_seconds(app: App, clock: Clock) -> None:
    """The clock of the limits is moved by 29, then by 2 seconds, while the tool runs."""
    stopped = asyncio.Event()
    reached: list[int] = []

    async def slow_tool(given: dict[str, Any]) -> None:
        try:
            await clock.sleep(29)
            reached.append(29)
            await clock.sleep(2)
            reached.append(31)
        finally:
            stopped.set()

    registered(app, "slow_tool", slow_tool)
    done = await execute_tool("slow_tool", {}, timeout=30.0)
    assert (done.success, done.error) == (False, "Tool execution timeout (30.0s)")
    assert stopped.is_set()
    assert reached == [29]


async def test_tools_5_step_4_runs_the_tools_of_the_plan(app: App, caplog: pytest.LogCaptureFixture) -> None:
    switch({"mcp_tools": True})
    state = PipelineState(
        query="test",
        plan={
            "tools": ["web_search", "calculator"],
            "inputs": {"web_search": {"query": "test"}, "calculator": {"expression": "6 * 7"}},
        },
    )
    with caplog.at_level(logging.INFO):
        result = await step4_tools_debate(state)
    assert [row["tool"] for row in result.tool_results] == ["web_search", "calculator"]
    for row in result.tool_results:
        assert {"tool", "success", "result", "error", "elapsed"} <= set(row)
        assert row["success"] is True
        assert row["elapsed"] >= 0
    assert result.tool_results[1]["result"]["result"] == 42
    assert "Step 4 (tools) executed: 2 tools" in said(caplog)


async def test_tools_6_with_the_flag_off_nothing_is_executed(caplog: pytest.LogCaptureFixture) -> None:
    state = PipelineState(query="test", plan={"tools": ["calculator"], "inputs": {}})
    with caplog.at_level(logging.INFO):
        result = await step4_tools_debate(state)
    assert result.tool_results == []
    assert "Step 4 (tools) skipped (mcp_tools flag OFF)" in said(caplog)


async def test_tools_6_a_plan_without_tools_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    switch({"mcp_tools": True})
    with caplog.at_level(logging.INFO):
        result = await step4_tools_debate(PipelineState(query="test", plan={"tools": []}))
    assert result.tool_results == []
    assert "Step 4 (tools) skipped (no tools in plan)" in said(caplog)


async def test_tools_7_an_input_that_does_not_fit_is_refused() -> None:
    registered_tool = get_tool_registry().get_tool("calculator")
    assert registered_tool is not None
    assert registered_tool.input_schema["required"] == ["expression"]
    done = await execute_tool("calculator", {})
    assert done.success is False
    assert done.error == "Input validation failed: 'expression' is a required property"


async def test_tools_8_an_unknown_tool_is_not_found() -> None:
    done = await execute_tool("unknown_tool", {})
    assert (done.success, done.error) == (False, "Tool 'unknown_tool' not found")


@pytest.mark.parametrize("whitelist", ["", None])
async def test_tools_9_d23_an_empty_whitelist_allows_everything_in_development(
    whitelist: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch({"tools_policy": True})
    if whitelist is not None:
        monkeypatch.setenv("TOOL_WHITELIST", whitelist)
    done = await execute_tool("web_search", {})
    assert done.success is True
    assert done.result == {"results": [], "note": "No query was given, so nothing was searched for."}
    assert (await execute_tool("web_search", {"query": "test"})).success is True
    monkeypatch.setenv("DTRAG_ENV", "production")
    assert (await execute_tool("web_search", {})).error == "Blocked by whitelist policy"


async def test_tools_10_one_failure_does_not_stop_the_others(app: App) -> None:
    switch({"mcp_tools": True})
    registered(app, "fail_tool", failing)
    state = PipelineState(
        query="test",
        plan={
            "tools": ["web_search", "fail_tool", "calculator"],
            "inputs": {"web_search": {"query": "test"}, "calculator": {"expression": "1 + 1"}},
        },
    )
    result = await step4_tools_debate(state)
    assert [(row["tool"], row["success"]) for row in result.tool_results] == [
        ("web_search", True),
        ("fail_tool", False),
        ("calculator", True),
    ]
    assert result.tool_results[1]["error"] == "Execution error: the service is down"


@pytest.mark.usefixtures("shipped_limits")
async def test_tools_gate_step_4_ends_within_a_second_for_each_tool(app: App, clock: Clock) -> None:
    async def slow_tool(given: dict[str, Any]) -> None:
        await clock.sleep(3_600)

    switch({"mcp_tools": True})
    registered(app, "slow_tool", slow_tool)
    state = PipelineState(
        query="test", plan={"tools": ["calculator", "slow_tool"], "inputs": {"calculator": {"expression": "1"}}}
    )
    result = await step4_tools_debate(state)
    assert [row["success"] for row in result.tool_results] == [True, False]
    assert result.tool_results[1]["error"] == "Tool execution timeout (1.9s)"


async def test_tools_gate_what_a_caller_may_use_is_never_more_than_the_policy(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch({"tools_policy": True})
    monkeypatch.setenv("TOOL_WHITELIST", "calculator")
    blocked = await execute_tool("web_search", {"query": "x"}, allowed=["web_search"])
    assert blocked.error == "Blocked by whitelist policy"
    blocked = await execute_tool("calculator", {"expression": "1"}, allowed=[])
    assert blocked.error == "Blocked by whitelist policy"
