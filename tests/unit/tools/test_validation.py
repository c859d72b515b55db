"""Inputs are checked against the tool's schema, and nothing in a schema reaches outside or stalls the process."""

from __future__ import annotations

import time
from typing import Any

import pytest

from dtrag.tools.validation import MESSAGE, compiled, is_fast

QUERY = {"type": "object", "properties": {"query": {"type": "string"}}}


def test_an_input_that_fits_has_no_mistake() -> None:
    assert compiled(QUERY)({"query": "x"}) is None


def test_a_mistake_is_reported_with_its_place() -> None:
    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "integer"}}}}
    assert compiled(schema)({"rows": [1, "2"]}) == "'2' is not of type 'integer' (rows.1)"


def test_a_long_value_is_shortened_in_the_message() -> None:
    mistake = compiled({"type": "object", "properties": {"a": {"maxLength": 3}}})({"a": "x" * 100_000})
    assert mistake is not None
    assert len(mistake) < MESSAGE + 100
    assert mistake.endswith("is too long (a)")


def test_undeclared_properties_are_refused() -> None:
    assert "Additional properties" in str(compiled(QUERY)({"query": "x", "url": "y"}))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {**QUERY, "additionalProperties": True},
        {**QUERY, "anyOf": [{"properties": {"url": {"type": "string"}}}]},
    ],
)
def test_a_schema_with_a_rule_for_additional_properties_is_followed(schema: dict[str, Any]) -> None:
    assert compiled(schema)({"query": "x", "url": "y"}) is None


@pytest.mark.parametrize(
    "reference", ["file:///etc/passwd", "http://127.0.0.1:9/schema", "other.json", "#/$defs/none", "urn:x"]
)
def test_references_are_followed_inside_the_schema_only(reference: str) -> None:
    schema = {"type": "object", "properties": {"query": {"$ref": reference}}}
    mistake = compiled(schema)({"query": "x"})
    assert mistake is not None
    assert "outside references are not resolved" in mistake


def test_patterns_of_names_apply() -> None:
    check = compiled({"type": "object", "patternProperties": {"^n_": {"type": "integer"}}})
    assert check({"n_a": 1, "other": "x"}) is None
    assert check({"n_a": "x"}) == "'x' is not of type 'integer' (n_a)"


def test_a_reference_inside_is_followed() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}
    check = compiled(schema)
    assert check({"a": 1}) is None
    assert check({"a": "1"}) == "'1' is not of type 'integer' (a)"


def test_an_endlessly_recursive_schema_is_a_mistake() -> None:
    assert "nested too deeply" in str(compiled({"$ref": "#"})({}))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "text"}, "is not valid under any of the given schemas"),
        ({"type": "object", "properties": {"a": {"pattern": "("}}}, "is not a 'regex'"),
        ({"patternProperties": {"(a+)+$": {}}}, "could take forever"),
        ({"allOf": [{"patternProperties": {"(a|b)*x": {}}}]}, "could take forever"),
    ],
)
def test_an_invalid_schema_makes_every_input_a_mistake(schema: dict[str, Any], reason: str) -> None:
    mistake = compiled(schema)({})
    assert mistake is not None
    assert mistake.startswith("the schema of the tool is not valid")
    assert reason in mistake


def test_values_that_cannot_be_compared_are_a_mistake() -> None:
    schema = {"type": "object", "properties": {"a": {"multipleOf": 0.1}, "b": {"maximum": 3}}}
    assert "cannot be compared" in str(compiled(schema)({"a": 10**400}))
    assert "cannot be compared" in str(compiled(schema)({"b": 10**5_000}))


def test_plain_patterns_apply() -> None:
    check = compiled({"type": "object", "properties": {"code": {"pattern": r"^[A-Z]{2}-\d+$"}}})
    assert check({"code": "AB-12"}) is None
    assert check({"code": 12}) is None
    assert "does not match" in str(check({"code": "AB"}))


@pytest.mark.parametrize(
    ("pattern", "is_plain"),
    [
        (r"^a+b*$", True),
        (r"^(ab|cd)?x{3}$", True),
        (r"\(a\)+", True),
        (r"^(a+)+$", False),
        (r"(a|a)*b", False),
        (r"(a){2,}", False),
        (r"a*b*c*d", False),
        (r"(a\\)+b", False),
    ],
)
def test_patterns_that_could_take_forever_are_known(pattern: str, is_plain: bool) -> None:
    assert is_fast(pattern) is is_plain


def test_a_pattern_cannot_stall_the_process() -> None:
    schema = {"type": "object", "properties": {"a": {"pattern": r"^(a+)+$"}, "b": {"pattern": r"^\w*\w*!$"}}}
    started = time.thread_time()
    assert compiled(schema)({"a": "a" * 60 + "!", "b": "b" * 100_000}) is None
    assert time.thread_time() - started < 2
