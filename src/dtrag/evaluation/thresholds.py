"""Chooses thresholds for a fitted confidence, and measures the decisions by them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dtrag.core.answers.confidence import Thresholds
from dtrag.core.metrics.calibration import Values

LEAST_ANSWERED = 10
"""Minimum number of answers for a meaningful share of wrong ones."""
ALLOWED_RISK = 0.1
"""Allowed share of wrong answers if the shipped confidence gives fewer than `LEAST_ANSWERED` answers."""
NEVER = 1.01
"""A threshold above every confidence."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """Decisions on judged questions. `abstention`: share of unanswerable ones without an answer; 1 if there are none.

    `answered` and `answered_right` count questions with the decision `answer`.
    """

    abstention: float
    answered: int
    answered_right: int

    @classmethod
    def of(cls, values: Values, labels: Values, abstain: Values, review: Values) -> Decisions:
        """Decisions by the thresholds `abstain` and `review` of each value."""
        unanswerable, answers = labels == 0, values >= np.maximum(abstain, review)
        abstention = float((values[unanswerable] < abstain[unanswerable]).mean()) if unanswerable.any() else 1.0
        return cls(abstention, int(answers.sum()), int((answers & (labels == 1)).sum()))

    @property
    def risk(self) -> float:
        """The share of wrong answers; 0 without answers."""
        return 1.0 - self.answered_right / self.answered if self.answered else 0.0

    @property
    def allowed_risk(self) -> float:
        """The maximum risk of a confidence that replaces this one."""
        return self.risk if self.answered >= LEAST_ANSWERED else max(self.risk, ALLOWED_RISK)


def choose(values: Values, labels: Values, builtin: Decisions) -> Thresholds:
    """Thresholds with which these values abstain and err no worse than `builtin` on the same questions.

    `abstain` is the lowest threshold with the same abstention on unanswerable questions, plus one standard error;
    `review` the lowest with an allowed share of wrong answers, assuming one more wrong answer (Laplace 1814).
    """
    abstain = _abstain(values, labels, builtin.abstention)
    order = np.argsort(-values, kind="stable")
    falling, right = values[order], np.cumsum(labels[order])
    ends = np.append(np.nonzero(np.diff(falling))[0], len(falling) - 1)
    risks = 1.0 - right[ends] / (ends + 1)
    careful = 1.0 - right[ends] / (ends + 2)
    allowed = ends[(careful <= builtin.allowed_risk) | ((risks <= 0.0) & (ends + 1 >= LEAST_ANSWERED))]
    review = _below(values, float(falling[allowed[-1]])) if len(allowed) else NEVER
    return Thresholds(abstain=round(abstain, 4), review=round(max(abstain, review), 4))


def _abstain(values: Values, labels: Values, share: float) -> float:
    negatives = np.sort(values[labels == 0])
    if not len(negatives) or share <= 0.0:
        return 0.0
    number = len(negatives)
    target = min(number, math.ceil(share * number + math.sqrt(share * (1.0 - share) * number)))
    highest = float(negatives[target - 1])
    above = values[values > highest]
    return (highest + float(above.min())) / 2 if len(above) else min(NEVER, highest + 0.01)


def _below(values: Values, least: float) -> float:
    """The midpoint between this value and the next lower one."""
    lower = values[values < least]
    return (least + float(lower.max())) / 2 if len(lower) else least
