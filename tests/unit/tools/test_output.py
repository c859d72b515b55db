"""Outputs of tools are copied into plain JSON, within limits."""

from __future__ import annotations

import json
import math
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.tools.executor import DEPTH, NotPlain, plain

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_json_values_are_copied_unchanged(value: Any) -> None:
    expected = json.loads(json.dumps(value))
    assert plain(value) == (expected, False)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, 2), [1, 2]),
        (MappingProxyType({"a": True}), {"a": True}),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        ("half \ud800 of one", "half ? of one"),
        (1 << 5_000, "(5001 bits)"),
    ],
)
def test_values_close_to_json_are_converted(value: object, expected: object) -> None:
    assert plain(value) == (expected, False)


@pytest.mark.parametrize("value", [object(), b"bytes", {1, 2}, {1: 2}, [lambda: 1]])
def test_values_without_a_json_form_are_refused(value: object) -> None:
    with pytest.raises(NotPlain, match="not JSON"):
        plain(value)


def test_strings_are_truncated_when_the_characters_are_used_up() -> None:
    assert plain("abcdef", 4) == ("abc", True)
    assert plain({"a": "xxxx", "b": "yyyy", "c": 1}, 10) == ({"a": "xxxx", "b": "y"}, True)
    assert plain([1] * 100, 10) == ([1] * 9, True)


def test_a_value_that_contains_itself_is_truncated() -> None:
    loop: list[Any] = []
    loop.extend([loop, loop, loop])
    copied, cut = plain(loop, 1_000)
    assert cut
    assert json.dumps(copied)


def test_deep_nesting_is_left_out() -> None:
    deep: list[Any] = []
    for _ in range(DEPTH + 5):
        deep = [deep]
    copied, cut = plain(deep)
    assert cut
    assert json.dumps(copied).count("[") == DEPTH + 1
