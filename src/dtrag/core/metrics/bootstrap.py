"""Confidence intervals by bootstrap: the questions are drawn again, with replacement, and the measure is repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

SAMPLES = 2000
"""Number of resamples: the bounds then vary by about a hundredth of the interval."""
LEVEL = 0.95
SEED = 0


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
