"""The default registry: that of the open app, or one with the built-in tools."""

from __future__ import annotations

import functools

from dtrag.current_app import active
from dtrag.errors import NoActiveApp
from dtrag.tools.registry import ToolDescription, ToolRegistry


def get_tool_registry() -> ToolRegistry:
    """The registry of the open app; without one (or with several), built-in tools without a parser and a network."""
    try:
        tools: ToolRegistry | None = active().run.tools
    except NoActiveApp:
        tools = None
    if tools is not None:
        return tools
    return _without_app()


@functools.cache
def _without_app() -> ToolRegistry:
    """The registry of programs that use tools without an app."""
    from dtrag.tools.builtin import builtin_tools  # here only: apps register the built-in tools themselves

    registry = ToolRegistry()
    for tool in builtin_tools():
        registry.register(tool)
    return registry


def list_tools() -> list[ToolDescription]:
    """Name, description and input_schema of every tool of `get_tool_registry()`."""
    return get_tool_registry().list_tools()
