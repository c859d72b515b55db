"""Lexical support with reasons: a judge without a model.

Whether a claim is supported is decided by the rules of core/answers/grounding.py: enough of its words are there, its
numbers and names too, and it denies nothing that the source says. The score is how likely people are to call it
supported: a logistic regression per language over features.py, fitted by bench/judge.py. Both compare words and do not
understand a conclusion that shares none with its source. How far people agree is in bench/README.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from dtrag.core.answers.grounding import SUPPORTED, claim_of
from dtrag.core.quality.features import NAMES, Compared, compare, missing_words, source_of
from dtrag.core.quality.judgement import Judgement
from dtrag.core.quality.opposites import contradicting_words, quantifiers
from dtrag.core.text.analysis import language, normalise, terms
from dtrag.core.text.numbers import numbers_in
from dtrag.core.text.questions import content

WEIGHTS = "lexical_judge.json"
SHORT = 5
"""Written words up to which a claim is a value ("26 days") that the source must contain, not a sentence."""
ABOUT = 0.25
"""Share of the question's words that a context must have to support a bare value."""
NAMED_WORDS = 5
"""Missing words that a reason names."""


@dataclass(frozen=True, slots=True)
class Regression:
    """A logistic regression, and the threshold at which its balanced accuracy is best."""

    weights: Mapping[str, float]
    intercept: float
    threshold: float

    def probability(self, values: Sequence[float]) -> float:
        """The probability for one vector of features."""
        total = self.intercept + sum(
            self.weights.get(name, 0.0) * value for name, value in zip(NAMES, values, strict=True)
        )
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total))))


@cache
def regressions() -> dict[str, Regression]:
    """The fitted regressions by language."""
    text = resources.files(__package__).joinpath(WEIGHTS).read_text("utf-8")
    return {
        code: Regression(fit["weights"], fit["intercept"], fit["threshold"])
        for code, fit in json.loads(text)["languages"].items()
    }


def judge(claim: str, contexts: Sequence[str], query: str = "") -> Judgement:
    """Whether the contexts support the claim, one of them or all together.

    `query` is the question that the claim answers: a bare value counts only in a context that is about the question.
    """
    if not contexts:
        return Judgement(claim, False, 0.0, reason="there are no contexts")
    if len(claim.split()) <= SHORT and not claim.rstrip().endswith((".", "다", "요", "!", "。")):
        return _value(claim, contexts, query)
    if verbatim := tuple(index for index, context in enumerate(contexts) if _folded(claim) in _folded(context)):
        return Judgement(claim, True, 1.0, verbatim)
    regression = regressions()["ko" if language(claim) == "ko" else "en"]
    compared = [compare(claim, source_of(context)) for context in contexts]
    supporting = tuple(index for index, each in enumerate(compared) if _supported(each))
    if not supporting and len(contexts) > 1:
        compared.append(compare(claim, source_of("\n".join(contexts))))
    scores = [regression.probability(each.values) for each in compared]
    if supporting:
        return Judgement(claim, True, round(max(scores[index] for index in supporting), 4), supporting)
    if _supported(compared[-1]):
        return Judgement(claim, True, round(scores[-1], 4))
    best = max(range(len(contexts)), key=scores.__getitem__)
    return Judgement(claim, False, round(max(scores), 4), (), why_not(claim, compared[best]))


def _supported(compared: Compared) -> bool:
    return compared.support.share >= SUPPORTED and not compared.support.reason


def _value(claim: str, contexts: Sequence[str], query: str) -> Judgement:
    """A bare value is supported by a context that contains it and is about the question."""
    bare = _without_spaces(claim)
    about = claim_of(content(query)).words if query else {}
    containing = []
    for index, context in enumerate(contexts):
        words = {*terms(context), *(f"#{number}" for number in numbers_in(context))}
        total = sum(about.values())
        shared = sum(weight for term, weight in about.items() if term in words) / total if total else 1.0
        if shared >= ABOUT and bare and bare in _without_spaces(context):
            containing.append(index)
    if containing:
        return Judgement(claim, True, 1.0, tuple(containing))
    return Judgement(claim, False, 0.0, (), f"“{claim}” is not in the contexts")


def _folded(text: str) -> str:
    return normalise(text).rstrip(".。")


def _without_spaces(text: str) -> str:
    return normalise(text).replace(" ", "").strip(".,;:!?\"'“”‘’()")


def why_not(claim: str, compared: Compared) -> str:
    """What the closest part of the source lacks, or how it contradicts the claim: numbers, names, then words."""
    reasons = []
    if compared.support.reason:
        reasons.append(compared.support.reason)
    for stated, opposite in contradicting_words(claim, compared.nearest_text)[:2]:
        reasons.append(f"it says “{stated}” where the passage says “{opposite}”")
    if added := sorted(quantifiers(claim) - quantifiers(compared.window)):
        reasons.append(f"“{added[0]}” is not in the passage")
    if words := [word for word in missing_words(claim, compared.source) if not any(word in why for why in reasons)]:
        listed = ", ".join(f"“{word}”" for word in words[:NAMED_WORDS])
        reasons.append(f"{listed} {'is' if len(words) == 1 else 'are'} not in the passage")
    if not reasons:
        reasons.append(f"the closest passage has {compared.support.share:.0%} of its words, in another order")
    return "; ".join(dict.fromkeys(reasons))
