"""Tools made of functions: the JSON Schema of a tool's input comes from the function's signature and docstring."""

from __future__ import annotations

import asyncio
import inspect
import re
import types
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints, overload

from dtrag.concurrency import DaemonThreads
from dtrag.core.access.grade_limits import Recipient
from dtrag.errors import InvalidInput
from dtrag.tools.registry import TIMEOUT, JsonObject, Tool

if TYPE_CHECKING:
    from pydantic import BaseModel

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
    """A decorator that makes a `Tool` of a function; `registry.register(...)` then makes it available.

    The tool has the function's name, and its docstring up to `Args:` as description. Arguments may have any type that
    pydantic can describe by a JSON Schema, and arrive as values of that type. `Annotated[X, "description",
    {"maxLength": 100}]` adds a description and keywords to the schema; so do lines such as `query: what to look for`
    below `Args:`.

    An `async` function runs on the event loop, any other one in a thread. Raises `InvalidInput` for a function whose
    arguments have no names or no types, or a type without a JSON Schema.
    """

    def decorate(decorated: Callable[..., Any]) -> Tool:
        made = tool_of(decorated, name=name, timeout=timeout)
        len(made.input_schema)  # derives the schema, so that a mistake is raised here
        return made

    return decorate if function is None else decorate(function)


def tool_of(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    timeout: float = TIMEOUT,
    destination: Recipient | None = None,
) -> Tool:
    """As `tool`, but the schema is derived when it is first read.

    For built-in tools: pydantic takes 0.1 s to import, which most commands then save.
    """
    arguments = _Arguments(function)

    async def execute(values: JsonObject) -> Any:
        typed = arguments.typed(values)
        if inspect.iscoroutinefunction(function):
            return await function(**typed)
        return await run_in_thread(function, typed)

    return Tool(name or function.__name__, arguments.description, arguments, execute, timeout, destination)


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


class _Arguments(Mapping[str, Any]):
    """The arguments of a function; as a mapping, the JSON Schema of the object that holds them, derived when read."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.description, self._descriptions = _documentation(function)

    def typed(self, values: JsonObject) -> JsonObject:
        """The values, of the types that the signature names. Raises `ValueError` for a value that does not fit."""
        from pydantic import ValidationError

        try:
            checked = self._model.model_validate(values)
        except ValidationError as error:
            mistake = error.errors(include_url=False, include_input=False)[0]
            raise ValueError(f"{'.'.join(map(str, mistake['loc']))}: {mistake['msg']}") from None
        fields = type(checked).model_fields
        return {str(fields[name].alias): getattr(checked, name) for name in checked.model_fields_set}

    def __getitem__(self, keyword: str) -> Any:
        return self._schema[keyword]

    def __iter__(self) -> Iterator[str]:
        return iter(self._schema)

    def __len__(self) -> int:
        return len(self._schema)

    @cached_property
    def _model(self) -> type[BaseModel]:
        """The arguments as a model. Its fields are numbered, for a model cannot have one named `json` or `copy`."""
        from pydantic import ConfigDict, Field, PydanticUserError, create_model

        hints = get_type_hints(self.function, include_extras=True)
        fields: dict[str, Any] = {}
        for number, parameter in enumerate(inspect.signature(self.function).parameters.values()):
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise InvalidInput(f"A tool cannot have the argument {str(parameter)!r}: name each argument.")
            if parameter.name not in hints:
                raise InvalidInput(
                    f"The argument {parameter.name!r} of {self.function.__name__} needs a type, such as str."
                )
            default = ... if parameter.default is parameter.empty else parameter.default
            hint = _with_fields(hints[parameter.name], self._descriptions.get(parameter.name))
            fields[f"argument_{number}"] = (hint, Field(default, alias=parameter.name))
        try:
            return create_model(self.function.__name__, __config__=ConfigDict(extra="forbid"), **fields)
        except PydanticUserError as error:
            raise self._without_schema() from error

    @cached_property
    def _schema(self) -> JsonObject:
        from pydantic import PydanticUserError
        from pydantic.json_schema import GenerateJsonSchema

        class WithoutTitles(GenerateJsonSchema):
            def field_title_should_be_set(self, schema: object) -> bool:
                return False

        try:
            derived = self._model.model_json_schema(schema_generator=WithoutTitles)
        except PydanticUserError as error:
            raise self._without_schema() from error
        schema = {
            "type": "object",
            "properties": derived.get("properties", {}),
            "required": derived.get("required", []),
        }
        schema |= {"$defs": derived["$defs"]} if "$defs" in derived else {}
        return schema | {"additionalProperties": False}

    def _without_schema(self) -> InvalidInput:
        return InvalidInput(
            f"An argument of {self.function.__name__} has a type for which there is no JSON Schema. Use str, int, "
            "float, bool, list, dict, Literal, a dataclass or a pydantic model."
        )


def _with_fields(hint: Any, description: str | None = None) -> Any:
    """The type with a description, its `Annotated` texts and mappings translated into pydantic's fields."""
    from pydantic import Field

    origin, inner = get_origin(hint), get_args(hint)
    metadata = [] if description is None else [Field(description=description)]
    if origin is Annotated:
        for item in hint.__metadata__:
            if isinstance(item, str):
                metadata.append(Field(description=item))
            elif isinstance(item, Mapping):
                metadata.append(Field(json_schema_extra=dict(item)))
            else:
                metadata.append(item)
        hint = _with_fields(inner[0])
    elif origin in (Union, types.UnionType):
        hint = Union[tuple(map(_with_fields, inner))]  # noqa: UP007 - the number of types is known at run time only
    elif inner and origin is not Literal and not any(isinstance(part, list) for part in inner):
        hint = origin[tuple(map(_with_fields, inner))]
    return Annotated[(hint, *metadata)] if metadata else hint


def _documentation(function: Callable[..., Any]) -> tuple[str, Mapping[str, str]]:
    """The description, and those of the arguments."""
    text = inspect.getdoc(function) or ""
    description, _, argument_lines = text.partition("\nArgs:\n")
    matches = (_ARGUMENT.match(line) for line in argument_lines.splitlines())
    return description.strip(), {match[1]: match[2].strip() for match in matches if match}
