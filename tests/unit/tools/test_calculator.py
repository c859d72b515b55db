"""The calculator: exact, tolerant of how people write numbers, and never more than arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dtrag.tools.builtin.calculator import EXACT_BITS, LARGEST, CalculationError, calculator, decimals, evaluate

EXACT = [
    ("1 + 2 * 3", 7),
    ("(1 + 2) * 3", 9),
    ("-2 ** 2", -4),
    ("+5 - -5", 10),
    ("7 // 2 + 7 % 2", 4),
    ("-7 // 2", -4),
    (".1 + .2", Fraction(3, 10)),
    ("1 / 3 * 3", 1),
    ("1.5e3", 1500),
    ("2 ** -2", Fraction(1, 4)),
    ("0 ** 0", 1),
    ("1 ** 99999999999", 1),
    ("0 ** 5", 0),
    ("2^10", 1024),
    ("6 × 7 ÷ 2 − 1", 20),
    ("１２ ＋ ３", 15),
    ("1,234,567 + 1", 1_234_568),
    ("(1,000 + 2) * 3", 3_006),
    ("max(1,234)", 234),
    ("min(3, 1, 2) + abs(-4)", 5),
    ("sum(1, 2, 3.5)", Fraction(13, 2)),
    ("sqrt(16 / 25)", Fraction(4, 5)),
    ("round(2.5) + round(-2.5)", 0),
    ("round(2.675, 2)", Fraction(268, 100)),
    ("round(1234, -2)", 1200),
    ("floor(2.7) + ceil(2.1)", 5),
    ("factorial(20)", math.factorial(20)),
    ("log10(1000)", 3),
    ("1e-401", 0),
]


@pytest.mark.parametrize(("expression", "value"), EXACT, ids=[expression for expression, _ in EXACT])
def test_arithmetic_is_exact(expression: str, value: Fraction) -> None:
    assert evaluate(expression) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("sqrt(2)", math.sqrt(2)),
        ("2 ** 0.5", math.sqrt(2)),
        ("exp(1)", math.e),
        ("ln(10)", math.log(10)),
        ("pi * 2", math.tau),
        ("e", math.e),
        ("1.0035 ** 360", 1.0035**360),
        ("1.0000001 ** 1000000000", math.exp(1e9 * math.log1p(1e-7))),
    ],
)
def test_inexact_results_are_as_precise_as_a_double(expression: str, value: float) -> None:
    assert float(evaluate(expression)) == pytest.approx(value, rel=1e-12)


WRONG = [
    ("1 / 0", "division by zero"),
    ("1 % 0", "division by zero"),
    ("0 ** -1", "division by zero"),
    ("sqrt(-1)", "not real"),
    ("(-8) ** (1 / 3)", "not real"),
    ("ln(0)", "no value there"),
    ("exp(1000)", "no value there"),
    ("10 ** 400", "larger than 1.8e308"),
    ("1e400", "larger than 1.8e308"),
    ("9" * 310, "larger than 1.8e308"),
    ("factorial(171)", "from 0 to 170"),
    ("factorial(-1)", "from 0 to 170"),
    ("factorial(1.5)", "from 0 to 170"),
    ("round(1, 301)", "from -300 to 300"),
    ("round(1, 0.5)", "from -300 to 300"),
    ("round(1, 2, 3)", "wrong number of arguments for"),
    ("sum()", "wrong number of arguments for"),
    ("cosh(1)", "there is no function 'cosh'"),
    ("x + 1", "only numbers"),
    ("1 if 2 else 3", "only numbers"),
    ("not 1", "only numbers"),
    ("1, 2", "only numbers"),
    ("max((1,234))", "only numbers"),
    ("2(3)", "only numbers"),
    ("1 +", "not complete"),
    ("1 2", "not complete"),
    ("1 & 2", "not arithmetic"),
    ("'a' * 9", "not arithmetic"),
    ("0x10", "not arithmetic"),
    ("1_000", "not arithmetic"),
    ("", "nothing to calculate"),
    ("  ", "nothing to calculate"),
    ("-" * 51 + "1", "nested deeper"),
    ("1 + " * 300 + "1", "longer than 1,000"),
    ("㌫" * 1000, "too long"),
    (")" * 3, "not complete"),
]


@pytest.mark.parametrize(("expression", "reason"), WRONG, ids=[expression[:20] for expression, _ in WRONG])
def test_mistakes_are_described(expression: str, reason: str) -> None:
    with pytest.raises(CalculationError, match=reason):
        evaluate(expression)


def test_a_long_sum_is_not_nested() -> None:
    assert evaluate("+".join(["1"] * 400)) == 400


def test_fractions_that_grow_are_rounded_to_fifty_digits() -> None:
    value = evaluate("1 / 11 + (1 / 7) ** 900 + (1 / 3) ** 2000")
    assert value.denominator.bit_length() < EXACT_BITS
    assert 0 < abs(value - Fraction(1, 11)) < Fraction(1, 10**50)


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("2 + 2", {"result": 4, "text": "4"}),
        ("0.1 + 0.2", {"result": 0.3, "text": "0.3"}),
        ("1 / 3", {"result": 1 / 3, "text": "0." + "3" * 28}),
        ("1 / 3e25", {"result": 1 / 3e25, "text": "3." + "3" * 27 + "e-26"}),
        ("factorial(41)", {"result": math.factorial(41), "text": str(math.factorial(41))}),
        ("factorial(60)", {"result": float(math.factorial(60)), "text": "8.320987112741390144276341183e+81"}),
    ],
)
async def test_the_tool_gives_a_number_and_its_decimals(expression: str, result: dict[str, Any]) -> None:
    assert await calculator.execute({"expression": expression}) == result


numbers = st.integers(-(10**12), 10**12)


@given(numbers, numbers, st.sampled_from(["+", "-", "*", "//", "%", "/"]))
def test_it_agrees_with_fractions(left: int, right: int, operator: str) -> None:
    operations = {
        "+": lambda: Fraction(left) + right,
        "-": lambda: Fraction(left) - right,
        "*": lambda: Fraction(left) * right,
        "//": lambda: Fraction(left // right),
        "%": lambda: Fraction(left % right),
        "/": lambda: Fraction(left, right),
    }
    expression = f"({left}) {operator} ({right})"
    if right == 0 and operator in ("//", "%", "/"):
        with pytest.raises(CalculationError):
            evaluate(expression)
    else:
        assert evaluate(expression) == operations[operator]()


@given(st.text(max_size=60) | st.text("0123456789.+-*/%()e, maxsqrt", max_size=60))
@example("True")
@example("-None + max(1, False)")
def test_any_text_gives_a_value_or_a_reason(text: str) -> None:
    try:
        value = evaluate(text)
    except CalculationError as error:
        assert str(error)
    else:
        assert abs(value) <= LARGEST
        assert decimals(value)
