"""Confidence intervals: of measures by bootstrap, of a proportion exactly (Clopper & Pearson 1934).

For the bootstrap the questions are drawn again, with replacement, and the measure is repeated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

SAMPLES = 2000
"""Number of resamples: the bounds then vary by about a hundredth of the interval."""
LEVEL = 0.95
SEED = 0
_STEPS = 60
"""Bisections: the bounds are exact to about 1e-12."""
_TERMS = 10_000
"""Maximum of terms of the continued fraction; it needs about the square root of the trials."""
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Estimate:
    """A measure and its 95 % interval; both are None when no question counts for the measure."""

    value: float | None
    interval: tuple[float, float] | None


Ratio = tuple[float, float]
"""What one question adds to the numerator and to the denominator of a measure."""


def estimates(rows: Sequence[Mapping[str, Ratio]]) -> dict[str, Estimate]:
    """For each measure the sum of its numerators over the sum of its denominators, with the percentile interval.

    A row is one question; all rows have the same measures. A mean over all questions has denominators of 1, a share of
    some questions has 0 for the others. All measures use the same resamples, and the result depends on the rows only.
    Efron & Tibshirani 1993, chapter 13.
    """
    if not rows:
        return {}
    names = list(rows[0])
    values, sampled = _resampled(_table(rows, names))
    return {name: _estimate(values[column], sampled[:, column]) for column, name in enumerate(names)}


def paired_differences(
    rows: Sequence[Mapping[str, Ratio]], baseline: Sequence[Mapping[str, Ratio]]
) -> dict[str, Estimate]:
    """For each measure that both have, its value minus that of the baseline, with the percentile interval.

    `rows[i]` and `baseline[i]` are the same question: each resample draws the same questions for both, so that what is
    hard about a question cancels out. An interval without 0 is a difference beyond the choice of questions.
    """
    if len(rows) != len(baseline):
        raise ValueError("a paired comparison needs the same questions on both sides")
    if not rows:
        return {}
    names = [name for name in rows[0] if name in baseline[0]]
    values, sampled = _resampled(_table(rows, names))
    other_values, other_sampled = _resampled(_table(baseline, names))
    differences, spread = values - other_values, sampled - other_sampled
    return {name: _estimate(differences[column], spread[:, column]) for column, name in enumerate(names)}


def _table(rows: Sequence[Mapping[str, Ratio]], names: Sequence[str]) -> np.ndarray:
    """Shape (rows, measures, 2)."""
    return np.array([[row.get(name, (0.0, 0.0)) for name in names] for row in rows], dtype=np.float64)


def _resampled(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The measures over all rows, and over each resample; tables of equal length are resampled alike."""
    numerators, denominators = table[:, :, 0], table[:, :, 1]
    rng = np.random.default_rng(SEED)
    sampled = np.empty((SAMPLES, table.shape[1]))
    for sample in range(SAMPLES):
        weights = np.bincount(rng.integers(0, len(table), len(table)), minlength=len(table))
        sampled[sample] = _ratios(weights @ numerators, weights @ denominators)
    return _ratios(numerators.sum(axis=0), denominators.sum(axis=0)), sampled


def _ratios(numerators: np.ndarray, denominators: np.ndarray) -> np.ndarray:
    """The ratios; nan where the denominator is 0."""
    ratios = np.full(len(numerators), np.nan)
    np.divide(numerators, denominators, out=ratios, where=denominators > 0)
    return ratios


def _estimate(value: float, sampled: np.ndarray) -> Estimate:
    if np.isnan(value):
        return Estimate(None, None)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(sampled[~np.isnan(sampled)], [tail, 1 - tail])
    return Estimate(float(value), (float(low), float(high)))


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
