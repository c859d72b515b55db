"""How often tests that draw their cases at random do so: `TEST_ROUNDS=all`, as in CI, or else a quarter of that."""

from __future__ import annotations

import os
from typing import Any

import hypothesis
import pytest

ALL = os.environ.get("TEST_ROUNDS") == "all"
LEAST_EXAMPLES = 5


def seeds(number: int) -> range:
    """Seeds of the rounds of a test, `number` of them when all are run."""
    return range(number if ALL else -(-number // 4))


def reduce_examples(items: list[pytest.Item]) -> None:
    """Leave the tests of properties a quarter of their examples, unless all are run."""
    reduced = set()
    for item in items:
        test = getattr(item, "obj", None)
        test = getattr(test, "__func__", test)
        if ALL or not hypothesis.is_hypothesis_test(test) or test in reduced:
            continue
        reduced.add(test)  # one test function has an item for each of its parameters
        usual: Any = getattr(test, "_hypothesis_internal_use_settings", None) or hypothesis.settings.default
        examples = max(LEAST_EXAMPLES, usual.max_examples // 4)
        setattr(test, "_hypothesis_internal_use_settings", hypothesis.settings(usual, max_examples=examples))  # noqa: B010
