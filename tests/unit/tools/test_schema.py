"""A tool made of a function takes what the signature says, and says it as JSON Schema."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Optional

import pytest

from dtrag.errors import InvalidInput
from dtrag.tools import ToolRegistry, execute_tool, tool


@tool
def greet(
    name: str,
    times: int = 1,
    *,
    tone: Literal["warm", "cool"] = "warm",
    marks: Annotated[list[str] | None, "what to end with", {"maxItems": 3}] = None,
) -> str:
    """Greets somebody.

    As often as wanted.

    Args:
        name: who it is
        times (int): how often
    """
    return f"{tone} hello {name}{''.join(marks or [])} " * times


def test_signature_and_docstring_become_the_schema() -> None:
    assert (greet.name, greet.description, greet.timeout) == ("greet", "Greets somebody.\n\nAs often as wanted.", 30.0)
    assert greet.input_schema == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "who it is"},
            "times": {"type": "integer", "description": "how often", "default": 1},
            "tone": {"enum": ["warm", "cool"], "default": "warm"},
            "marks": {
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                "description": "what to end with",
                "maxItems": 3,
                "default": None,
            },
        },
        "required": ["name"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (str, {"type": "string"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (dict, {"type": "object"}),
        (list, {"type": "array"}),
        (Any, {}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045 - the older way to say it
        (Sequence[float], {"type": "array", "items": {"type": "number"}}),
        (Mapping[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (Annotated[int, {"minimum": 1}, 7], {"type": "integer", "minimum": 1}),
    ],
)
def test_types_have_their_schema(kind: Any, schema: dict[str, Any]) -> None:
    def take(value: Any) -> None:
        """Takes."""

    take.__annotations__["value"] = kind
    assert tool(take).input_schema["properties"] == {"value": schema}


async def test_a_plain_function_runs_in_a_thread_and_an_async_one_does_not() -> None:
    @tool(name="where.plain", timeout=3.0)
    def plain() -> str:
        return threading.current_thread().name

    @tool
    async def quick() -> str:
        return threading.current_thread().name

    registry = ToolRegistry()
    registry.register(plain)
    registry.register(quick)
    registry.register(greet)
    assert (plain.name, plain.timeout, plain.description) == ("where.plain", 3.0, "")
    assert (await execute_tool("where.plain", {}, registry=registry)).result == "tool-1"
    assert (await execute_tool("quick", {}, registry=registry)).result == "MainThread"
    done = await execute_tool("greet", {"name": "Ada", "times": 2, "marks": ["!"]}, registry=registry)
    assert done.result == "warm hello Ada! warm hello Ada! "
    refused = await execute_tool("greet", {"name": "Ada", "other": 1}, registry=registry)
    assert "Additional properties are not allowed" in str(refused.error)


def untyped(value) -> None:  # type: ignore[no-untyped-def]
    """No type."""


def many(*values: int) -> None:
    """Any number of them."""


def keywords(**values: int) -> None:
    """Any names."""


def strange(value: complex) -> None:
    """A type that JSON does not have."""


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (untyped, "'value' of untyped needs a type"),
        (many, "name each argument"),
        (keywords, "name each argument"),
        (strange, "no JSON Schema"),
    ],
)
def test_what_cannot_be_told_from_the_signature_is_refused(function: Callable[..., Any], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        tool(function)
