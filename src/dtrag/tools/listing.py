"""All tools with their state: registered ones, and those of MCP servers that await approval."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from dtrag.settings import flag
from dtrag.tools.default_registry import get_tool_whitelist, validate_tool
from dtrag.tools.mcp import McpTools, ServerStatus, ToolStatus
from dtrag.tools.registry import Tool, ToolRegistry

NOT_LISTED = "TOOL_WHITELIST does not name it."


async def listing(registry: ToolRegistry, mcp: McpTools, seconds: float) -> tuple[list[ToolStatus], list[ServerStatus]]:
    """Every tool by name, built-in ones first, and the MCP servers, after waiting at most `seconds` for them.

    While the flag tools_policy is on, tools that TOOL_WHITELIST does not name are not usable.
    """
    servers, offered = await mcp.status(seconds)
    whitelist = get_tool_whitelist() if flag("tools_policy") else None
    from_servers = {tool.name for tool in offered if tool.usable}
    built_in = [_built_in(tool) for tool in registry.tools() if tool.name not in from_servers]
    return [_permitted(tool, whitelist) for tool in [*sorted(built_in, key=lambda tool: tool.name), *offered]], servers


def _built_in(tool: Tool) -> ToolStatus:
    return ToolStatus(tool.name, "", tool.description, dict(tool.input_schema), "built-in", usable=True)


def _permitted(tool: ToolStatus, whitelist: Collection[str] | None) -> ToolStatus:
    if tool.usable and not validate_tool(tool.name, whitelist):
        return replace(tool, usable=False, reason=NOT_LISTED)
    return tool
