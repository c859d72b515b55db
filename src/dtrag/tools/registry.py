"""Which tools there are: what a tool is, and the registry that keeps them by name."""

from __future__ import annotations

import copy
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dtrag.errors import InvalidInput
from dtrag.tools.result import ToolExecutionResult

if TYPE_CHECKING:
    from dtrag.tools.validation import Check

TIMEOUT = 30.0
"""Seconds that a tool may take, unless it or its caller says less."""
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,127}")
"""Names are compared exactly, so they hold nothing that looks like something else; `server.tool` for those of MCP."""
Execute = Callable[[dict[str, Any]], Awaitable[Any]]
logger = logging.getLogger("dtrag.tools")


@dataclass(frozen=True)
class Tool:
    """A tool. `input_schema` is the JSON Schema (2020-12) of the object that `execute` takes.

    `execute` runs on the event loop and must not block it; `dtrag.tools.tool` makes it of a function, and of a
    blocking one, too. What it returns is made of what JSON knows. `timeout`: seconds that one execution may take.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    execute: Execute = field(repr=False)
    timeout: float = TIMEOUT

    @cached_property
    def check(self) -> Check:
        """What finds the mistake in an input; compiled when the tool is used for the first time."""
        from dtrag.tools.validation import compiled  # brings jsonschema, which takes 0.1 s

        return compiled(self.input_schema)


class ToolRegistry:
    """The tools of an app, by name, in the order in which they came."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}
        self.on_executed: Callable[[ToolExecutionResult], None] = lambda result: None
        """Called with the result of every execution, also of one that was refused."""

    def register(self, tool: Tool) -> None:
        """Add a tool. Raises `InvalidInput` for a name that is not one, or is taken: no tool slips in for another."""
        if not NAME.fullmatch(tool.name):
            raise InvalidInput(
                f"A tool cannot be named {tool.name[:60]!r}. Names are of 1 to 128 letters, digits and _ . - "
                "and begin with a letter."
            )
        if tool.name in self._tools:
            raise InvalidInput(f"There is a tool named {tool.name!r} already; unregister that one first.")
        if not tool.timeout > 0:
            raise InvalidInput(f"The tool {tool.name!r} needs a timeout of more than 0 seconds.")
        self._tools[tool.name] = tool
        logger.info("Registered tool: %s", tool.name)

    def unregister(self, name: str) -> bool:
        """Take a tool out; False when there is none of that name. What runs goes on."""
        return self._tools.pop(name, None) is not None

    def get_tool(self, name: str) -> Tool | None:
        """The tool of exactly that name, or None."""
        return self._tools.get(name)

    def list_tools(self) -> list[dict[str, Any]]:
        """Name, description and input_schema of every tool; copies, so that no reader changes what is checked."""
        return [
            {"name": tool.name, "description": tool.description, "input_schema": copy.deepcopy(dict(tool.input_schema))}
            for tool in self._tools.values()
        ]
