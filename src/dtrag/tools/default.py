"""The registry that is used where none is named: that of the open app, or one with the built-in tools."""

from __future__ import annotations

from typing import Any

from dtrag.current_app import active
from dtrag.errors import NoActiveApp
from dtrag.tools.registry import ToolRegistry

_default: list[ToolRegistry] = []


def get_tool_registry() -> ToolRegistry:
    """The tools of the open app; without one (or with several) the built-in ones, which then have no way outside."""
    try:
        tools: ToolRegistry | None = active().run.tools
    except NoActiveApp:
        tools = None
    if tools is not None:
        return tools
    if not _default:
        from dtrag.tools.builtin import builtin_tools  # only for programs that use tools without an app

        registry = ToolRegistry()
        for tool in builtin_tools():
            registry.register(tool)
        _default.append(registry)
    return _default[0]


def list_tools() -> list[dict[str, Any]]:
    """Name, description and input_schema of every tool of `get_tool_registry()`."""
    return get_tool_registry().list_tools()
