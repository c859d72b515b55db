"""The gate over the sample documents: no sample question is answered worse than in the committed baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dtrag.core.evaluation_run import EvaluationRun, RunRow
from dtrag.core.metrics.intervals import Ratio

CHECKED = ("sufficient", "first_right", "unanswerable.declined", "accepted", "contextual_recall")
"""Measures of which each must be 1 for a question to pass, where it counts for the question."""


def merged(answers: Sequence[RunRow], quality: Sequence[RunRow]) -> tuple[RunRow, ...]:
    """The rows of `eval answers` and `eval quality` over the same questions, each question once."""
    return tuple(
        RunRow(row.id, row.question, {**row.ratios, **other.ratios}, {**row.details, **other.details})
        for row, other in zip(answers, quality, strict=True)
    )


def passes(ratios: Mapping[str, Ratio]) -> bool:
    """Whether a question is answered right, or rightly declined."""
    return all(ratios[name][0] >= ratios[name][1] for name in CHECKED if name in ratios)


def regressions(run: EvaluationRun, baseline: EvaluationRun) -> tuple[list[str], list[str]]:
    """Questions that pass in the baseline and fail now, or are gone; and those that pass now and did not."""
    now = {row.question: row for row in run.rows}
    worse, better = [], []
    for row in baseline.rows:
        current = now.pop(row.question, None)
        if current is None:
            worse.append(f"{row.question} is not asked any more")
        elif passes(row.ratios) and not passes(current.ratios):
            worse.append(f"{row.question} {_failed(current)}")
        elif passes(current.ratios) and not passes(row.ratios):
            better.append(row.question)
    worse += [f"{row.question} is new and fails {_failed(row)}" for row in now.values() if not passes(row.ratios)]
    return worse, better


def _failed(row: RunRow) -> str:
    failed = [name for name in CHECKED if name in row.ratios and row.ratios[name][0] < row.ratios[name][1]]
    return f"({', '.join(failed)}); the answer is now: {row.details.get('answer', '')}"
