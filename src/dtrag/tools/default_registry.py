"""The default registry: that of the open app, or one with the built-in tools; the whitelist of an administrator."""

from __future__ import annotations

import functools
from collections.abc import Collection

from dtrag.current_app import active
from dtrag.errors import NoActiveApp
from dtrag.settings import development, tool_whitelist
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


def get_tool_whitelist() -> list[str] | None:
    """The names in TOOL_WHITELIST; None allows every tool.

    An empty list allows every tool only while DTRAG_ENV is `development`, which is its default; elsewhere it allows
    none.
    """
    names = tool_whitelist()
    if names is None:
        return None if development() else []
    return names


def validate_tool(name: str, whitelist: Collection[str] | None) -> bool:
    """Whether the list holds exactly this name (None: yes); `*` has no special meaning."""
    return whitelist is None or name in whitelist
