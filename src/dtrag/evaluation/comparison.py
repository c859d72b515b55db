"""Two runs over the same questions: what is better, what is worse, and which questions changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dtrag.core.evaluation_run import LOWER_IS_BETTER, NEUTRAL, EvaluationRun, RunRow
from dtrag.core.metrics.bootstrap import Estimate, estimates, paired_differences
from dtrag.core.response import plain
from dtrag.errors import InvalidInput

Verdict = Literal["better", "worse", "no difference"]


@dataclass(frozen=True, slots=True)
class MeasureChange:
    """A measure in both runs, over the questions that both have, and its difference with a paired interval."""

    name: str
    before: float
    now: float
    difference: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """By the interval: "no difference" while it contains 0."""
        if self.low <= 0 <= self.high or self.name in NEUTRAL:
            return "no difference"
        return "better" if (self.difference > 0) is (self.name not in LOWER_IS_BETTER) else "worse"


@dataclass(frozen=True, slots=True)
class RunComparison:
    """A run against another. `changed` are questions of which a measure changed: (question, measure, before, now)."""

    baseline: EvaluationRun
    measures: tuple[MeasureChange, ...]
    questions: int
    unmatched: int
    changed: tuple[tuple[str, str, float, float], ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "baseline": plain(self.baseline.summary()) | {"measures": {}},
            "questions": self.questions,
            "unmatched": self.unmatched,
            "measures": {
                change.name: {
                    "before": round(change.before, 4),
                    "now": round(change.now, 4),
                    "difference": round(change.difference, 4),
                    "low": round(change.low, 4),
                    "high": round(change.high, 4),
                    "verdict": change.verdict,
                }
                for change in self.measures
            },
            "changed": [
                {"question": question, "measure": name, "before": before, "now": now}
                for question, name, before, now in self.changed
            ],
        }


def compare(run: EvaluationRun, baseline: EvaluationRun) -> RunComparison:
    """The run against the baseline, over the questions with the same id and text.

    Raises `InvalidInput` for runs of different kinds, and for runs without a common question.
    """
    if run.kind != baseline.kind:
        raise InvalidInput(f"A run of eval {run.kind} cannot be compared with one of eval {baseline.kind}.")
    before = {(row.id, row.question): row for row in baseline.rows}
    pairs = [(row, before[row.id, row.question]) for row in run.rows if (row.id, row.question) in before]
    if not pairs:
        raise InvalidInput(f"The run of {baseline.dataset} has none of the questions of {run.dataset}.")
    rows, others = [row.ratios for row, _ in pairs], [row.ratios for _, row in pairs]
    now, then, differences = estimates(rows), estimates(others), paired_differences(rows, others)
    changes = tuple(change for name in differences if (change := _change(name, then, now, differences)) is not None)
    changed = tuple(
        (row.question, name, old, new)
        for row, other in pairs
        for name in differences
        for old, new in ((_value(other, name), _value(row, name)),)
        if old is not None and new is not None and abs(old - new) > 1e-9
    )
    unmatched = len(run.rows) + len(baseline.rows) - 2 * len(pairs)
    return RunComparison(baseline, changes, len(pairs), unmatched, changed)


def _change(
    name: str, then: Mapping[str, Estimate], now: Mapping[str, Estimate], differences: Mapping[str, Estimate]
) -> MeasureChange | None:
    before, after, difference = then[name].value, now[name].value, differences[name]
    if before is None or after is None or difference.value is None or difference.interval is None:
        return None
    return MeasureChange(name, before, after, difference.value, *difference.interval)


def _value(row: RunRow, name: str) -> float | None:
    numerator, denominator = row.ratios.get(name, (0.0, 0.0))
    return numerator / denominator if denominator else None
