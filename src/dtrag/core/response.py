"""What makes a value the model of a response: a route returns the dataclass itself, and no class repeats its fields.

    @dataclass(frozen=True, slots=True)
    class Votes:
        \"\"\"Votes on a case.\"\"\"

        __pydantic_config__ = response("CaseVotesShape")

        up: int
        \"\"\"Votes for it.\"\"\"

The docstring of the class and those below its fields are the descriptions of the API, so they are written for clients;
remarks for developers are comments. A new field is part of the response unless it has the metadata `INTERNAL`.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import Any, Final

_FIELD = re.compile(r'^    (\w+): .*\n(?:(?: {8}|    \)).*\n)*    """((?:.|\n)*?)"""', re.M)
"""A field of a dataclass with the docstring below it."""

INTERNAL: Final[Mapping[str, Any]] = {"exclude": True}
"""Metadata of a field that no response contains: `field(default=None, metadata=INTERNAL)`."""


class Response:
    """The `__pydantic_config__` of a value. Reading it describes the fields of the class, once.

    Pydantic can read docstrings itself, but parses the whole file for every use of a class, also during a request.
    """

    def __init__(self, component: str | None) -> None:
        self._component = component
        self._described: set[type] = set()

    def __get__(self, instance: object, owner: type) -> dict[str, Any]:
        if owner not in self._described:
            self._described.add(owner)
            for kind in owner.__mro__:
                if "__dataclass_fields__" in vars(kind):
                    _describe(kind)
        title = self._component or owner.__name__
        return {"json_schema_serialization_defaults_required": True, "title": title}


def response(component: str | None = None) -> Response:
    """The `__pydantic_config__` of a value; `component` is its name in the API where that is not the class's name."""
    return Response(component)


def _describe(kind: type) -> None:
    """Add the docstrings below the fields of a dataclass to their metadata, where pydantic finds descriptions."""
    try:
        source = inspect.getsource(sys.modules[kind.__module__])
    except OSError:  # installed without sources: the API is described without these texts
        return
    body = re.split(rf"^class {kind.__name__}\b", source, flags=re.M)[1]
    body = re.split(r"^\S", body[body.index("\n") :], maxsplit=1, flags=re.M)[0]
    docstrings = {name: " ".join(lines.split()) for name, lines in _FIELD.findall(body)}
    for declared in fields(kind):
        if declared.name in docstrings and declared.name in kind.__annotations__:
            declared.metadata = MappingProxyType({"description": docstrings[declared.name], **declared.metadata})


def plain(value: Any) -> Any:
    """The value as the commands print it as JSON: dataclasses by their fields, without the internal ones."""
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value) if "exclude" not in each.metadata}
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value
