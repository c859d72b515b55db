"""The calculator: exact rational arithmetic where possible, a few milliseconds at most, and nothing but arithmetic.

An expression is checked twice before anything is computed: every token must be a number, a known name, an operator or
a bracket, and every node of its syntax tree of a kind listed here. No value may exceed the largest double (1.8e308);
that is checked before a power or a factorial is computed, not after.
"""

from __future__ import annotations

import ast
import math
import re
import sys
import unicodedata
from collections.abc import Callable
from decimal import Context, Decimal, DecimalException
from fractions import Fraction
from typing import Annotated

from dtrag.tools.schema import tool_of

CHARACTERS = 1_000
DEPTH = 50
"""Nested brackets and signs; Python's own parser gives up at 200 brackets."""
LARGEST = Fraction(sys.float_info.max)
EXACT_BITS = 4_096
"""Fractions are kept exact up to this size, some 1,200 digits; beyond it they are rounded to 50 digits."""
LARGEST_FACTORIAL = 170
"""171! is more than a double holds."""
ROUNDING = Context(prec=50, Emax=400, Emin=-800, capitals=0)
DISPLAY = Context(prec=28, Emax=400, Emin=-800, capitals=0)

_SPELLINGS = str.maketrans({"×": "*", "÷": "/", "−": "-", "–": "-", "^": "**"})
_NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?(?![\w.])"
_TOKENS = re.compile(rf"(?:\s|{_NUMBER}|[A-Za-z][A-Za-z0-9]*|\*\*|//|[-+*/%(),])*+")
_THOUSANDS = re.compile(r"(?<![\d.])\d{1,3}(?:,\d{3})+(?![\d,])")


class CalculationError(ValueError):
    """An expression that cannot be evaluated; the message says why."""


async def calculate(
    expression: Annotated[
        str,
        "Numbers with + - * / // % ** and brackets; abs ceil exp factorial floor ln log10 max min round sqrt sum; "
        "pi and e. Commas may group thousands: 1,234 * 2",
        {"minLength": 1, "maxLength": CHARACTERS},
    ],
) -> dict[str, int | float | str]:
    """Evaluates an arithmetic expression. Gives `result` as a number, and `text` with up to 28 digits."""
    value = evaluate(expression)
    if value.denominator == 1 and abs(value) < 10**ROUNDING.prec:
        return {"result": value.numerator, "text": str(value.numerator)}
    return {"result": float(value), "text": decimals(value)}


calculator = tool_of(calculate, name="calculator", timeout=5.0)


def evaluate(expression: str) -> Fraction:
    """The value of the expression. Raises `CalculationError`."""
    text = _plain(expression)
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise CalculationError("the expression is not complete, or not arithmetic") from error
    return _Calculation(text).value(tree.body, DEPTH)


def decimals(value: Fraction) -> str:
    """The value in decimals: all of them where there are at most 28, rounded otherwise."""
    decimal = DISPLAY.divide(Decimal(value.numerator), Decimal(value.denominator))
    return format(decimal.normalize(DISPLAY), "f" if -20 <= decimal.adjusted() <= 27 else "e")


def _plain(expression: str) -> str:
    """The expression in ASCII, on one line. Raises `CalculationError` for anything but tokens of arithmetic."""
    if len(expression) > CHARACTERS:
        raise CalculationError(f"the expression is longer than {CHARACTERS:,} characters")
    text = " ".join(unicodedata.normalize("NFKC", expression).translate(_SPELLINGS).split())
    if len(text) > 2 * CHARACTERS or not text:
        raise CalculationError("there is nothing to calculate" if not text else "the expression is too long")
    text = _ungrouped(text)
    end = _TOKENS.match(text)
    if end is None or end.end() < len(text):
        at = end.end() if end else 0
        raise CalculationError(f"{text[at : at + 10]!r} is not arithmetic")
    return text


def _ungrouped(text: str) -> str:
    """The text without commas that group thousands. Between the brackets of a function commas separate arguments."""
    calls = []
    depth: list[bool] = []
    for position, character in enumerate(text):
        if character == "(":
            depth.append(text[:position].rstrip()[-1:].isalnum())
        elif character == ")" and depth:
            depth.pop()
        calls.append(any(depth))
    return _THOUSANDS.sub(lambda match: match[0] if calls[match.start()] else match[0].replace(",", ""), text)


class _Calculation:
    """Walks the syntax tree of one expression."""

    def __init__(self, text: str) -> None:
        self._text = text

    def value(self, node: ast.expr, depth: int) -> Fraction:
        """The value of a node. Raises `CalculationError` for a node that is not arithmetic."""
        if depth == 0:
            raise CalculationError(f"brackets and signs are nested deeper than {DEPTH}")
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):  # True, False and None are none
            return _number(self._text[node.col_offset : node.end_col_offset])
        if isinstance(node, ast.Name) and node.id in _CONSTANTS:
            return _CONSTANTS[node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)):
            operand = self.value(node.operand, depth - 1)
            return -operand if isinstance(node.op, ast.USub) else operand
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return self._chain(node, depth)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            arguments = [self.value(argument, depth - 1) for argument in node.args]
            return _call(node.func.id, arguments)
        raise CalculationError("only numbers, operators, brackets and the functions of the calculator are arithmetic")

    def _chain(self, node: ast.BinOp, depth: int) -> Fraction:
        """A sum of many parts leans to the left, as deep as it is long: that side is walked without recursion."""
        pending: list[ast.BinOp] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp) and type(left.op) in _OPERATORS:
            pending.append(left)
            left = left.left
        value = self.value(left, depth - 1)
        for operation in reversed(pending):
            value = _bounded(Fraction(_OPERATORS[type(operation.op)](value, self.value(operation.right, depth - 1))))
        return value


def _number(literal: str) -> Fraction:
    decimal = Decimal(literal)
    if decimal.adjusted() > 308:
        raise _too_large()
    if decimal.adjusted() < -400:
        return Fraction(0)
    return _bounded(Fraction(decimal))


def _too_large() -> CalculationError:
    return CalculationError("a value is larger than 1.8e308")


def _bounded(value: Fraction) -> Fraction:
    """The value, rounded when its fraction has become long. Raises `CalculationError` when it is too large."""
    if abs(value) > LARGEST:
        raise _too_large()
    if value.denominator.bit_length() <= EXACT_BITS:
        return value
    return Fraction(_decimal(value))


def _decimal(value: Fraction) -> Decimal:
    return ROUNDING.divide(Decimal(value.numerator), Decimal(value.denominator))


def _rounded(compute: Callable[[Decimal], Decimal], value: Fraction) -> Fraction:
    """The result of a function of decimals, to 50 digits."""
    try:
        return _bounded(Fraction(compute(_decimal(value))))
    except (DecimalException, OverflowError, ValueError) as error:
        raise CalculationError("a function has no value there, or one larger than 1.8e308") from error


def _divide(left: Fraction, right: Fraction) -> Fraction:
    return left / _nonzero(right)


def _nonzero(value: Fraction) -> Fraction:
    if value == 0:
        raise CalculationError("division by zero")
    return value


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    """Exact while the result is small enough, to 50 digits beyond that. Raises `CalculationError`."""
    if base == 0 and exponent < 0:
        raise CalculationError("division by zero")
    if base < 0 and exponent.denominator != 1:
        raise CalculationError("a root of a negative number is not real")
    if base in (0, 1):
        return Fraction(int(base == 1 or exponent == 0))
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    if exponent.denominator == 1 and size * abs(exponent) <= EXACT_BITS:
        return _bounded(base**exponent.numerator)
    return _rounded(lambda decimal: ROUNDING.power(decimal, _decimal(exponent)), base)


def _root(value: Fraction) -> Fraction:
    if value < 0:
        raise CalculationError("a root of a negative number is not real")
    top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if (top * top, bottom * bottom) == (value.numerator, value.denominator):
        return Fraction(top, bottom)
    return _rounded(ROUNDING.sqrt, value)


def _factorial(value: Fraction) -> Fraction:
    if value.denominator != 1 or not 0 <= value <= LARGEST_FACTORIAL:
        raise CalculationError(f"factorial takes whole numbers from 0 to {LARGEST_FACTORIAL}")
    return Fraction(math.factorial(value.numerator))


def _round(value: Fraction, digits: Fraction = Fraction(0)) -> Fraction:
    """Half away from zero, not half to even."""
    if digits.denominator != 1 or abs(digits) > 300:
        raise CalculationError("round takes a whole number of digits from -300 to 300")
    factor = Fraction(10) ** digits.numerator
    whole = math.floor(abs(value) * factor + Fraction(1, 2)) / factor
    return whole if value >= 0 else -whole


def _call(name: str, arguments: list[Fraction]) -> Fraction:
    if name not in _FUNCTIONS:
        raise CalculationError(f"there is no function {name[:20]!r}; there are: {', '.join(sorted(_FUNCTIONS))}")
    least, most, function = _FUNCTIONS[name]
    if not least <= len(arguments) <= most:
        raise CalculationError(f"wrong number of arguments for {name}")
    return _bounded(Fraction(function(*arguments)))


_OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction | int]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: _divide,
    ast.FloorDiv: lambda left, right: left // _nonzero(right),
    ast.Mod: lambda left, right: left % _nonzero(right),
    ast.Pow: _power,
}
_FUNCTIONS: dict[str, tuple[int, int, Callable[..., Fraction | int]]] = {
    "abs": (1, 1, abs),
    "ceil": (1, 1, math.ceil),
    "exp": (1, 1, lambda value: _rounded(ROUNDING.exp, value)),
    "factorial": (1, 1, _factorial),
    "floor": (1, 1, math.floor),
    "ln": (1, 1, lambda value: _rounded(ROUNDING.ln, value)),
    "log10": (1, 1, lambda value: _rounded(ROUNDING.log10, value)),
    "max": (1, CHARACTERS, lambda *values: max(values)),
    "min": (1, CHARACTERS, lambda *values: min(values)),
    "round": (1, 2, _round),
    "sqrt": (1, 1, _root),
    "sum": (1, CHARACTERS, lambda *values: sum(values, Fraction(0))),
}
_CONSTANTS = {
    "pi": Fraction("3.14159265358979323846264338327950288419716939937511"),
    "e": Fraction("2.71828182845904523536028747135266249775724709369996"),
}
