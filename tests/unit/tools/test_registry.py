"""The registry, and the tools that come with dtrag."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from dtrag.errors import InvalidInput
from dtrag.tools import Tool, ToolRegistry, execute_tool, get_tool_registry, list_tools
from dtrag.tools.default_registry import get_tool_whitelist, validate_tool


async def nothing(given: dict[str, Any]) -> None:
    """Nothing."""


def made(name: str, timeout: float = 30.0) -> Tool:
    return Tool(name, "Does nothing.", {"type": "object", "properties": {}}, nothing, timeout)


def test_a_tool_is_registered_looked_up_and_unregistered(caplog: pytest.LogCaptureFixture) -> None:
    registry, tool = ToolRegistry(), made("nothing")
    with caplog.at_level(logging.INFO, "dtrag.tools"):
        registry.register(tool)
    assert [record.getMessage() for record in caplog.records] == ["Registered tool: nothing"]
    assert registry.get_tool("nothing") is tool
    assert registry.unregister("nothing")
    assert not registry.unregister("nothing")
    assert registry.get_tool("nothing") is None


def test_a_listed_schema_is_a_copy() -> None:
    registry = ToolRegistry()
    registry.register(made("nothing"))
    registry.list_tools()[0]["input_schema"]["properties"]["more"] = {}
    assert registry.list_tools() == [
        {"name": "nothing", "description": "Does nothing.", "input_schema": {"type": "object", "properties": {}}}
    ]


def test_a_name_is_taken_once() -> None:
    registry = ToolRegistry()
    registry.register(made("server.tool"))
    with pytest.raises(InvalidInput, match="already"):
        registry.register(made("server.tool"))


@pytest.mark.parametrize("name", ["", " x", "x ", "../x", "x/y", "계산기", "x\u200b", "1x", "x" * 129, "x\n"])
def test_names_are_plain(name: str) -> None:
    with pytest.raises(InvalidInput, match="Invalid tool name"):
        ToolRegistry().register(made(name))


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("nan")])
def test_a_tool_needs_a_positive_timeout(timeout: float) -> None:
    with pytest.raises(InvalidInput, match="timeout"):
        ToolRegistry().register(made("slow", timeout))


async def test_without_an_app_the_built_in_tools_are_registered() -> None:
    assert get_tool_registry() is get_tool_registry()
    assert [tool["name"] for tool in list_tools()] == ["calculator", "doc_parser", "web_search"]
    assert (await execute_tool("calculator", {"expression": "6 * 7"})).result == {"result": 42, "text": "42"}
    unread = await execute_tool("doc_parser", {"content": "x"})
    assert unread.error == "Execution error: documents can be read while an app is open: async with dtrag.open()"


# --- the policy -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("whitelist", "environment", "names"),
    [
        (None, None, None),
        ("", "", None),
        (None, "production", []),
        ("  ", "production", []),
        (None, "development", None),
        ("", " Development ", None),
        ("a", "development", ["a"]),
        (" web_search , ,calculator", None, ["web_search", "calculator"]),
        (" , ", "development", []),
        ("*", "development", ["*"]),
    ],
)
def test_an_empty_whitelist_allows_everything_in_development_only(
    whitelist: str | None, environment: str | None, names: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in (("TOOL_WHITELIST", whitelist), ("DTRAG_ENV", environment)):
        if value is None:
            monkeypatch.delenv(variable, raising=False)
        else:
            monkeypatch.setenv(variable, value)
    assert get_tool_whitelist() == names


def test_names_are_compared_exactly() -> None:
    assert validate_tool("calculator", None)
    assert validate_tool("calculator", ["calculator"])
    for other in ("Calculator", "calc", "calculator ", "*"):
        assert not validate_tool(other, ["calculator"])
    assert not validate_tool("calculator", ["*"])
    assert not validate_tool("calculator", [])
