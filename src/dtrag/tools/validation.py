"""Whether an input fits a tool's JSON Schema: nothing is fetched for it, and no pattern can stall the process."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

Check = Callable[[Any], str | None]
"""Takes an input; returns the mistake in it, in words, or None."""

MESSAGE = 300
"""Characters of a mistake that are told, about: the library quotes the value, which may be a whole file."""
PATTERN_TEXT = 2_000
"""Longest text that a pattern is tried on: with two open repetitions that is four million steps, some 50 ms."""
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_OPEN = re.compile(r"[*+]|\{\d*,\d*\}")
_REPEATED_GROUP = re.compile(r"\)[*+{]")
_COMBINED = frozenset(
    ("additionalProperties", "unevaluatedProperties", "patternProperties", "allOf", "anyOf", "oneOf", "if", "$ref")
)


def plain(pattern: str) -> bool:
    """Whether matching takes at most the square of the text's length.

    Python's `re` backtracks, without giving other threads a turn: repeated groups can take forever, and so can three
    open repetitions on a long text.
    """
    bare = _ESCAPED.sub("x", pattern)
    return not _REPEATED_GROUP.search(bare) and len(_OPEN.findall(bare)) <= 2


def compiled(schema: Mapping[str, Any]) -> Check:
    """What checks inputs against the schema. A schema that is itself wrong makes every input wrong, and says why.

    A property that the schema does not name is a mistake even where JSON Schema would let it pass: what a tool has
    not asked for is not handed to it. `$ref` leads inside the schema only. A `pattern` that could take forever is not
    applied here; the tool that wants it has to.
    """
    from jsonschema import Draft202012Validator, validators
    from jsonschema.exceptions import SchemaError, ValidationError
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    def pattern(_: Any, wanted: str, instance: Any, __: Any) -> Iterator[ValidationError]:
        applies = isinstance(instance, str) and len(instance) <= PATTERN_TEXT and plain(wanted)
        if applies and not re.search(wanted, instance):
            yield ValidationError(f"{instance!r} does not match {wanted!r}")

    try:
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
            return f"the schema of the tool refers to {str(error.ref)[:100]!r}; nothing outside of it is read"
        except RecursionError:
            return "the input or the schema of the tool is nested too deeply"
        except (ArithmeticError, TypeError, ValueError):  # a whole number of a thousand digits, for one
            return "a value in the input is not one that the schema of the tool can be held against"
        return None if mistake is None else _words(mistake.message, mistake.absolute_path)

    return check


def _words(message: str, path: Iterable[str | int]) -> str:
    """The mistake and where it is. In the middle of a long message is the value; what is wrong stands at its end."""
    if len(message) > MESSAGE:
        message = f"{message[: MESSAGE // 2]} ... {message[-MESSAGE // 2 :]}"
    place = ".".join(str(part)[:60] for part in path)
    return f"{message} ({place})" if place else message


def _closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema, without room for properties it does not name, unless it says itself what it does with others."""
    if "properties" not in schema or _COMBINED & schema.keys():
        return dict(schema)
    return {**schema, "additionalProperties": False}


def _refuse_slow_names(schema: Any) -> None:
    """Raise `ValueError` for patterns of property names that could take forever: leaving them out would change what
    the schema means."""
    if isinstance(schema, Mapping):
        for name in schema.get("patternProperties", {}):
            if not plain(name):
                raise ValueError(f"matching the pattern {name[:60]!r} could take forever")
        for part in schema.values():
            _refuse_slow_names(part)
    elif isinstance(schema, (list, tuple)):
        for part in schema:
            _refuse_slow_names(part)
