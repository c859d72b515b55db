"""Fits weights and thresholds of the confidence to judged questions; fits that make a measure worse are refused."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dtrag.core.answers.evidence import PACK_SIGNALS, SIGNALS
from dtrag.core.answers.passage_confidence import LogisticModel, Thresholds, shipped
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
from dtrag.evaluation.confidence_cases import Judged, MeasuredQuestion

FEWEST = 20
"""Minimum number of questions for a fit; with fewer the result would be random."""
WHOLE_FROM = 75
"""Minimum number of cases for fitting the weights; with fewer, on the regulation book, they are no better."""
FOLDS = 5
ROUNDING = 1e-9
PULL = 4.0
"""Regularisation of fitted weights towards the shipped ones, about as strong as a few cases each."""
Selection = npt.NDArray[np.bool_]
"""Which cases are used."""
MOST_CHARACTERS = 10_000
FORM = '{"question": "...", "answerable": false}, or {"question": "...", "document": "..."} or "answer": "..."'


def read_questions(path: Path) -> list[Judged]:
    """The judged questions of a JSONL file. Raises `InvalidInput` that names the invalid line."""
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read as UTF-8 text: {error}") from error
    judged = [_judged(line, f"{path}, line {number}") for number, line in enumerate(lines, start=1) if line.strip()]
    if len(judged) < FEWEST:
        raise InvalidInput(f"{path} has {len(judged)} questions; at least {FEWEST} are needed, one per line: {FORM}.")
    return judged


def _judged(line: str, where: str) -> Judged:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InvalidInput(f"{where}: invalid JSON. Expected {FORM}.") from error
    if not isinstance(row, dict) or not isinstance(row.get("question"), str) or not row["question"].strip():
        raise InvalidInput(f"{where}: no question. Expected {FORM}.")
    if len(row["question"]) > MOST_CHARACTERS:
        raise InvalidInput(f"{where}: the question has more than {MOST_CHARACTERS:,} characters.")
    documents, answers = _texts(row, "document", where), _texts(row, "answer", where)
    answerable = row.get("answerable", True if documents or answers else None)
    if not isinstance(answerable, bool):
        raise InvalidInput(f"{where}: answerable must be true or false: whether the documents answer the question.")
    if not answerable:
        documents = answers = frozenset()
    return Judged(row["question"], answerable, documents, answers, group=str(row.get("group") or ""))


def _texts(row: Mapping[str, Any], name: str, where: str) -> frozenset[str]:
    value = row.get(name, [])
    listed = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) and text.strip() for text in listed):
        raise InvalidInput(f"{where}: {name} must be a string or a list of strings.")
    return frozenset(listed)


@dataclass(frozen=True, slots=True)
class Figures:
    """Measures of a confidence with thresholds over cases: core/metrics/calibration.py, and below.

    `auroc` compares cases of the same fold. `abstention` is the share of unanswerable cases without an answer,
    `selective_risk` the share of wrong answers among the `answered`.
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
    """A refused fit: its measures and those of the current model on the same held-out cases, with the reasons."""

    model: str
    method: str
    before: Figures
    after: Figures
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The result of a calibration. `before` and `after` are measured on held-out folds.

    `methods`: model -> `shipped` (no fit was better), `line` (intercept and slope) or `weights`. `kinds` counts cases:
    answerable, hidden (the same question without its answer), absent. `refusals` are fits that would have made a
    measure worse.
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
        """Whether there is a better model than the shipped one."""
        return bool(self.models)

    def stored(self, at: datetime) -> dict[str, Any]:
        """The value of the index setting, as `core.answers.confidence` reads it."""
        return {
            "signals": shipped().signals,
            "fitted_at": at.isoformat(),
            "questions": self.questions,
            "models": {name: asdict(model) for name, model in self.models.items()},
            "thresholds": {name: asdict(limits) for name, limits in self.thresholds.items()},
        }


@dataclass(slots=True)
class _ModelCases:
    """The cases of one model: rows of signals, labels, folds."""

    model: LogisticModel
    limits: Thresholds
    names: tuple[str, ...] = (*SIGNALS, *PACK_SIGNALS)
    rows: list[list[float]] = field(default_factory=list)
    labels: list[float] = field(default_factory=list)
    folds: list[int] = field(default_factory=list)

    def add(self, case: MeasuredQuestion) -> None:
        self.rows.append([case.signals.get(name, 0.0) for name in self.names])
        self.labels.append(case.label)
        # By question: a hidden case must not be measured with weights fitted to the same question with its answer.
        self.folds.append(int.from_bytes(blake2b(case.group.encode(), digest_size=4).digest(), "big") % FOLDS)


@dataclass(frozen=True, slots=True)
class _Predictions:
    """Confidence and thresholds for each case, fitted without its fold."""

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


def calibrate(cases: Sequence[MeasuredQuestion], questions: int) -> Calibrated:
    """Fit the confidence to the cases. Raises `InvalidInput` if all of them are answered, or none.

    For each model the best by log loss on held-out folds: the shipped weights, these with a fitted intercept and slope
    (Platt 1999), and from `WHOLE_FROM` cases weights regularised towards the shipped ones; each with thresholds chosen
    on the same cases. A fit with worse AUROC, selective risk or abstention than the shipped confidence is refused.
    """
    labels = np.array([case.label for case in cases])
    if not 0 < labels.sum() < len(labels):
        raise InvalidInput(
            "All of these questions are "
            + ("answered" if labels.sum() else "unanswered")
            + " by the retrieved passages: add some of the other kind, or name document or answer of answerable ones, "
            "so that they can be tested without it."
        )
    parts: dict[str, _ModelCases] = {}
    for case in cases:
        name = case.model
        parts.setdefault(name, _ModelCases(shipped().models[name], shipped().thresholds[name])).add(case)
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
    kinds = {kind: sum(case.kind == kind for case in cases) for kind in ("answerable", "hidden", "absent")}
    missed = sum(case.kind == "answerable" and not case.label for case in cases)
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


def _best(name: str, part: _ModelCases) -> tuple[str, _Predictions, list[Refusal]]:
    """The method with the lowest log loss that makes no measure worse, and the refused methods with a lower one."""
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
    """The measures that the fit makes worse, with values."""
    before, after = builtin.decisions(), fitted.decisions()
    ranks = [auroc_within(part.values, part.labels, part.folds) for part in (builtin, fitted)]
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


def _predicted(part: _ModelCases, method: str) -> _Predictions:
    """Predictions for each case by a fit without its fold."""
    folds, labels = np.array(part.folds), np.array(part.labels)
    values, abstain, review = (np.zeros(len(labels)) for _ in range(3))
    for number in np.unique(folds):
        out = folds == number
        model, limits = _fitted(part, method, ~out)
        values[out] = sigmoid(_logits(part, model, out))
        abstain[out], review[out] = limits.abstain, limits.review
    return _Predictions(values, labels, folds, abstain, review)


def _fitted(part: _ModelCases, method: str, selected: Selection) -> tuple[LogisticModel, Thresholds]:
    """The model fitted to the selected cases, with thresholds chosen on them."""
    labels = np.array(part.labels)[selected]
    if method == "shipped" or not 0 < labels.sum() < len(labels):
        return part.model, part.limits
    model = _model(part, method, selected, labels)
    shipped_values = sigmoid(_logits(part, part.model, selected))
    ones = np.ones(len(labels))
    builtin = Decisions.of(shipped_values, labels, part.limits.abstain * ones, part.limits.review * ones)
    return model, choose(sigmoid(_logits(part, model, selected)), labels, builtin)


def _model(part: _ModelCases, method: str, selected: Selection, labels: Values) -> LogisticModel:
    once = np.ones(len(labels))
    if method == "line":
        prior = np.array([0.0, 1.0])
        shift, slope = logistic(_logits(part, part.model, selected)[:, None], labels, once, prior, ridge=1.0)
        slope = max(0.05, float(slope))
        scaled = {name: slope * weight for name, weight in part.model.weights.items()}
        return LogisticModel(float(shift) + slope * part.model.intercept, scaled)
    names = tuple(part.model.weights)
    columns = [part.names.index(name) for name in names]
    prior = np.array([part.model.intercept, *part.model.weights.values()])
    beta = logistic(np.array(part.rows)[selected][:, columns], labels, once, prior, ridge=PULL)
    return LogisticModel(float(beta[0]), dict(zip(names, beta[1:].tolist(), strict=True)))


def _logits(part: _ModelCases, model: LogisticModel, selected: Selection) -> Values:
    weights = np.array([model.weights.get(name, 0.0) for name in part.names])
    logits: Values = model.intercept + np.array(part.rows)[selected] @ weights
    return logits


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
