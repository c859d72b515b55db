"""A tool made of a function takes what the signature says, and says it as JSON Schema."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
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
            "tone": {"type": "string", "enum": ["warm", "cool"], "default": "warm"},
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
        (dict, {"type": "object", "additionalProperties": True}),
        (list, {"type": "array", "items": {}}),
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


@dataclass
class Place:
    name: str
    floor: int = 0


async def test_values_arrive_as_the_types_of_the_signature() -> None:
    @tool
    async def book(day: date, json: Place, share: float = 0.5, copy: list[Place] | None = None) -> str:
        """Books a place; its arguments have names that pydantic's models reserve."""
        return f"{day:%d.%m.} {json.name} {json.floor} {share!r} {[place.name for place in copy or []]}"

    assert book.input_schema["$defs"]["Place"]["required"] == ["name"]
    registry = ToolRegistry()
    registry.register(book)
    values = {"day": "2026-03-01", "json": {"name": "A", "floor": 2}, "share": 1, "copy": [{"name": "B"}]}
    assert (await execute_tool("book", values, registry=registry)).result == "01.03. A 2 1.0 ['B']"
    refused = await execute_tool("book", values | {"day": "tomorrow"}, registry=registry)
    assert str(refused.error).startswith("Execution error: day: Input should be a valid date")


def test_descriptions_inside_of_types_are_kept() -> None:
    @tool
    def take(values: dict[str, Annotated[int, "how many", {"minimum": 1}]]) -> None:
        """Takes."""

    described = {"type": "integer", "description": "how many", "minimum": 1}
    assert take.input_schema["properties"]["values"]["additionalProperties"] == described


def test_built_in_tools_derive_their_schemas_when_they_are_read() -> None:
    program = (
        "import sys; from dtrag.tools import get_tool_registry; names = [t.name for t in get_tool_registry().tools()];"
        "print(names, 'pydantic' in sys.modules, len(get_tool_registry().list_tools()), 'pydantic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['calculator', 'doc_parser', 'web_search'] False 3 True"


def untyped(value) -> None:  # type: ignore[no-untyped-def]
    """No type."""


def many(*values: int) -> None:
    """Any number of them."""


def keywords(**values: int) -> None:
    """Any names."""


def strange(value: threading.Event) -> None:
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
def test_signatures_without_a_schema_are_refused(function: Callable[..., Any], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        tool(function)
