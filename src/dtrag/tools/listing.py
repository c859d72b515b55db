"""All tools as people see them: those that are there, and those of MCP servers that wait for somebody's word."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from dtrag.settings import flag
from dtrag.tools.mcp import McpTools, ServerStatus, ToolStatus
from dtrag.tools.policy import get_tool_whitelist, validate_tool
from dtrag.tools.registry import ToolRegistry

NOT_NAMED = "TOOL_WHITELIST does not name it."


async def listing(registry: ToolRegistry, mcp: McpTools, seconds: float) -> tuple[list[ToolStatus], list[ServerStatus]]:
    """Every tool by name, built-in ones first, and the MCP servers, waited for at most so long.

    While the flag tools_policy is on, tools that TOOL_WHITELIST does not name are not usable.
    """
    servers, offered = await mcp.status(seconds)
    whitelist = get_tool_whitelist() if flag("tools_policy") else None
    foreign = {tool.name for tool in offered if tool.usable}
    built_in = [_built_in(tool) for tool in registry.list_tools() if tool["name"] not in foreign]
    return [_judged(tool, whitelist) for tool in [*sorted(built_in, key=lambda tool: tool.name), *offered]], servers


def _built_in(tool: Mapping[str, Any]) -> ToolStatus:
    return ToolStatus(tool["name"], "", tool["description"], tool["input_schema"], "built-in", usable=True)


def _judged(tool: ToolStatus, whitelist: Collection[str] | None) -> ToolStatus:
    if tool.usable and not validate_tool(tool.name, whitelist):
        return replace(tool, usable=False, reason=NOT_NAMED)
    return tool
