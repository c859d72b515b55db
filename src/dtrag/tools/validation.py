"""Validation of inputs against JSON Schemas: no reference is fetched, and no pattern can stall the process."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

Check = Callable[[Any], str | None]
"""Takes an input; returns a message about the first mistake in it, or None."""

MESSAGE = 300
"""Characters of a message, about: the library quotes the value, which may be a whole file."""
PATTERN_TEXT = 2_000
"""Longest text that a pattern is matched against: with two open repetitions four million steps, about 50 ms."""
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_OPEN = re.compile(r"[*+]|\{\d*,\d*\}")
_REPEATED_GROUP = re.compile(r"\)[*+{]")
_COMBINED = frozenset(
    ("additionalProperties", "unevaluatedProperties", "patternProperties", "allOf", "anyOf", "oneOf", "if", "$ref")
)


def is_fast(pattern: str) -> bool:
    """Whether matching takes at most quadratic time.

    Python's `re` backtracks while it holds the GIL: repeated groups can take exponential time, and three open
    repetitions take cubic time.
    """
    bare = _ESCAPED.sub("x", pattern)
    return not _REPEATED_GROUP.search(bare) and len(_OPEN.findall(bare)) <= 2


def compiled(schema: Mapping[str, Any]) -> Check:
    """The validator of inputs for the schema. With an invalid schema every input is a mistake, which says why.

    A property that the schema does not name is a mistake even where JSON Schema would accept it: a tool gets no
    argument that it does not declare. `$ref` is resolved inside the schema only. A `pattern` that is not fast is not
    applied here; the tool itself has to.
    """
    from jsonschema import Draft202012Validator, validators
    from jsonschema.exceptions import SchemaError, ValidationError
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    def pattern(_: Any, expression: str, instance: Any, __: Any) -> Iterator[ValidationError]:
        applies = isinstance(instance, str) and len(instance) <= PATTERN_TEXT and is_fast(expression)
        if applies and not re.search(expression, instance):
            yield ValidationError(f"{instance!r} does not match {expression!r}")

    try:
        schema = dict(schema)
        Draft202012Validator.check_schema(schema)
        _refuse_slow_names(schema)
    except (SchemaError, RecursionError, ValueError) as error:
        reason = f"the schema of the tool is not valid: {getattr(error, 'message', None) or error}"[:MESSAGE]
        return lambda _: reason
    extend: Callable[..., Any] = validators.extend
    validator = extend(Draft202012Validator, {"pattern": pattern})(_closed(schema), registry=Registry())

    def check(value: Any) -> str | None:
        try:
            mistake = next(validator.iter_errors(value), None)
        except Unresolvable as error:
            return f"the schema of the tool refers to {str(error.ref)[:100]!r}; outside references are not resolved"
        except RecursionError:
            return "the input or the schema of the tool is nested too deeply"
        except (ArithmeticError, TypeError, ValueError):  # such as an integer of a thousand digits
            return "a value in the input cannot be compared with the schema of the tool"
        return None if mistake is None else _located(mistake.message, mistake.absolute_path)

    return check


def _located(message: str, path: Iterable[str | int]) -> str:
    """The message and the place of the mistake. A long message is shortened in its middle, where the value is."""
    if len(message) > MESSAGE:
        message = f"{message[: MESSAGE // 2]} ... {message[-MESSAGE // 2 :]}"
    place = ".".join(str(part)[:60] for part in path)
    return f"{message} ({place})" if place else message


def _closed(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema without additional properties, unless it has a rule for them itself."""
    if "properties" not in schema or _COMBINED & schema.keys():
        return schema
    return {**schema, "additionalProperties": False}


def _refuse_slow_names(schema: Any) -> None:
    """Raise `ValueError` for slow patterns of property names; leaving them out would change the schema's meaning."""
    if isinstance(schema, Mapping):
        for name in schema.get("patternProperties", {}):
            if not is_fast(name):
                raise ValueError(f"matching the pattern {name[:60]!r} could take forever")
        for part in schema.values():
            _refuse_slow_names(part)
    elif isinstance(schema, (list, tuple)):
        for part in schema:
            _refuse_slow_names(part)
