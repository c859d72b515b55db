"""One run of an evaluation: when, with what, and what each question added to each measure."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from dtrag.core.metrics.bootstrap import Estimate, Ratio, estimates
from dtrag.errors import InvalidInput

Kind = Literal["retrieval", "answers", "quality", "cases"]
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
    """A question. `ratios`: what it adds to numerator and denominator of each measure; `details` are for people."""

    id: str
    question: str
    ratios: Mapping[str, Ratio]
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run without its rows. `measures`: `{"value", "low", "high"}` each, None where nothing counts."""

    run_id: uuid.UUID
    created_at: datetime
    kind: str
    dataset: str
    version: str
    settings: Mapping[str, str]
    questions: int
    measures: Mapping[str, Mapping[str, float] | None]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "run_id": str(self.run_id),
            "created_at": self.created_at.astimezone(UTC).isoformat(),
            "kind": self.kind,
            "dataset": self.dataset,
            "version": self.version,
            "settings": dict(self.settings),
            "questions": self.questions,
            "measures": dict(self.measures),
        }


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
        return RunSummary(
            run_id=self.run_id,
            created_at=self.created_at,
            kind=self.kind,
            dataset=self.dataset,
            version=self.version,
            settings=self.settings,
            questions=len(self.rows),
            measures={name: shown(estimate) for name, estimate in self.estimates().items()},
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON; `from_dict` reads it."""
        rows = [
            {"id": row.id, "question": row.question, "ratios": dict(row.ratios), "details": dict(row.details)}
            for row in self.rows
        ]
        return {"format": FORMAT, **self.summary().as_dict(), "rows": rows}

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


def shown(estimate: Estimate) -> dict[str, float] | None:
    """An estimate for JSON, four digits."""
    if estimate.value is None or estimate.interval is None:
        return None
    low, high = estimate.interval
    return {"value": round(estimate.value, 4), "low": round(low, 4), "high": round(high, 4)}
