"""`each`: a case that fails fails the test, and hides no other."""

from __future__ import annotations

import pytest

from tests.cases import each


def test_all_cases_are_run_and_those_that_fail_are_named() -> None:
    seen = []

    @each("number", [1, 2, 3])
    def odd(number: int) -> None:
        seen.append(number)
        assert number % 2

    with pytest.raises(BaseExceptionGroup, match="1 of 3 cases fail") as caught:
        odd()
    assert seen == [1, 2, 3]
    [error] = caught.value.exceptions
    assert error.__notes__ == ["the case: number=2"]


async def test_stacked_they_are_all_combinations() -> None:
    seen = []

    @each("a, b", [(1, 2), (3, 4)])
    @each("c", "xy")
    async def test(fixture: str, a: int, b: int, c: str) -> None:
        seen.append((fixture, a, b, c))

    await test(fixture="f")
    assert seen == [("f", 1, 2, "x"), ("f", 1, 2, "y"), ("f", 3, 4, "x"), ("f", 3, 4, "y")]


def test_a_wrong_name_or_an_empty_table_is_refused() -> None:
    with pytest.raises(AssertionError, match="does not take wrong"):

        @each("wrong", [1])
        def test(right: int) -> None: ...

    with pytest.raises(AssertionError, match="no cases"):
        each("right", [])
