"""Bounds of a proportion from counts: Clopper & Pearson 1934, one-sided."""

from __future__ import annotations

import math
from functools import lru_cache

LEVEL = 0.95
_STEPS = 60
"""Bisections: the bounds are exact to about 1e-12."""
_TERMS = 10_000
"""Maximum of terms of the continued fraction; it needs about the square root of the trials."""
_TINY = 1e-300


@lru_cache(maxsize=4096)
def clopper_pearson(successes: int, trials: int, level: float = LEVEL) -> tuple[float, float]:
    """Exact lower and upper bound of a proportion, each one-sided at `level`; (0, 1) without trials.

    The lower bound is the proportion at which as many successes or more have a probability of 1 - `level`, the upper
    bound that at which as many or fewer have it. Raises `ValueError` for impossible counts.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes of {trials} trials are impossible.")
    if not 0.0 < level < 1.0:
        raise ValueError(f"The level is between 0 and 1, not {level}.")
    failures = trials - successes
    lower = 0.0 if successes == 0 else _quantile(1.0 - level, successes, failures + 1)
    upper = 1.0 if failures == 0 else _quantile(level, successes + 1, failures)
    return lower, upper


def _quantile(probability: float, a: int, b: int) -> float:
    """The quantile of the beta distribution, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _incomplete_beta(middle, a, b) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _incomplete_beta(x: float, a: int, b: int) -> float:
    """The regularised incomplete beta function I_x(a, b) for x in (0, 1)."""
    if x > (a + 1) / (a + b + 2):  # the continued fraction converges fast on the other side only
        return 1.0 - _incomplete_beta(1.0 - x, b, a)
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(logarithm) / (a * _continued_fraction(x, a, b))


def _continued_fraction(x: float, a: int, b: int) -> float:
    """The denominator of the continued fraction of I_x(a, b), by the modified method of Lentz (1976)."""
    fraction, c, d = 1.0, 1.0, 0.0
    for term in range(1, _TERMS):
        m = term // 2
        if term % 2:
            numerator = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            numerator = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1.0 / _not_zero(1.0 + numerator * d)
        c = _not_zero(1.0 + numerator / c)
        fraction *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return fraction


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
