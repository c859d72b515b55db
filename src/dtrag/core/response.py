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
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime
from enum import Enum
from functools import cache
from types import MappingProxyType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")
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


class Written:
    """Metadata of an annotation: JSON has what `write` returns; `returned` is its schema for pydantic."""

    def __init__(self, write: Callable[[Any], object], returned: Mapping[str, object]) -> None:
        self.write = write
        self._schema = {"type": "function-plain", "function": write, "return_schema": returned}

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return {"type": "any", "serialization": self._schema}


TEXT = {"type": "str"}
TEXTS = {"type": "list", "items_schema": TEXT}
Moment = Annotated[datetime, Written(lambda moment: moment.astimezone(UTC).isoformat(), TEXT)]
"""A time with a time zone, in JSON in UTC as `isoformat` writes it, with `+00:00` instead of pydantic's `Z`."""


def extended(kind: type[T], value: DataclassInstance, **more: object) -> T:
    """A value of a subclass of the value's class, with `more` fields."""
    values = {each.name: getattr(value, each.name) for each in fields(kind) if each.init and each.name not in more}
    return kind(**values, **more)


def plain(value: Any) -> Any:
    """The value as JSON values, with the fields and names of the response: for `--json` and for stores."""
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, uuid.UUID) else value


def _fields(value: Any) -> dict[str, Any]:
    kind: type = type(value)
    written = _writers(kind) if hasattr(kind, "__pydantic_config__") else {}
    row = {}
    for declared in fields(value):
        item = getattr(value, declared.name)
        if "exclude" not in declared.metadata:
            write = plain if item is None else written.get(declared.name, plain)
            row[declared.metadata.get("alias", declared.name)] = write(item)
    return row


@cache
def _writers(kind: type) -> Mapping[str, Callable[[Any], object]]:
    """The functions of `Written` by field, also of optional ones."""
    writers = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        for part in parts:
            for metadata in getattr(part, "__metadata__", ()):
                if isinstance(metadata, Written):
                    writers[name] = metadata.write
    return writers


def children(value: Any) -> Collection[Any]:
    """The values of a mapping or the items of a list; nothing for other values."""
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, (list, tuple)) else ()


def deeper_than(value: Any, levels: int) -> bool:
    """Whether mappings and lists are nested in more than so many levels."""
    level = [value]
    for _ in range(levels):
        level = [inner for outer in level for inner in children(outer)]
        if not level:
            return False
    return True
