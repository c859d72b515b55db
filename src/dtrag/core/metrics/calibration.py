"""How much a confidence is worth: does it tell right from wrong, does it mean what it says, what does abstaining buy.

`values` are confidences in [0, 1], `labels` 1 where the passages do answer and 0 where they do not; parallel arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
BINS = 15
"""Of the calibration error, each as wide as the others: what papers use since Guo et al. 2017."""


def auroc(values: Values, labels: Values) -> float:
    """The chance that a right one has more confidence than a wrong one, a tie counting half; nan without both.

    Mann & Whitney 1947: ranks of the right ones, equal values sharing the mean of their ranks.
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
    """`auroc` over the pairs of a right and a wrong one of the same group; nan without such a pair.

    For values that were predicted by another model in each fold, whose sizes cannot be compared across folds.
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
    """(coverage, precision) for every threshold there is, from the highest confidence down.

    Equal values are answered together or not at all: an order among them would make precision up.
    """
    order = np.argsort(-values, kind="stable")
    falling, right = values[order], np.cumsum(labels[order])
    ends = np.append(np.nonzero(np.diff(falling))[0], len(falling) - 1) if len(falling) else np.empty(0, int)
    return (ends + 1) / max(1, len(falling)), right[ends] / (ends + 1)


def coverage_at(precision: float, values: Values, labels: Values) -> float:
    """The largest share of the questions that can be answered so that this part of the answers is right."""
    coverage, reached = risk_curve(values, labels)
    return float(max(coverage[reached >= precision], default=0.0))


def calibration_error(values: Values, labels: Values, bins: int = BINS) -> float:
    """Expected calibration error: the mean gap between confidence and frequency, bins weighed by their numbers.

    Naeini et al. 2015. A perfect confidence does not reach 0 on few questions, but .01 to .02 on a thousand.
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
    """Mean of -ln of the probability given to what was the case; 0 is best, .69 is a coin."""
    clipped = np.clip(values, 1e-6, 1 - 1e-6)
    return float(-np.mean(labels * np.log(clipped) + (1 - labels) * np.log(1 - clipped)))


def sigmoid(logits: Values) -> Values:
    """1 / (1 + e^-x)."""
    clipped: Values = 1.0 / (1.0 + np.exp(-np.clip(logits, -30.0, 30.0)))
    return clipped


def logistic(x: Values, labels: Values, weights: Values, prior: Values | None = None, ridge: float = 0.01) -> Values:
    """Intercept and coefficients that make the labels likeliest, drawn towards `prior` (0) by `ridge`; Newton's method.

    `x` has a row for each label, `weights` say how much each counts.
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
            step /= 2  # far from the minimum a whole step of Newton's may lead further away
        beta += step
        if np.abs(step).max() < 1e-8:
            break
    return beta
