"""A tool made of a function: what its signature and its docstring say becomes the JSON Schema of its input."""

from __future__ import annotations

import asyncio
import inspect
import re
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, overload

from dtrag.concurrency import DaemonThreads
from dtrag.errors import InvalidInput
from dtrag.tools.registry import TIMEOUT, Tool

_SIMPLE: dict[object, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    dict: {"type": "object"},
    list: {"type": "array"},
    Any: {},
}
MAX_THREADS = 32
"""Blocking calls at a time, abandoned ones included: a function that never returns costs a thread, not the machine."""
_THREADS = DaemonThreads(MAX_THREADS, "tool", queue=0)
_ARGUMENT = re.compile(r"^ {2,8}(\w+)(?: \([^)]*\))?: *(\S.*)$")


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(*, name: str | None = None, timeout: float = TIMEOUT) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None, /, *, name: str | None = None, timeout: float = TIMEOUT
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """A decorator that makes a `Tool` of a function. `registry.register(...)` puts it where it is found.

    The name is the function's, the description its docstring, up to `Args:`. Types: str, int, float, bool, None, list,
    dict, Literal, `X | Y`, and `Annotated[X, "description", {"maxLength": 100}]`; below `Args:` lines such as
    `query: what to look for` describe arguments. Others than these are refused as mistakes.

    An `async` function runs on the event loop, a plain one in a thread. Raises `InvalidInput` for a function whose
    input cannot be told from its signature.
    """
    if function is None:
        return lambda decorated: _made(decorated, name, timeout)
    return _made(function, name, timeout)


def _made(function: Callable[..., Any], name: str | None, timeout: float) -> Tool:
    asynchronous = inspect.iscoroutinefunction(function)

    async def execute(given: dict[str, Any]) -> Any:
        return await function(**given) if asynchronous else await run_in_thread(function, given)

    description, arguments = _documentation(function)
    return Tool(name or function.__name__, description, schema_of(function, arguments), execute, timeout)


async def run_in_thread(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """What the blocking function returns. Raises what it raises, and `Overloaded` while `MAX_THREADS` calls run.

    When this is cancelled, the call continues in its thread, but neither the caller nor the process waits for it.
    """

    def call() -> Any:
        try:
            return function(**arguments)
        except (StopIteration, asyncio.CancelledError, KeyboardInterrupt, SystemExit) as error:
            # A future cannot hold these: asyncio uses them itself.
            raise RuntimeError(f"the tool raised {type(error).__name__}") from None

    return await _THREADS.run(call)


def schema_of(function: Callable[..., Any], descriptions: Mapping[str, str]) -> dict[str, Any]:
    """The JSON Schema of the function's arguments. Raises `InvalidInput`."""
    hints = get_type_hints(function, include_extras=True)
    properties: dict[str, Any] = {}
    required = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise InvalidInput(f"A tool cannot have the argument {str(parameter)!r}: name each argument.")
        if parameter.name not in hints:
            raise InvalidInput(f"The argument {parameter.name!r} of {function.__name__} needs a type, such as str.")
        part = _type(hints[parameter.name], parameter.name)
        if parameter.name in descriptions:
            part = {"description": descriptions[parameter.name]} | part
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        else:
            part["default"] = parameter.default
        properties[parameter.name] = part
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _type(hint: Any, name: str) -> dict[str, Any]:
    """The schema of one type."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:  # first: it cannot be looked up when what it holds cannot be hashed
        return _type(inner[0], name) | _extras(hint.__metadata__)
    if hint in _SIMPLE:
        return dict(_SIMPLE[hint])
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_type(part, name) for part in inner]}
    if origin in (list, Sequence):
        return {"type": "array", "items": _type(inner[0], name)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _type(inner[1], name)}
    raise InvalidInput(f"The argument {name!r} is of the type {hint!r}, for which there is no JSON Schema.")


def _extras(metadata: Sequence[Any]) -> dict[str, Any]:
    extras: dict[str, Any] = {}
    for item in metadata:
        if isinstance(item, str):
            extras["description"] = item
        elif isinstance(item, Mapping):
            extras |= item
    return extras


def _documentation(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The description, and those of the arguments."""
    text = inspect.getdoc(function) or ""
    said, _, listed = text.partition("\nArgs:\n")
    found = (_ARGUMENT.match(line) for line in listed.splitlines())
    return said.strip(), {match[1]: match[2].strip() for match in found if match}
