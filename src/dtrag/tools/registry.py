"""`Tool`, the result of its execution, and the registry that holds tools by name."""

from __future__ import annotations

import copy
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from dtrag.core.access.grade_limits import UNLIMITED, Limits, Recipient
from dtrag.errors import InvalidInput

if TYPE_CHECKING:
    from dtrag.tools.validation import Check

TIMEOUT = 30.0
"""Seconds that a tool may take, unless it or its caller sets less."""
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,127}")
"""Names are compared exactly, so only ASCII is allowed, which has no look-alikes; MCP tools are `server.tool`."""
JsonObject = dict[str, Any]
"""An object of JSON whose keys are not known here: the input of a tool, or a JSON Schema."""
Execute = Callable[[JsonObject], Awaitable[Any]]
logger = logging.getLogger("dtrag.tools")


@dataclass(frozen=True)
class Tool:
    """A tool. `input_schema` is the JSON Schema (2020-12) of the object that `execute` takes.

    `execute` runs on the event loop and must not block it; `dtrag.tools.tool` makes tools of functions, blocking ones
    included. It returns values that JSON can represent. `timeout`: seconds that one execution may take.
    `destination` is where its input is sent, None for a tool that works in this process.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    execute: Execute = field(repr=False)
    timeout: float = TIMEOUT
    destination: Recipient | None = None

    @cached_property
    def check(self) -> Check:
        """The validator of inputs, compiled when the tool is used for the first time."""
        from dtrag.tools.validation import compiled  # imports jsonschema, which takes 0.1 s

        return compiled(self.input_schema)


class ToolDescription(TypedDict):
    """A tool as it is published."""

    name: str
    description: str
    input_schema: JsonObject


class ToolRegistry:
    """The tools of an app, by name, in the order of registration."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}
        self.on_executed: Callable[[ToolExecutionResult], None] = lambda result: None
        """Called with the result of every execution, refused ones included."""
        self.limits = Limits()

    def limit(self, tool: Tool) -> int:
        """The highest grade of text that may be in an input of the tool."""
        return UNLIMITED if tool.destination is None else self.limits.of(tool.destination)

    def register(self, tool: Tool) -> None:
        """Add a tool. Raises `InvalidInput` for an invalid or taken name: no tool replaces another."""
        if not NAME.fullmatch(tool.name):
            raise InvalidInput(
                f"Invalid tool name {tool.name[:60]!r}. A name has 1 to 128 letters, digits and _ . - "
                "and begins with a letter."
            )
        if tool.name in self._tools:
            raise InvalidInput(f"A tool named {tool.name!r} is already registered; unregister it first.")
        if not tool.timeout > 0:
            raise InvalidInput(f"The tool {tool.name!r} needs a timeout of more than 0 seconds.")
        self._tools[tool.name] = tool
        logger.info("Registered tool: %s", tool.name)

    def unregister(self, name: str) -> bool:
        """Remove a tool; False when there is none of that name. Running executions continue."""
        return self._tools.pop(name, None) is not None

    def get_tool(self, name: str) -> Tool | None:
        """The tool of exactly that name, or None."""
        return self._tools.get(name)

    def tools(self) -> tuple[Tool, ...]:
        """All tools."""
        return tuple(self._tools.values())

    def list_tools(self) -> list[ToolDescription]:
        """Name, description and input_schema of every tool; copies, so that no reader changes what is validated."""
        return [
            {"name": tool.name, "description": tool.description, "input_schema": copy.deepcopy(dict(tool.input_schema))}
            for tool in self._tools.values()
        ]


@dataclass(frozen=True, slots=True)
class ToolExecutionResult:
    """The result of one execution. `result` is plain JSON, None on failure; `error` is None on success.

    `elapsed` in seconds. `note` says that the output was truncated.
    """

    success: bool
    result: Any
    error: str | None
    tool_name: str
    elapsed: float
    note: str = ""

    def as_row(self) -> ToolResult:
        """The result as the pipeline's state and responses hold it."""
        row = ToolResult(
            tool=self.tool_name, success=self.success, result=self.result, error=self.error, elapsed=self.elapsed
        )
        if self.note:
            row["note"] = self.note
        return row


class ToolResult(TypedDict):
    """The result of one tool of a plan, with the meaning of the fields of `ToolExecutionResult`."""

    tool: str
    success: bool
    result: Any
    error: str | None
    elapsed: float
    note: NotRequired[str]
