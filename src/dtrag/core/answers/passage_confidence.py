"""The probability that the passages answer a question, and the decision: answer, review, abstain.

`confidence` is the formula of the acceptance text; docs/explanation/confidence.md compares the two.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal

from dtrag.core.answers.evidence import PACK_SIGNALS, SIGNALS, signals
from dtrag.core.answers.reasons import Decision, advice, evidence_in_words, nearest
from dtrag.core.documents import PackFindings, SearchResult
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.statements import Statements, stated
from dtrag.core.text.analysis import language
from dtrag.errors import InvalidInput

Policy = Literal["careful", "balanced", "eager"]
COSTS: Mapping[Policy, float] = {"careful": 3.0, "balanced": 1.0, "eager": 1 / 3}
"""Policy -> the cost of a wrong answer relative to that of a question declined although it could be answered; 1 is the
ratio that the thresholds were chosen with. Their risk and coverage: docs/explanation/confidence.md."""
SETTING = "calibration"
"""Name of the index setting with weights fitted to the user's own questions (see `dtrag calibrate`)."""


def confidence(top_score: float, sources: int) -> float:
    """The baseline of the acceptance text (D1): the score of the best passage, halved with a single source.

    In [0, 1]; 0 without a source. NaN counts as 0.
    """
    if sources <= 0 or math.isnan(top_score):
        return 0.0
    return min(1.0, max(0.0, top_score * (1.0 if sources >= 2 else 0.5)))


@dataclass(frozen=True, slots=True)
class Confidence:
    """`value` in [0, 1]; `reason` explains it in words; `signals` are its inputs.

    `needs_check`: the decision is at most `review`, however probable it is that the answer is right.
    """

    value: float
    decision: Decision
    reason: Statements
    signals: Mapping[str, float] = field(default_factory=dict)
    needs_check: bool = False


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Below `abstain` there is no answer, below `review` one with the advice to check it."""

    abstain: float
    review: float

    def at_cost(self, ratio: float) -> Thresholds:
        """The thresholds when a wrong answer costs `ratio` times as much.

        Answering pays where p / (1 - p) exceeds the ratio of the costs (Chow 1970), so the odds are multiplied by it.
        """
        return Thresholds(*(limit * ratio / (1.0 - limit + limit * ratio) for limit in (self.abstain, self.review)))


@dataclass(frozen=True, slots=True)
class LogisticModel:
    """A logistic regression: intercept, and a weight for each signal that it uses."""

    intercept: float
    weights: Mapping[str, float]

    def probability(self, signals: Mapping[str, float]) -> float:
        """In (0, 1)."""
        logit = self.intercept + sum(weight * signals[name] for name, weight in self.weights.items())
        return 1.0 / (1.0 + math.exp(-min(30.0, max(-30.0, logit))))


@dataclass(frozen=True, slots=True)
class ConfidenceWeights:
    """Models and thresholds by name, and the version of the signals that they were fitted on."""

    signals: int
    thresholds: Mapping[str, Thresholds]
    models: Mapping[str, LogisticModel]


def model_name(question: str, signals: Mapping[str, float]) -> str:
    """The model for a question.

    When the pack ranked the passages `regulations_vectors`, or `regulations` where the first articles have no vectors;
    else `korean` for Korean, for which words are more reliable than vectors of a model that may not support it;
    else `vectors` when passages have cosines, and `words` without.
    """
    if "regulation_score" in signals:
        return "regulations_vectors" if "regulation_similarity" in signals else "regulations"
    if language(question) == "ko":
        return "korean"
    return "vectors" if signals["cosine"] > 0.0 else "words"


@functools.cache
def shipped() -> ConfidenceWeights:
    """The weights shipped with dtrag."""
    read = json.loads(resources.files("dtrag.core.answers").joinpath("confidence_weights.json").read_text("utf-8"))
    thresholds = {name: Thresholds(**limits) for name, limits in read["thresholds"].items()}
    return ConfidenceWeights(read["signals"], thresholds, models_of(read["models"]))


def models_of(written: Mapping[str, Any]) -> dict[str, LogisticModel]:
    """Models from JSON. Raises `ValueError` for an unknown signal or an invalid number."""
    models = {}
    for name, model in written.items():
        weights = {signal: float(weight) for signal, weight in model["weights"].items()}
        if unknown := weights.keys() - SIGNALS.keys() - PACK_SIGNALS.keys():
            raise ValueError(f"there is no signal {sorted(unknown)[0]!r}")
        models[name] = LogisticModel(float(model["intercept"]), weights)
    return models


@functools.lru_cache(maxsize=8)
def _calibrated(written: str) -> ConfidenceWeights:
    read = json.loads(written)
    ours = shipped()
    thresholds = {name: Thresholds(**limits) for name, limits in read["thresholds"].items()}
    return ConfidenceWeights(
        ours.signals, {**ours.thresholds, **thresholds}, {**ours.models, **models_of(read["models"])}
    )


def weights_for(stored: Mapping[str, Any] | None) -> ConfidenceWeights:
    """The shipped models and thresholds, replaced where `stored` (the value of `SETTING`) has fitted ones.

    A fit on another version of the signals is ignored, and so is one without thresholds (it was stored before
    calibrations were checked against the shipped one) or of another form, by another version of dtrag.
    """
    return (_fitted(stored) if stored else None) or shipped()


def is_used(stored: Mapping[str, Any]) -> bool:
    """Whether `weights_for` uses a stored calibration."""
    return _fitted(stored) is not None


def _fitted(stored: Mapping[str, Any]) -> ConfidenceWeights | None:
    if not isinstance(stored, Mapping) or stored.get("signals") != shipped().signals:
        return None
    try:
        return _calibrated(json.dumps({key: stored[key] for key in ("models", "thresholds")}, sort_keys=True))
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def policy_of(setting: str) -> Policy:
    """The value of DTRAG_DECISION. Raises `InvalidInput` for another one."""
    for policy in COSTS:
        if setting == policy:
            return policy
    raise InvalidInput(f"DTRAG_DECISION is {setting[:40]!r}, but must be careful, balanced or eager.")


def decide(value: float, thresholds: Thresholds) -> Decision:
    """The decision for an answer with this confidence."""
    if value < thresholds.abstain:
        return "abstain"
    return "review" if value < thresholds.review else "answer"


def confidence_of(
    question: str,
    passages: Sequence[SearchResult],
    statistics: LexicalStatistics,
    stored: Mapping[str, Any] | None = None,
    pack: PackFindings | None = None,
    *,
    policy: Policy = "balanced",
) -> Confidence:
    """The probability that the passages answer, the decision, and why.

    `statistics` are those of what the caller may see, for `content_terms` and `weighted_terms` of the question;
    `stored` is the index's setting `SETTING`, `pack` what a pack learned about the question, `policy` how sure an
    answer must be. About 2 ms for ten passages.
    """
    if not passages:
        nothing = stated("no_passage", "No passage holds a word of the question.")
        return Confidence(0.0, "abstain", (nothing, *advice(question, statistics)))
    values = judged_signals(question, passages, statistics, pack)
    name = model_name(question, values)
    weights = weights_for(stored)
    value = weights.models[name].probability(values)
    decision = decide(value, weights.thresholds[name].at_cost(COSTS[policy]))
    if decision == "abstain" and pack is not None and pack.governed:
        decision = "review"
    reason: Statements = (evidence_in_words(decision, name, values),)
    if decision == "abstain":
        reason = (*reason, *advice(question, statistics), nearest(passages))
    return Confidence(round(value, 3), decision, reason, values)


def judged_signals(
    question: str, passages: Sequence[SearchResult], statistics: LexicalStatistics, pack: PackFindings | None
) -> dict[str, float]:
    """The signals that a question is judged by: those of the passages, and those of the pack that ranked them."""
    return signals(question, passages, statistics) | (dict(pack.signals) if pack is not None else {})
