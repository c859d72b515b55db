"""One run of an evaluation: when, with what, and what each question added to each measure."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import numpy as np

from dtrag.core.metrics.calibration import risk_curve
from dtrag.core.metrics.intervals import Estimate, Ratio, estimates
from dtrag.core.response import Moment, response
from dtrag.errors import InvalidInput

Kind = Literal["retrieval", "answers", "quality", "cases"]
ANSWERS = ("answer", "review")
"""Decisions of answered questions."""
POINTS = 50
"""Points of a curve that are kept, at equal distances."""
KINDS: tuple[str, ...] = get_args(Kind)
FORMAT = 1
LOWER_IS_BETTER = frozenset(
    {"answer.wrong", "review.wrong", "abstain.wrong", "unanswerable.marked", "unanswerable.answered"}
    | {"declined_wrongly", "refused_wrongly", "answered_unanswerable", "degraded", "unfinished"}
    | {"repeat misled", "other misled", "other shown"}
)
"""Measures of which less is better."""
NEUTRAL = frozenset({"sentences", "answer.share", "review.share", "abstain.share", "repeat shown"})
"""Measures of which neither more nor less is better."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A question of a run."""

    __pydantic_config__ = response("RunRowShape")

    id: str
    """The id of the question."""
    question: str
    """The question."""
    ratios: Mapping[str, Ratio]
    """What it adds to numerator and denominator of each measure."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Answer, decision and reasons."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure with its 95 % interval."""

    __pydantic_config__ = response("MeasureShape")

    value: float
    """Its value."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in the list."""

    __pydantic_config__ = response("RunLine")

    run_id: uuid.UUID
    """Its id."""
    created_at: Moment
    """When it ended, ISO 8601 in UTC."""
    kind: str
    """retrieval, answers or quality."""
    dataset: str
    """The name of the set."""
    version: str
    """The version of dtrag."""
    settings: Mapping[str, str]
    """What it ran with: models, judge, mode."""
    questions: int
    """Number of questions."""
    measures: Mapping[str, Measure | None]
    """The measures; null for one that the set does not judge."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What would happen if only answers of at least this confidence were given."""

    __pydantic_config__ = response()

    confidence: float
    """The least confidence."""
    coverage: float
    """The share of the judged questions that are answered."""
    risk: float
    """The share of these answers that are not right."""


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """The curve, from the highest confidence down to the last question that is answered.

    `area` is the mean risk over the answered questions, each with the risk at its own confidence; None without answers.
    """

    points: tuple[CurvePoint, ...]
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
    return RiskCoverage(tuple(CurvePoint(*map(float, point)) for point in points), round(area, 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport(RunSummary):
    """A run with its questions."""

    __pydantic_config__ = response("RunShape")

    format: int = FORMAT
    """Version of this form; `dtrag eval` reads it with --against."""
    risk_coverage: tuple[CurvePoint, ...]
    """Points from the highest confidence down; empty where no right answer is known."""
    rows: tuple[RunRow, ...]
    """The questions."""


@dataclass(frozen=True, slots=True)
class EvaluationRun:
    """A run over a set. `settings` are those that change results: models, judge, mode, number of questions."""

    kind: Kind
    dataset: str
    version: str
    settings: Mapping[str, str]
    rows: tuple[RunRow, ...]
    run_id: uuid.UUID = field(default_factory=uuid.uuid4)
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def estimates(self) -> dict[str, Estimate]:
        """Each measure with its interval."""
        return estimates([row.ratios for row in self.rows])

    def summary(self) -> RunSummary:
        """Everything but the rows, with the measures. Draws the resamples, which takes time."""
        return RunSummary(**self._summary())

    def report(self) -> RunReport:
        """The summary with the rows; `from_dict` reads its JSON."""
        return RunReport(**self._summary(), risk_coverage=risk_coverage(self.rows).points, rows=self.rows)

    def _summary(self) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "created_at": self.created_at,
            "kind": self.kind,
            "dataset": self.dataset,
            "version": self.version,
            "settings": self.settings,
            "questions": len(self.rows),
            "measures": {name: shown(estimate) for name, estimate in self.estimates().items()},
        }

    @classmethod
    def from_dict(cls, stored: Any, where: str = "the run") -> EvaluationRun:
        """The run of a JSON object. Raises `InvalidInput` that names what is wrong."""
        if not isinstance(stored, dict) or stored.get("format") != FORMAT or stored.get("kind") not in KINDS:
            raise InvalidInput(
                f"{where} is no run of an evaluation: save one with dtrag eval answers DIR --save RUN.json"
            )
        try:
            rows = tuple(
                RunRow(str(row["id"]), str(row["question"]), _ratios(row["ratios"]), dict(row.get("details", {})))
                for row in stored["rows"]
            )
            return cls(
                kind=stored["kind"],
                dataset=str(stored["dataset"]),
                version=str(stored["version"]),
                settings={str(name): str(value) for name, value in stored["settings"].items()},
                rows=rows,
                run_id=uuid.UUID(stored["run_id"]),
                created_at=datetime.fromisoformat(stored["created_at"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(
                f"{where} is damaged: {type(error).__name__} {str(error)[:100]}. Save it again."
            ) from error


def _ratios(stored: Mapping[str, Sequence[float]]) -> dict[str, Ratio]:
    return {str(name): (float(pair[0]), float(pair[1])) for name, pair in stored.items()}


def shown(estimate: Estimate) -> Measure | None:
    """An estimate for JSON, four digits."""
    if estimate.value is None or estimate.interval is None:
        return None
    low, high = estimate.interval
    return Measure(round(estimate.value, 4), round(low, 4), round(high, 4))
