"""The docstring of an error is its message: it can be filled with what the source gives it, and is told alike."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

import dtrag
import dtrag.adapters.parsers.process
import dtrag.delivery.cli.ingest
from dtrag import errors
from dtrag.delivery.cli.exit_codes import EXIT_CODES
from dtrag.errors import DatabaseStartFailed, DatabaseUnavailable, DtragError, InvalidInput, NotFound
from tests.cases import each

SOURCE = Path(dtrag.__file__).parent


def _family(kind: type[DtragError] = DtragError) -> Iterator[type[DtragError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _family(child)


KINDS = {kind.__name__: kind for kind in _family() if kind.__module__.startswith("dtrag.")}


def _fields(kind: type[DtragError]) -> set[str]:
    """The names in braces of the message."""
    return {name for _, name, _, _ in string.Formatter().parse(kind.__doc__ or "") if name}


def _raised() -> Iterator[tuple[str, str, set[str]]]:
    """Where in the source an error is made from fields: (place, class, names of the fields)."""
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and not node.args:
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in KINDS:
                    given = {keyword.arg for keyword in node.keywords if keyword.arg}
                    yield f"{file.relative_to(SOURCE)}:{node.lineno}", name, given


RAISED = list(_raised())


@each("place, name, given", RAISED)
def test_every_error_in_the_source_is_given_the_fields_of_its_message(place: str, name: str, given: set[str]) -> None:
    kind = KINDS[name]
    assert _fields(kind) <= given
    message = str(kind(None, None, **{field: f"<{field}>" for field in given}))
    assert "\n" not in message
    assert "{" not in message
    assert all(f"<{field}>" in message for field in _fields(kind))


def test_the_source_was_read() -> None:
    assert {"DatabaseUnavailable", "NotFound", "ModelNotFound"} <= {name for _, name, _ in RAISED}


@each("kind", KINDS.values())
def test_every_error_maps_to_a_known_exit_code_and_status(kind: type[DtragError]) -> None:
    assert kind.exit_code in EXIT_CODES
    assert kind.exit_code != 0
    assert kind.http_status in {400, 401, 403, 404, 409, 422, 429, 500, 501, 502, 503, 507}
    assert (kind.__doc__ or "").strip()
    error = kind(None, None, **dict.fromkeys(_fields(kind), "x"))
    assert error.fields == dict.fromkeys(_fields(kind), "x")


def test_errors_of_the_outside_world_are_told_apart_from_the_callers() -> None:
    assert (InvalidInput.exit_code, InvalidInput.http_status) == (2, 422)
    assert (DatabaseUnavailable.exit_code, DatabaseUnavailable.http_status) == (4, 503)
    assert (DatabaseStartFailed.exit_code, DatabaseStartFailed.http_status) == (4, 503)
    assert issubclass(InvalidInput, ValueError)


def test_a_message_of_its_own_replaces_the_docstring() -> None:
    assert str(InvalidInput("top_k must be {whole}")) == "top_k must be {whole}"
    assert str(InvalidInput()) == "The input is not valid."
    assert str(NotFound(kind="document", name="a'b")) == (
        'There is no document "a\'b" that you may see. `dtrag documents` lists what there is.'
    )


def test_a_message_that_lacks_a_field_is_a_mistake_in_the_code() -> None:
    with pytest.raises(KeyError):
        NotFound(kind="document")


def test_every_error_of_the_module_is_ours() -> None:
    classes = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert len(classes) >= 11
    assert all(issubclass(value, DtragError) for value in classes)
