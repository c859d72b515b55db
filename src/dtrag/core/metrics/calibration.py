"""Measures of a confidence: discrimination (AUROC), calibration error, and selective risk.

`values` are confidences in [0, 1], `labels` 1 where the passages answer and 0 where they do not; parallel arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
BINS = 15
"""Equal-width bins of the calibration error; the usual number since Guo et al. 2017."""


def auroc(values: Values, labels: Values) -> float:
    """The probability that a positive has a higher value than a negative, ties counting half; nan without both.

    Mann & Whitney 1947: the rank sum of the positives; equal values share the mean of their ranks.
    """
    right = float(labels.sum())
    wrong = len(labels) - right
    if not right or not wrong:
        return float("nan")
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (last - (counts - 1) / 2)[place]
    return float((ranks[labels == 1].sum() - right * (right + 1) / 2) / (right * wrong))


def auroc_within(values: Values, labels: Values, groups: Values) -> float:
    """`auroc` over pairs of a positive and a negative of the same group; nan without such a pair.

    For cross-validated values: each fold has its own model, and values of different models are not comparable.
    """
    concordant = pairs = 0.0
    for group in np.unique(groups):
        inside = groups == group
        right = float(labels[inside].sum())
        number = right * (float(inside.sum()) - right)
        if number:
            concordant += number * auroc(values[inside], labels[inside])
            pairs += number
    return concordant / pairs if pairs else float("nan")


def risk_curve(values: Values, labels: Values) -> tuple[Values, Values]:
    """(coverage, precision) at every distinct threshold, from the highest confidence down.

    Equal values are answered together or not at all: any order among them would be arbitrary.
    """
    order = np.argsort(-values, kind="stable")
    falling, right = values[order], np.cumsum(labels[order])
    ends = np.append(np.nonzero(np.diff(falling))[0], len(falling) - 1) if len(falling) else np.empty(0, int)
    return (ends + 1) / max(1, len(falling)), right[ends] / (ends + 1)


def coverage_at(precision: float, values: Values, labels: Values) -> float:
    """The largest share of questions that can be answered with at least this precision."""
    coverage, reached = risk_curve(values, labels)
    return float(max(coverage[reached >= precision], default=0.0))


def calibration_error(values: Values, labels: Values, bins: int = BINS) -> float:
    """Expected calibration error: the mean gap between confidence and frequency, bins weighted by their size.

    Naeini et al. 2015. On small samples it does not reach 0; a perfect confidence has .01 to .02 on a thousand.
    """
    if not len(values):
        return float("nan")
    place = np.minimum((values * bins).astype(int), bins - 1)
    gaps = [
        abs(values[place == number].mean() - labels[place == number].mean()) * (place == number).mean()
        for number in np.unique(place)
    ]
    return float(sum(gaps))


def log_loss(values: Values, labels: Values) -> float:
    """Mean negative log-likelihood of the labels; 0 is best, .69 is chance."""
    clipped = np.clip(values, 1e-6, 1 - 1e-6)
    return float(-np.mean(labels * np.log(clipped) + (1 - labels) * np.log(1 - clipped)))


def sigmoid(logits: Values) -> Values:
    """1 / (1 + e^-x)."""
    clipped: Values = 1.0 / (1.0 + np.exp(-np.clip(logits, -30.0, 30.0)))
    return clipped


def logistic(x: Values, labels: Values, weights: Values, prior: Values | None = None, ridge: float = 0.01) -> Values:
    """Intercept and coefficients of a logistic regression with a ridge penalty towards `prior` (0); Newton's method.

    `x` has one row per label; `weights` are sample weights.
    """
    design = np.c_[np.ones(len(x)), x]
    start = np.zeros(design.shape[1]) if prior is None else prior.astype(float)
    pull = np.full(design.shape[1], ridge)

    def loss(beta: Values) -> float:
        logits = design @ beta
        return float(weights @ (np.logaddexp(0.0, logits) - labels * logits) + pull @ (beta - start) ** 2 / 2)

    beta = start.copy()
    for _ in range(100):
        p = sigmoid(design @ beta)
        slope = design.T @ (weights * (labels - p)) - pull * (beta - start)
        bend = (design * (weights * p * (1 - p))[:, None]).T @ design + np.diag(pull + 1e-9)
        step = np.linalg.solve(bend, slope)
        while loss(beta + step) > loss(beta) and np.abs(step).max() > 1e-8:
            step /= 2  # far from the minimum a full Newton step may increase the loss
        beta += step
        if np.abs(step).max() < 1e-8:
            break
    return beta
