"""Tools that run for a question besides the search: registry, permission, validation of inputs, limits."""

from dtrag.tools.default_registry import get_tool_registry, get_tool_whitelist, list_tools, validate_tool
from dtrag.tools.executor import execute_plan, execute_tool
from dtrag.tools.registry import Tool, ToolExecutionResult, ToolRegistry
from dtrag.tools.schema import tool

__all__ = [
    "Tool",
    "ToolExecutionResult",
    "ToolRegistry",
    "execute_plan",
    "execute_tool",
    "get_tool_registry",
    "get_tool_whitelist",
    "list_tools",
    "tool",
    "validate_tool",
]
