"""How sure we are that the passages answer, as a probability, and what to do with it: answer, say so weakly, abstain.

`confidence` is the formula of the acceptance text, kept beside it; docs/explanation/confidence.md compares the two.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal

from dtrag.core.answers.evidence import SIGNALS, signals
from dtrag.core.documents import SearchResult
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.text.analysis import language, term_id, terms
from dtrag.core.text.questions import content

Decision = Literal["answer", "review", "abstain"]
SETTING = "calibration"
"""Name under which the weights that a user's own questions gave are kept with the index (see `dtrag calibrate`)."""


def confidence(top_score: float, sources: int) -> float:
    """The baseline of the acceptance text (D1): the best passage's score, halved when one source alone has it.

    In [0, 1]; without a source 0, whatever the score. What is no number counts as 0.
    """
    if sources <= 0 or math.isnan(top_score):
        return 0.0
    return min(1.0, max(0.0, top_score * (1.0 if sources >= 2 else 0.5)))


@dataclass(frozen=True, slots=True)
class Confidence:
    """`value` in [0, 1]; `reason` says in words how it was reached. `signals` are what it was made of."""

    value: float
    decision: Decision
    reason: str
    signals: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Below `abstain` no answer is given, below `review` one with the advice to check it."""

    abstain: float
    review: float


@dataclass(frozen=True, slots=True)
class LogisticModel:
    """A logistic regression: intercept, and a weight for each signal that it uses."""

    intercept: float
    weights: Mapping[str, float]

    def probability(self, found: Mapping[str, float]) -> float:
        """In (0, 1)."""
        logit = self.intercept + sum(weight * found[name] for name, weight in self.weights.items())
        return 1.0 / (1.0 + math.exp(-min(30.0, max(-30.0, logit))))


@dataclass(frozen=True, slots=True)
class ConfidenceWeights:
    """Models and their thresholds by name, and the version of the signals that they were fitted on."""

    signals: int
    thresholds: Mapping[str, Thresholds]
    models: Mapping[str, LogisticModel]


def model_name(question: str, found: Mapping[str, float]) -> str:
    """Which model speaks for a question: `korean`; else `vectors` where passages have cosines, else `words`.

    Korean text is Korean first: its words say more than the vectors of a model that may not speak it.
    """
    if language(question) == "ko":
        return "korean"
    return "vectors" if found["cosine"] > 0.0 else "words"


@functools.cache
def shipped() -> ConfidenceWeights:
    """The weights that come with dtrag."""
    read = json.loads(resources.files("dtrag.core.answers").joinpath("confidence_weights.json").read_text("utf-8"))
    thresholds = {name: Thresholds(**limits) for name, limits in read["thresholds"].items()}
    return ConfidenceWeights(read["signals"], thresholds, models_of(read["models"]))


def models_of(written: Mapping[str, Any]) -> dict[str, LogisticModel]:
    """Models as they are written down. Raises `ValueError` for a signal that there is not, or what is no number."""
    models = {}
    for name, model in written.items():
        weights = {signal: float(weight) for signal, weight in model["weights"].items()}
        if unknown := weights.keys() - SIGNALS.keys():
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
    """The shipped models and thresholds, those of them replaced that `stored` (the value of `SETTING`) has fitted.

    What was fitted on other signals than today's is left aside: its weights would mean something else. So is what has
    no thresholds of its own: it was stored before calibrations were checked against the shipped one.
    """
    ours = shipped()
    if not stored or stored.get("signals") != ours.signals or "thresholds" not in stored:
        return ours
    return _calibrated(json.dumps({key: stored[key] for key in ("models", "thresholds")}, sort_keys=True))


def decide(value: float, thresholds: Thresholds) -> Decision:
    """What to do with an answer of this confidence."""
    if value < thresholds.abstain:
        return "abstain"
    return "review" if value < thresholds.review else "answer"


def confidence_of(
    question: str,
    passages: Sequence[SearchResult],
    statistics: LexicalStatistics,
    stored: Mapping[str, Any] | None = None,
) -> Confidence:
    """The probability that the passages answer, the decision, and why.

    `statistics` are those of what the caller may see, for `content_terms` and `weighted_terms` of the question;
    `stored` is the index's setting `SETTING`. About 2 ms for ten passages.
    """
    if not passages:
        return Confidence(0.0, "abstain", f"No passage holds a word of the question. {advice(question, statistics)}")
    found = signals(question, passages, statistics)
    name = model_name(question, found)
    weights = weights_for(stored)
    value = weights.models[name].probability(found)
    decision = decide(value, weights.thresholds[name])
    evidence = (
        f"a passage holds {found['coverage']:.0%} of what the question asks about, by weight of its words, and "
        f"reaches {found['lexical']:.0%} of the highest possible text score"
    )
    if found["numbers"]:
        evidence += "; a number of the question is not in it"
    if decision == "abstain":
        reason = f"Too little evidence: at best {evidence}. {advice(question, statistics)}"
    elif decision == "review":
        reason = f"Weak evidence, check the sources: at best {evidence}."
    else:
        reason = f"{evidence[0].upper()}{evidence[1:]}."
    return Confidence(round(value, 3), decision, reason, found)


def advice(question: str, statistics: LexicalStatistics) -> str:
    """What was searched, and what would help. `statistics` as for `confidence_of`: it tells of nothing else."""
    searched = f"Searched: {statistics.chunks:,} passages that you may see."
    if not statistics.chunks:
        return "There is nothing that you may see: add documents, or ask in another category."
    unknown = unknown_words(question, statistics)
    if unknown:
        named = ", ".join(f'"{word}"' for word in unknown)
        return f"{searched} Nowhere in them: {named}. Say it in other words, or add documents that tell of it."
    return f"{searched} All words occur, but not together: ask more closely, or add documents that tell of it."


def unknown_words(question: str, statistics: LexicalStatistics, most: int = 5) -> list[str]:
    """The words of the question's content, as written, of which no part occurs in any passage."""
    found: list[str] = []
    for word in words_of(question):
        ids = [term_id(term) for term in terms(word)]
        if ids and not any(map(statistics.document_frequency, ids)) and word not in found:
            found.append(word)
    return found[:most]


def words_of(question: str) -> list[str]:
    """The words of the question's content without what stands around them."""
    return [word.strip("\"'“”‘’「」『』()[]{}<>.,;:!?·…") for word in content(question).split()]
