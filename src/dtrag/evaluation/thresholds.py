"""Thresholds chosen together with a fitted confidence, and what decisions by them are worth."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dtrag.core.answers.confidence import Thresholds
from dtrag.core.metrics.calibration import Values

LEAST_ANSWERED = 10
"""Answers that a share of wrong ones needs to mean anything."""
ALLOWED_RISK = 0.1
"""Share of wrong answers that is allowed where the built-in confidence answers fewer questions than that."""
NEVER = 1.01
"""A threshold that no confidence reaches."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """Decisions on judged questions. `abstention`: share of the unanswerable ones that get no answer, 1 without any.

    `answered` and `answered_right` count questions with the decision `answer`.
    """

    abstention: float
    answered: int
    answered_right: int

    @classmethod
    def of(cls, values: Values, labels: Values, abstain: Values, review: Values) -> Decisions:
        """`abstain` and `review` are the thresholds that hold for each value."""
        unanswerable, answers = labels == 0, values >= np.maximum(abstain, review)
        abstention = float((values[unanswerable] < abstain[unanswerable]).mean()) if unanswerable.any() else 1.0
        return cls(abstention, int(answers.sum()), int((answers & (labels == 1)).sum()))

    @property
    def risk(self) -> float:
        """The share of wrong ones among the answers; 0 without any."""
        return 1.0 - self.answered_right / self.answered if self.answered else 0.0

    @property
    def allowed_risk(self) -> float:
        """The share that another confidence may not exceed in the same place."""
        return self.risk if self.answered >= LEAST_ANSWERED else max(self.risk, ALLOWED_RISK)


def choose(values: Values, labels: Values, builtin: Decisions) -> Thresholds:
    """Thresholds with which these values abstain and err no worse than `builtin` on the same questions.

    `abstain` is the lowest with which as large a share of the unanswerable questions gets no answer, plus a standard
    error; `review` the lowest from which on the share of wrong answers (one more assumed, Laplace 1814) is allowed.
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
    wanted = min(number, math.ceil(share * number + math.sqrt(share * (1.0 - share) * number)))
    above = values[values > negatives[wanted - 1]]
    highest = float(negatives[wanted - 1])
    return (highest + float(above.min())) / 2 if len(above) else min(NEVER, highest + 0.01)


def _below(values: Values, least: float) -> float:
    """Between this value and the next lower one."""
    lower = values[values < least]
    return (least + float(lower.max())) / 2 if len(lower) else least
