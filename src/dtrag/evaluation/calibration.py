"""Weights of the confidence from a user's own judged questions, and what they are worth on questions not fitted on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from dtrag.core.confidence import Model, shipped, weights_for
from dtrag.core.evidence import SIGNALS
from dtrag.core.risk import Values, auroc, calibration_error, coverage_at, log_loss, logistic, sigmoid
from dtrag.errors import InvalidInput
from dtrag.evaluation.answerability import Case, Judged

FEWEST = 20
"""Questions with which a line can be fitted at all; with fewer, chance decides."""
WHOLE_FROM = 75
"""From here on the weights themselves may move: on the regulation book the shipped ones stay far too careful until
about so many labels."""
FOLDS = 5
PULL = 4.0
"""How strongly moved weights are drawn back to the shipped ones: as much as a few cases each."""
MOST_CHARACTERS = 10_000
FORM = '{"question": "...", "answerable": false}, or {"question": "...", "document": "..."} or "answer": "..."'


def read_questions(path: Path) -> list[Judged]:
    """The judged questions of a JSONL file. Raises `InvalidInput` naming the line that is wrong."""
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read as UTF-8 text: {error}") from error
    judged = [_judged(line, f"{path}, line {number}") for number, line in enumerate(lines, start=1) if line.strip()]
    if len(judged) < FEWEST:
        raise InvalidInput(f"{path} has {len(judged)} questions; at least {FEWEST} are needed, one a line: {FORM}.")
    return judged


def _judged(line: str, where: str) -> Judged:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InvalidInput(f"{where}: this is not JSON. Expected {FORM}.") from error
    if not isinstance(row, dict) or not isinstance(row.get("question"), str) or not row["question"].strip():
        raise InvalidInput(f"{where}: there is no question in it. Expected {FORM}.")
    if len(row["question"]) > MOST_CHARACTERS:
        raise InvalidInput(f"{where}: the question has more than {MOST_CHARACTERS:,} characters.")
    documents, answers = _texts(row, "document", where), _texts(row, "answer", where)
    answerable = row.get("answerable", True if documents or answers else None)
    if not isinstance(answerable, bool):
        raise InvalidInput(f"{where}: say whether the documents answer it: answerable is true or false.")
    if not answerable:
        documents = answers = frozenset()
    return Judged(row["question"], answerable, documents, answers, group=str(row.get("group") or ""))


def _texts(row: Mapping[str, Any], name: str, where: str) -> frozenset[str]:
    given = row.get(name, [])
    listed = given if isinstance(given, list) else [given]
    if not all(isinstance(text, str) and text.strip() for text in listed):
        raise InvalidInput(f"{where}: {name} must be a text, or a list of texts.")
    return frozenset(listed)


@dataclass(frozen=True, slots=True)
class Figures:
    """Worth of a confidence over `cases`: see core/risk.py."""

    auroc: float
    calibration_error: float
    log_loss: float
    coverage_at_95: float

    @classmethod
    def of(cls, values: Values, labels: Values) -> Figures:
        """Rounded to four places."""
        return cls(
            auroc=round(auroc(values, labels), 4),
            calibration_error=round(calibration_error(values, labels), 4),
            log_loss=round(log_loss(values, labels), 4),
            coverage_at_95=round(coverage_at(0.95, values, labels), 4),
        )


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What came of the questions. `before` and `after` are measured on the folds that were not fitted on.

    `methods`: model -> `shipped` (nothing was better), `line` (intercept and slope) or `weights`. `kinds` counts cases:
    answerable, hidden (the same question, its answer taken away), absent.
    """

    questions: int
    kinds: Mapping[str, int]
    missed: int
    before: Figures
    after: Figures
    methods: Mapping[str, str]
    models: Mapping[str, Model]

    def stored(self, at: datetime) -> dict[str, Any]:
        """The value of the index's setting, as `core.confidence.weights_for` reads it."""
        return {
            "signals": shipped().signals,
            "fitted_at": at.isoformat(),
            "questions": self.questions,
            "models": {name: asdict(model) for name, model in self.models.items()},
        }


@dataclass(slots=True)
class _Part:
    """The cases of one model: rows of signals, labels, folds."""

    model: Model
    names: tuple[str, ...] = tuple(SIGNALS)
    rows: list[list[float]] = field(default_factory=list)
    labels: list[float] = field(default_factory=list)
    folds: list[int] = field(default_factory=list)

    def add(self, case: Case) -> None:
        self.rows.append([case.signals[name] for name in self.names])
        self.labels.append(case.label)
        # By question: a hidden case must not be measured with weights that saw the same question answered.
        self.folds.append(int.from_bytes(blake2b(case.group.encode(), digest_size=4).digest(), "big") % FOLDS)


def calibrate(made: Sequence[Case], questions: int) -> Calibrated:
    """Fit what the cases allow. Raises `InvalidInput` when all of them are answered, or none.

    For each model the best of three by log loss on the folds not fitted on: the shipped weights, these with another
    intercept and slope (Platt 1999), and from `WHOLE_FROM` cases weights drawn towards the shipped ones.
    """
    labels = np.array([case.label for case in made])
    if not 0 < labels.sum() < len(labels):
        raise InvalidInput(
            "All of these questions are "
            + ("answered" if labels.sum() else "unanswered")
            + " by what is found: add some of the other kind, or name the document or answer of answerable ones, "
            "so that they can be asked with it hidden."
        )
    parts: dict[str, _Part] = {}
    for case in made:
        parts.setdefault(case.model, _Part(weights_for(None)[case.model])).add(case)
    before, after, told = [], [], []
    methods, models = {}, {}
    for name, part in parts.items():
        method, predicted = _best(part)
        methods[name] = method
        if method != "shipped":
            models[name] = _fitted(part, method, np.ones(len(part.labels), bool))
        before.append(_predicted(part, "shipped"))
        after.append(predicted)
        told.append(np.array(part.labels))
    truth = np.concatenate(told)
    kinds = {kind: sum(case.kind == kind for case in made) for kind in ("answerable", "hidden", "absent")}
    missed = sum(case.kind == "answerable" and not case.label for case in made)
    return Calibrated(
        questions,
        kinds,
        missed,
        Figures.of(np.concatenate(before), truth),
        Figures.of(np.concatenate(after), truth),
        methods,
        models,
    )


def _best(part: _Part) -> tuple[str, Values]:
    labels = np.array(part.labels)
    both = 0 < labels.sum() < len(labels) and len(labels) >= FEWEST
    allowed = ["shipped", *(["line"] if both else []), *(["weights"] if both and len(labels) >= WHOLE_FROM else [])]
    tried = {method: _predicted(part, method) for method in allowed}
    best = min(allowed, key=lambda method: log_loss(tried[method], labels))
    return best, tried[best]


def _predicted(part: _Part, method: str) -> Values:
    """Of each case, by what was fitted without its fold."""
    folds, values = np.array(part.folds), np.zeros(len(part.labels))
    for number in np.unique(folds):
        out = folds == number
        model = _fitted(part, method, ~out)
        values[out] = sigmoid(_logits(part, model, out))
    return values


def _fitted(part: _Part, method: str, kept: Any) -> Model:
    labels = np.array(part.labels)[kept]
    if method == "shipped" or not 0 < labels.sum() < len(labels):
        return part.model
    once = np.ones(len(labels))
    if method == "line":
        prior = np.array([0.0, 1.0])
        shift, slope = logistic(_logits(part, part.model, kept)[:, None], labels, once, prior, ridge=1.0)
        slope = max(0.05, float(slope))
        scaled = {name: slope * weight for name, weight in part.model.weights.items()}
        return Model(float(shift) + slope * part.model.intercept, scaled)
    names = tuple(part.model.weights)
    columns = [part.names.index(name) for name in names]
    prior = np.array([part.model.intercept, *part.model.weights.values()])
    beta = logistic(np.array(part.rows)[kept][:, columns], labels, once, prior, ridge=PULL)
    return Model(float(beta[0]), dict(zip(names, beta[1:].tolist(), strict=True)))


def _logits(part: _Part, model: Model, kept: Any) -> Values:
    weights = np.array([model.weights.get(name, 0.0) for name in part.names])
    logits: Values = model.intercept + np.array(part.rows)[kept] @ weights
    return logits
