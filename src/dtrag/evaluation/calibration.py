"""Weights and thresholds of the confidence from a user's own judged questions; only those that make nothing worse."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from dtrag.core.answers.confidence import LogisticModel, Thresholds, shipped
from dtrag.core.answers.evidence import SIGNALS
from dtrag.core.metrics.calibration import (
    Values,
    auroc_within,
    calibration_error,
    coverage_at,
    log_loss,
    logistic,
    sigmoid,
)
from dtrag.errors import InvalidInput
from dtrag.evaluation.answerability import Case, Judged
from dtrag.evaluation.thresholds import Decisions, choose

FEWEST = 20
"""Questions with which a line can be fitted at all; with fewer, chance decides."""
WHOLE_FROM = 75
"""From here on the weights themselves may move: on the regulation book the shipped ones stay far too careful until
about so many labels."""
FOLDS = 5
ROUNDING = 1e-9
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
    """Worth of a confidence and its thresholds over cases: core/metrics/calibration.py and evaluation/thresholds.py.

    `auroc` compares cases of the same fold. `abstention` is the share of the cases without an answer in which none is
    given, `selective_risk` the share of wrong ones among the `answered`.
    """

    auroc: float
    selective_risk: float
    abstention: float
    answered: int
    answered_right: int
    calibration_error: float
    log_loss: float
    coverage_at_95: float


@dataclass(frozen=True, slots=True)
class Refusal:
    """A fit that is not used: the figures of the model that it would replace, on the same held-out cases, and why."""

    model: str
    method: str
    before: Figures
    after: Figures
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What came of the questions. `before` and `after` are measured on the folds that were not fitted on.

    `methods`: model -> `shipped` (nothing was better), `line` (intercept and slope) or `weights`. `kinds` counts cases:
    answerable, hidden (the same question, its answer taken away), absent. `refusals` are the fits that would have made
    something worse.
    """

    questions: int
    kinds: Mapping[str, int]
    missed: int
    before: Figures
    after: Figures
    methods: Mapping[str, str]
    models: Mapping[str, LogisticModel]
    thresholds: Mapping[str, Thresholds]
    refusals: tuple[Refusal, ...] = ()

    @property
    def helps(self) -> bool:
        """Whether there is anything to use instead of what is shipped."""
        return bool(self.models)

    def stored(self, at: datetime) -> dict[str, Any]:
        """The value of the index's setting, as `core.confidence.weights_for` reads it."""
        return {
            "signals": shipped().signals,
            "fitted_at": at.isoformat(),
            "questions": self.questions,
            "models": {name: asdict(model) for name, model in self.models.items()},
            "thresholds": {name: asdict(limits) for name, limits in self.thresholds.items()},
        }


@dataclass(slots=True)
class _Part:
    """The cases of one model: rows of signals, labels, folds."""

    model: LogisticModel
    limits: Thresholds
    names: tuple[str, ...] = tuple(SIGNALS)
    rows: list[list[float]] = field(default_factory=list)
    labels: list[float] = field(default_factory=list)
    folds: list[int] = field(default_factory=list)

    def add(self, case: Case) -> None:
        self.rows.append([case.signals[name] for name in self.names])
        self.labels.append(case.label)
        # By question: a hidden case must not be measured with weights that saw the same question answered.
        self.folds.append(int.from_bytes(blake2b(case.group.encode(), digest_size=4).digest(), "big") % FOLDS)


@dataclass(frozen=True, slots=True)
class _Predictions:
    """Of each case, by what was fitted and chosen without its fold: the confidence, and the thresholds for it."""

    values: Values
    labels: Values
    folds: Values
    abstain: Values
    review: Values

    @classmethod
    def joined(cls, parts: Sequence[_Predictions]) -> _Predictions:
        return cls(
            *(
                np.concatenate([getattr(part, name) for part in parts])
                for name in ("values", "labels", "folds", "abstain", "review")
            )
        )

    def decisions(self) -> Decisions:
        return Decisions.of(self.values, self.labels, self.abstain, self.review)

    def figures(self) -> Figures:
        decided = self.decisions()
        return Figures(
            auroc=round(auroc_within(self.values, self.labels, self.folds), 4),
            selective_risk=round(decided.risk, 4),
            abstention=round(decided.abstention, 4),
            answered=decided.answered,
            answered_right=decided.answered_right,
            calibration_error=round(calibration_error(self.values, self.labels), 4),
            log_loss=round(log_loss(self.values, self.labels), 4),
            coverage_at_95=round(coverage_at(0.95, self.values, self.labels), 4),
        )


def calibrate(made: Sequence[Case], questions: int) -> Calibrated:
    """Fit what the cases allow, and keep what helps. Raises `InvalidInput` when all of them are answered, or none.

    For each model the best by log loss on the folds not fitted on: the shipped weights, these with another intercept
    and slope (Platt 1999), and from `WHOLE_FROM` cases weights drawn towards the shipped ones; each with thresholds
    chosen on the cases that it was fitted on. What makes AUROC, selective risk or abstention worse than the shipped
    confidence on the same folds is refused.
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
        name = case.model
        parts.setdefault(name, _Part(shipped().models[name], shipped().thresholds[name])).add(case)
    before, after, refusals = [], [], []
    methods, models, thresholds = {}, {}, {}
    for name, part in parts.items():
        method, predicted, refused = _best(name, part)
        methods[name] = method
        refusals += refused
        if method != "shipped":
            models[name], thresholds[name] = _fitted(part, method, np.ones(len(part.labels), bool))
        before.append(_predicted(part, "shipped"))
        after.append(predicted)
    kinds = {kind: sum(case.kind == kind for case in made) for kind in ("answerable", "hidden", "absent")}
    missed = sum(case.kind == "answerable" and not case.label for case in made)
    return Calibrated(
        questions,
        kinds,
        missed,
        _Predictions.joined(before).figures(),
        _Predictions.joined(after).figures(),
        methods,
        models,
        thresholds,
        tuple(refusals),
    )


def _best(name: str, part: _Part) -> tuple[str, _Predictions, list[Refusal]]:
    """The method with the least log loss among those that make nothing worse, and the better ones that do."""
    labels = np.array(part.labels)
    builtin = _predicted(part, "shipped")
    both = 0 < labels.sum() < len(labels) and len(labels) >= FEWEST
    fits = [*(["line"] if both else []), *(["weights"] if both and len(labels) >= WHOLE_FROM else [])]
    tried = {method: _predicted(part, method) for method in fits}
    least = log_loss(builtin.values, labels)
    better = sorted(
        (method for method in fits if log_loss(tried[method].values, labels) < least),
        key=lambda method: log_loss(tried[method].values, labels),
    )
    refusals: list[Refusal] = []
    for method in better:
        reasons = _reasons(builtin, tried[method])
        if not reasons:
            return method, tried[method], refusals
        refusals.append(Refusal(name, method, builtin.figures(), tried[method].figures(), reasons))
    return "shipped", builtin, refusals


def _reasons(builtin: _Predictions, fitted: _Predictions) -> tuple[str, ...]:
    """What the fit makes worse, with the figures."""
    before, after = builtin.decisions(), fitted.decisions()
    ranks = [auroc_within(each.values, each.labels, each.folds) for each in (builtin, fitted)]
    reasons = []
    if ranks[1] < ranks[0] - ROUNDING:
        reasons.append(f"AUROC would fall from {ranks[0]:.3f} to {ranks[1]:.3f}")
    if after.abstention < before.abstention - ROUNDING:
        reasons.append(
            f"abstention on unanswerable questions would fall from {before.abstention:.3f} to {after.abstention:.3f}"
        )
    if after.risk > before.allowed_risk + ROUNDING:
        reasons.append(
            f"the share of wrong answers would be {after.risk:.3f}, and {before.allowed_risk:.3f} is allowed"
        )
    return tuple(reasons)


def _predicted(part: _Part, method: str) -> _Predictions:
    """Of each case, by what was fitted without its fold."""
    folds, labels = np.array(part.folds), np.array(part.labels)
    values, abstain, review = (np.zeros(len(labels)) for _ in range(3))
    for number in np.unique(folds):
        out = folds == number
        model, limits = _fitted(part, method, ~out)
        values[out] = sigmoid(_logits(part, model, out))
        abstain[out], review[out] = limits.abstain, limits.review
    return _Predictions(values, labels, folds, abstain, review)


def _fitted(part: _Part, method: str, kept: Any) -> tuple[LogisticModel, Thresholds]:
    """The model fitted to these cases, and thresholds chosen on them."""
    labels = np.array(part.labels)[kept]
    if method == "shipped" or not 0 < labels.sum() < len(labels):
        return part.model, part.limits
    model = _model(part, method, kept, labels)
    shipped_values = sigmoid(_logits(part, part.model, kept))
    ones = np.ones(len(labels))
    builtin = Decisions.of(shipped_values, labels, part.limits.abstain * ones, part.limits.review * ones)
    return model, choose(sigmoid(_logits(part, model, kept)), labels, builtin)


def _model(part: _Part, method: str, kept: Any, labels: Values) -> LogisticModel:
    once = np.ones(len(labels))
    if method == "line":
        prior = np.array([0.0, 1.0])
        shift, slope = logistic(_logits(part, part.model, kept)[:, None], labels, once, prior, ridge=1.0)
        slope = max(0.05, float(slope))
        scaled = {name: slope * weight for name, weight in part.model.weights.items()}
        return LogisticModel(float(shift) + slope * part.model.intercept, scaled)
    names = tuple(part.model.weights)
    columns = [part.names.index(name) for name in names]
    prior = np.array([part.model.intercept, *part.model.weights.values()])
    beta = logistic(np.array(part.rows)[kept][:, columns], labels, once, prior, ridge=PULL)
    return LogisticModel(float(beta[0]), dict(zip(names, beta[1:].tolist(), strict=True)))


def _logits(part: _Part, model: LogisticModel, kept: Any) -> Values:
    weights = np.array([model.weights.get(name, 0.0) for name in part.names])
    logits: Values = model.intercept + np.array(part.rows)[kept] @ weights
    return logits
