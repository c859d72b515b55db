"""How many questions are answered above each confidence, and how many of these answers are not right.

Risk and coverage as in El-Yaniv & Wiener 2010; the area as in Geifman & El-Yaniv 2017.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dtrag.core.documents import Answer
from dtrag.core.evaluation_run import RunRow
from dtrag.core.metrics.calibration import risk_curve

POINTS = 50
"""Points of a curve that are kept, at equal distances."""
ANSWERS = ("answer", "review")


def confidence_of(answer: Answer) -> float:
    """The confidence by which answers are ordered: that of the answer where it is known, else that of the documents."""
    return answer.confidence if answer.answer_confidence is None else answer.answer_confidence


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """The curve, from the highest confidence down to the last question that is answered.

    `points` are (confidence, coverage, risk): the share of the judged questions with an answer of at least this
    confidence, and the share of these answers that are not right. `area` is the mean risk over the answered questions,
    each with the risk at its own confidence; None without answers.
    """

    points: tuple[tuple[float, float, float], ...]
    area: float | None


def risk_coverage(rows: Sequence[RunRow]) -> RiskCoverage:
    """The curve of the rows of `dtrag eval answers`, over the questions of which a right answer is known."""
    judged = [
        (str(row.details["decision"]), float(row.details["confidence"]), right)
        for row in rows
        if "confidence" in row.details
        for right, counted in [row.ratios.get(f"{row.details['decision']}.right", (0.0, 0.0))]
        if counted
    ]
    answered = [(confidence, right) for decision, confidence, right in judged if decision in ANSWERS]
    if not answered:
        return RiskCoverage((), None)
    values, labels = (np.array(column, dtype=np.float64) for column in zip(*answered, strict=True))
    shares, precision = risk_curve(values, labels)
    area = float((1 - precision) @ np.diff(shares, prepend=0.0))
    thresholds = np.unique(values)[::-1]
    point_indexes = np.unique(np.linspace(0, len(shares) - 1, min(POINTS, len(shares))).round().astype(int))
    coverage = shares * len(answered) / len(judged)
    points = np.c_[thresholds, coverage, 1 - precision][point_indexes].round(4)
    return RiskCoverage(tuple((float(a), float(b), float(c)) for a, b, c in points), round(area, 4))
