"""Executing tools: permission, validation of the input, time limit, size limit. No failure of a tool raises here."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from dtrag.concurrency import limit_clock
from dtrag.core.access.grade_limits import UNLIMITED
from dtrag.destinations import allows
from dtrag.errors import InvalidInput
from dtrag.logs import redact
from dtrag.settings import flag
from dtrag.tools.default_registry import get_tool_registry, get_tool_whitelist, validate_tool
from dtrag.tools.registry import TIMEOUT, JsonObject, Tool, ToolExecutionResult, ToolRegistry, ToolResult

BLOCKED = "Blocked by whitelist policy"
TIMED_OUT = "Tool execution timeout"
ABOVE = "Blocked: the input has texts above the grade that this tool may be sent (setting grade_limits)"
CUT = "The output was longer than a tool may give back and was cut."
MESSAGE = 500
"""Characters of a tool's error message that are reported."""
GRACE = 0.05
"""Seconds that a cancelled tool has to clean up; one that ignores the cancellation is abandoned."""
SECONDS_PER_TOOL = 1.0
SHARE = 0.95
"""Share of the step's time that its tools have; the rest is for cancelling unfinished ones and collecting results."""
MOST_TOOLS = 16
"""Tools that one plan may run: a model may write any number into its plan."""
logger = logging.getLogger("dtrag.tools")

_abandoned: set[asyncio.Task[_Outcome]] = set()
"""Tools that ignored their cancellation; the event loop holds tasks only weakly."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How the tool itself ended: with a result, or with an error message."""

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
    grade: int = 0,
) -> ToolExecutionResult:
    """Execute one tool of the registry (default: `get_tool_registry()`) within `timeout` seconds, or its own if less.

    `allowed` are the tools that the caller may use; None for all. TOOL_WHITELIST applies as well with `policy` (None:
    while the flag tools_policy is on). `grade` is the highest grade of the texts in the input. Errors are part of the
    result: "Tool '...' not found", "Blocked by whitelist policy", "Input validation failed: ...", "Tool execution
    timeout (...s)", "Execution error: ...", and that the tool may not be sent texts of that grade. Raises
    `InvalidInput` for an invalid timeout, and otherwise only the caller's own cancellation.
    """
    if not (timeout > 0 and math.isfinite(timeout)):
        raise InvalidInput(f"The timeout of a tool is {timeout!r}, but must be a number of seconds above 0.")
    tools = get_tool_registry() if registry is None else registry
    policy = flag("tools_policy") if policy is None else policy
    tool = tools.get_tool(name)
    if tool is not None and not allows(tools.limit(tool), grade):
        result = ToolExecutionResult(False, None, ABOVE, name, 0.0)
    else:
        result = await _executed(name, tool, input, timeout, allowed=allowed, policy=policy)
    tools.on_executed(result)
    return result


async def _executed(
    name: str,
    tool: Tool | None,
    values: Mapping[str, Any],
    seconds: float,
    *,
    allowed: Collection[str] | None,
    policy: bool,
) -> ToolExecutionResult:
    started = limit_clock()
    if tool is not None and "check" not in vars(tool):
        await asyncio.to_thread(getattr, tool, "check")  # compiling takes up to .2 s, which would block the event loop
    refusal = _refusal(name, tool, values, allowed, policy)
    if tool is None or refusal is not None:
        return ToolExecutionResult(False, None, refusal, name, limit_clock() - started)
    outcome = await _run_within(tool, dict(values), min(float(seconds), float(tool.timeout)))
    elapsed = limit_clock() - started
    if outcome.error is not None:
        logger.info("A tool failed", extra={"tool": name, "seconds": round(elapsed, 3)})
        return ToolExecutionResult(False, None, outcome.error, name, elapsed)
    return ToolExecutionResult(True, outcome.result, None, name, elapsed, CUT if outcome.cut else "")


def _refusal(name: str, tool: Tool | None, values: object, allowed: Collection[str] | None, policy: bool) -> str | None:
    """Why the tool must not run, or None. TOOL_WHITELIST applies with `policy`."""
    if tool is None:
        return f"Tool '{name[:128]}' not found"
    if not (validate_tool(name, allowed) and (not policy or validate_tool(name, get_tool_whitelist()))):
        logger.warning("Tool '%s' blocked by whitelist", name)
        return BLOCKED
    if not isinstance(values, Mapping):
        return "Input validation failed: the input must be an object"
    mistake = tool.check(dict(values))
    return None if mistake is None else f"Input validation failed: {mistake}"


async def _run_within(tool: Tool, values: JsonObject, seconds: float) -> _Outcome:
    """Run the tool for at most `seconds`. Cancelling this cancels the tool."""
    task = asyncio.ensure_future(_run(tool, values))
    try:
        await asyncio.wait({task}, timeout=seconds)
        if task.done():
            return _Outcome(error="Execution error: the tool was cancelled") if task.cancelled() else task.result()
        task.cancel()
        await asyncio.wait({task}, timeout=GRACE)
    finally:
        if not task.done():
            task.cancel()
            _abandoned.add(task)
            task.add_done_callback(_abandoned.discard)
    return _Outcome(error=f"{TIMED_OUT} ({seconds}s)")


async def _run(tool: Tool, values: JsonObject) -> _Outcome:
    """Run a tool's own code: whatever it raises, SystemExit included, ends only this tool."""
    try:
        result, cut = plain(await tool.execute(values))
        return _Outcome(result, cut=cut)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - a boundary: a SystemExit in a task would end the event loop
        return _Outcome(error=f"Execution error: {_message(error)}")


def _message(error: BaseException) -> str:
    """The error's message, shortened and without secrets; the name of its class when it has none."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - a boundary: the tool's own error class may have a broken __str__
        message = ""
    return redact(message[:MESSAGE]) or type(error).__name__


def planned(plan: Mapping[str, object] | None) -> list[str]:
    """The names of the tools that the plan runs, in order."""
    names = (plan or {}).get("tools") or []
    return [str(name) for name in names] if isinstance(names, (list, tuple)) else []


async def execute_plan(
    plan: Mapping[str, object] | None,
    *,
    registry: ToolRegistry | None = None,
    allowed: Collection[str] | None = None,
    seconds: float | None = None,
    policy: bool | None = None,
) -> list[ToolResult]:
    """Run `plan["tools"]` at the same time, each with its input of `plan["inputs"]`; results in the order of the plan.

    `seconds` is the time of the whole step (default: 1.0 s for each tool): finished results are kept, the other tools
    are reported as timed out. A tool that fails does not keep the others from running, and no tool runs that the plan
    does not name. `policy` as for `execute_tool`.
    """
    names = planned(plan)
    if not names:
        return []
    inputs = (plan or {}).get("inputs")
    inputs = inputs if isinstance(inputs, Mapping) else {}
    grade = (plan or {}).get("grade", 0)
    budget = SECONDS_PER_TOOL * len(names) if seconds is None else seconds
    budget *= min(1.0, MOST_TOOLS / len(names))  # tools that do not run give no time to the others
    limit = min(TIMEOUT, round(budget * SHARE, 3))
    running = [
        execute_tool(
            name,
            inputs.get(name, {}),
            limit,
            registry=registry,
            allowed=allowed,
            policy=policy,
            grade=grade if isinstance(grade, int) else UNLIMITED,
        )
        for name in names[:MOST_TOOLS]
    ]
    results = [result.as_row() for result in await asyncio.gather(*running)]
    return results + [_beyond_limit(name).as_row() for name in names[MOST_TOOLS:]]


def _beyond_limit(name: str) -> ToolExecutionResult:
    error = f"Execution error: a plan runs at most {MOST_TOOLS} tools"
    return ToolExecutionResult(False, None, error, name[:128], 0.0)


CHARACTERS = 64 * 1024
"""Maximum characters of all strings of an output: about 16,000 tokens, more than a prompt can use."""
DEPTH = 32
"""Maximum nesting; deeper parts of an output are left out."""
DIGITS = 1_000
"""Longer integers are replaced by their size, because converting them to decimal takes quadratic time."""


class NotPlain(TypeError):
    """A tool returned a value that JSON cannot represent."""


def plain(value: Any, characters: int = CHARACTERS) -> tuple[Any, bool]:
    """A copy of the value as plain JSON, and whether something was left out.

    Strings are truncated once `characters` are used up, and what follows is left out. Every value counts as at least
    one character, so that the copy ends even for a value that contains itself. Raises `NotPlain`.
    """
    copier = _Copier(characters)
    return copier.copy(value, DEPTH), copier.cut


class _Copier:
    """Copies a value while counting down its characters."""

    def __init__(self, characters: int) -> None:
        self.left = characters
        self.cut = False

    def copy(self, value: Any, depth: int) -> Any:
        self.left -= 1
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return int(value) if value.bit_length() < DIGITS * 3.3 else self._string(f"({value.bit_length()} bits)")
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else repr(float(value))
        if isinstance(value, str):
            return self._string(value)
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, (list, tuple)):
            return self._sequence(value, depth)
        raise NotPlain(f"the tool returned a value of type {type(value).__name__}, which is not JSON")

    def _string(self, text: str) -> str:
        shortened = text[: max(0, self.left)]
        self.cut = self.cut or len(shortened) < len(text)
        self.left -= len(shortened)
        return shortened.encode("utf-8", "replace").decode("utf-8")

    def _exhausted(self, depth: int) -> bool:
        if self.left > 0 and depth > 0:
            return False
        self.cut = True
        return True

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> JsonObject:
        copied: JsonObject = {}
        for key, item in value.items():
            if self._exhausted(depth):
                break
            if not isinstance(key, str):
                raise NotPlain("the tool returned a mapping whose keys are not strings, which is not JSON")
            name = self._string(key)  # before the value, which may use up the rest
            copied[name] = self.copy(item, depth - 1)
        return copied

    def _sequence(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        copied: list[Any] = []
        for item in value:
            if self._exhausted(depth):
                break
            copied.append(self.copy(item, depth - 1))
        return copied
