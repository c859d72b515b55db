"""Executing tools: found, allowed, checked, run within a time, and what comes back is small. Nothing here raises for
what a tool does."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from dtrag.concurrency import limit_clock
from dtrag.errors import InvalidInput
from dtrag.logs import redact
from dtrag.settings import flag
from dtrag.tools.default import get_tool_registry
from dtrag.tools.output import plain
from dtrag.tools.policy import get_tool_whitelist, validate_tool
from dtrag.tools.registry import TIMEOUT, Tool, ToolRegistry
from dtrag.tools.result import ToolExecutionResult

BLOCKED = "Blocked by whitelist policy"
TIMED_OUT = "Tool execution timeout"
CUT = "The output was longer than a tool may give back and was cut."
MESSAGE = 500
"""Characters of a tool's error that are told."""
GRACE = 0.05
"""Seconds that a cancelled tool gets to close what it holds; one that ignores being cancelled is left behind."""
SECONDS_PER_TOOL = 1.0
SHARE = 0.95
"""Of the step's time that its tools get; the rest is for cancelling those that did not finish and collecting."""
MOST_TOOLS = 16
"""Tools that one plan may run; a plan is written by rules or by a model, and a model may write anything."""
logger = logging.getLogger("dtrag.tools")

_left_behind: set[asyncio.Task[_Ended]] = set()
"""Tools that ignored being cancelled; the event loop itself holds tasks only weakly."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """How the tool itself ended: with a result, or with words about its error."""

    result: Any = None
    error: str | None = None
    cut: bool = False


async def execute_tool(
    name: str,
    input: Mapping[str, Any],  # noqa: A002 - the name in the specification of tools
    timeout: float = TIMEOUT,  # noqa: ASYNC109 - held with asyncio.wait, so that a tool cannot ignore it
    *,
    registry: ToolRegistry | None = None,
    allowed: Collection[str] | None = None,
    policy: bool | None = None,
) -> ToolExecutionResult:
    """Execute one tool of the registry (default: `get_tool_registry()`) within `timeout` seconds, or its own if less.

    `allowed` are the tools that the caller may use; None for all. TOOL_WHITELIST holds beside it with `policy` (None:
    while the flag tools_policy is on). Errors are told in the result: "Tool '...' not found", "Blocked by whitelist
    policy", "Input validation failed: ...", "Tool execution timeout (...s)", "Execution error: ...". Raises
    `InvalidInput` for a timeout that is none, and nothing else but the cancellation of the caller.
    """
    if not (timeout > 0 and math.isfinite(timeout)):
        raise InvalidInput(f"The timeout of a tool is {timeout!r}, but must be a number of seconds above 0.")
    tools = get_tool_registry() if registry is None else registry
    policy = flag("tools_policy") if policy is None else policy
    result = await _executed(name, tools.get_tool(name), input, timeout, allowed=allowed, policy=policy)
    tools.on_executed(result)
    return result


async def _executed(
    name: str,
    tool: Tool | None,
    given: Mapping[str, Any],
    seconds: float,
    *,
    allowed: Collection[str] | None,
    policy: bool,
) -> ToolExecutionResult:
    started = limit_clock()
    if tool is not None and "check" not in vars(tool):
        await asyncio.to_thread(getattr, tool, "check")  # the first time it may take .2 s, which would hold up others
    mistake = _mistake(name, tool, given, allowed, policy)
    if tool is None or mistake is not None:
        return ToolExecutionResult(False, None, mistake, name, limit_clock() - started)
    ended = await _within(tool, dict(given), min(float(seconds), float(tool.timeout)))
    elapsed = limit_clock() - started
    if ended.error is not None:
        logger.info("A tool failed", extra={"tool": name, "seconds": round(elapsed, 3)})
        return ToolExecutionResult(False, None, ended.error, name, elapsed)
    return ToolExecutionResult(True, ended.result, None, name, elapsed, CUT if ended.cut else "")


def _mistake(name: str, tool: Tool | None, given: object, allowed: Collection[str] | None, policy: bool) -> str | None:
    """Why the tool must not run, or None. TOOL_WHITELIST counts with `policy`."""
    if tool is None:
        return f"Tool '{name[:128]}' not found"
    if not (validate_tool(name, allowed) and (not policy or validate_tool(name, get_tool_whitelist()))):
        logger.warning("Tool '%s' blocked by whitelist", name)
        return BLOCKED
    if not isinstance(given, Mapping):
        return "Input validation failed: the input must be an object"
    mistake = tool.check(dict(given))
    return None if mistake is None else f"Input validation failed: {mistake}"


async def _within(tool: Tool, given: dict[str, Any], seconds: float) -> _Ended:
    """Run the tool for at most so long. Cancelling this cancels the tool."""
    task = asyncio.ensure_future(_guarded(tool, given))
    try:
        await asyncio.wait({task}, timeout=seconds)
        if task.done():
            return _Ended(error="Execution error: the tool was cancelled") if task.cancelled() else task.result()
        task.cancel()
        await asyncio.wait({task}, timeout=GRACE)
    finally:
        if not task.done():
            task.cancel()
            _left_behind.add(task)
            task.add_done_callback(_left_behind.discard)
    return _Ended(error=f"{TIMED_OUT} ({seconds}s)")


async def _guarded(tool: Tool, given: dict[str, Any]) -> _Ended:
    """The seam to code that is not ours: whatever it raises ends this tool only, an exit of the program, too."""
    try:
        result, cut = plain(await tool.execute(given))
        return _Ended(result, cut=cut)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - see above; a SystemExit in a task would end the event loop
        return _Ended(error=f"Execution error: {_words(error)}")


def _words(error: BaseException) -> str:
    """What the error says, without secrets and not at length; its class when it says nothing, or cannot even that."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - the error is of the tool's making, and so is its __str__
        said = ""
    return redact(said[:MESSAGE]) or type(error).__name__


def planned(plan: Mapping[str, Any] | None) -> list[str]:
    """The names of the tools that the plan runs, in order."""
    names = (plan or {}).get("tools") or []
    return [str(name) for name in names] if isinstance(names, (list, tuple)) else []


async def execute_plan(
    plan: Mapping[str, Any] | None,
    *,
    registry: ToolRegistry | None = None,
    allowed: Collection[str] | None = None,
    seconds: float | None = None,
    policy: bool | None = None,
) -> list[dict[str, Any]]:
    """Run `plan["tools"]`, each with its own of `plan["inputs"]`; the results in the order of the plan.

    Each is a dict with tool, success, result, error, elapsed, and a note when the output was cut. `seconds` is the time
    of the whole step (default: 1.0 s for each tool): what has finished is taken, the others are told as timeouts. One
    tool that fails does not keep the others from running. Nothing runs that the plan does not name. `policy` as for
    `execute_tool`.
    """
    names = planned(plan)
    if not names:
        return []
    inputs = (plan or {}).get("inputs")
    inputs = inputs if isinstance(inputs, Mapping) else {}
    budget = SECONDS_PER_TOOL * len(names) if seconds is None else seconds
    budget *= min(1.0, MOST_TOOLS / len(names))  # those that do not run give no time to the others
    limit = min(TIMEOUT, round(budget * SHARE, 3))
    running = [
        execute_tool(name, inputs.get(name, {}), limit, registry=registry, allowed=allowed, policy=policy)
        for name in names[:MOST_TOOLS]
    ]
    results = [_row(result) for result in await asyncio.gather(*running)]
    return results + [_row(_beyond(name)) for name in names[MOST_TOOLS:]]


def _beyond(name: str) -> ToolExecutionResult:
    error = f"Execution error: a plan runs at most {MOST_TOOLS} tools"
    return ToolExecutionResult(False, None, error, name[:128], 0.0)


def _row(result: ToolExecutionResult) -> dict[str, Any]:
    row = {
        "tool": result.tool_name,
        "success": result.success,
        "result": result.result,
        "error": result.error,
        "elapsed": result.elapsed,
    }
    return row | {"note": result.note} if result.note else row
