"""Whether an answer replies to its question: it is about the same, and has the kind of value that was asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass

from dtrag.core.answers.grounding import claim_of
from dtrag.core.quality.judgement import Relevance
from dtrag.core.quality.refusals import is_refusal
from dtrag.core.text.analysis import language, normalise, terms
from dtrag.core.text.linguistics import counted_answer
from dtrag.core.text.numbers import numbers_in
from dtrag.core.text.patterns import explained
from dtrag.core.text.question_words import asks
from dtrag.core.text.questions import content

VALUE = 0.6
"""Score of an answer that is nothing but the value asked for."""
WITHOUT_VALUE = 0.4
"""Highest score of an answer that shares the question's words, but lacks the value it asks for."""
SHORT = {"ko": 5, "en": 8}
"""Written words up to which an answer that adds anything to the question may be a bare value. A Korean sentence has
fewer than an English one; 3 to 5 give the same results."""
UNEXPLAINED = 0.5
"""Weight of a word without other wordings where some words have them; .25 to 1 give the same results."""
FITTING = 2 / 3
"""Share of the terms of another wording that an answer has at least."""
_CAPITALISED = re.compile(r"(?<![\w.])[A-Z][\w'’-]*")
_KOREAN_NUMBER = re.compile(
    r"\d|[한두세네다섯여섯일곱여덟아홉열일이삼사오육칠팔구십백천만]+\s?(?:명|개|회|번|년|월|일|주|학기|시간|원|배|권)"
)
_TIME = explained(
    r"\d|\b(?:january|february|march|april|may|june|july|august|september|october|november|december|monday|tuesday"
    r"|wednesday|thursday|friday|saturday|sunday|century|before|after|during|until|once|when|every)\b"
    r"|(?:때|후|전|동안|즉시|매년|매월|까지|시기|세기|년|월|일)(?:에|부터|까지|의|이|은|는|\s|$|[.,])",
    flags=re.I,
    finds=("every Monday", "매년 신청"),
    refuses=("Mondays", "전체"),
)


@dataclass(frozen=True, slots=True)
class AskedConcept:
    """Words of a question that mean one thing, and other wordings of it."""

    words: tuple[str, ...]
    wordings: tuple[str, ...] = ()


def relevance(query: str, answer: str, concepts: Sequence[AskedConcept] = ()) -> Relevance:
    """How well the answer replies to the query, by words; it may still be wrong.

    `concepts` are the query with other wordings of its words.
    """
    if is_refusal(answer):
        return Relevance(0.0, "it declines to answer")
    stated = {*terms(answer), *(f"#{number}" for number in numbers_in(answer))}
    explained = any(concept.wordings for concept in concepts)
    shared = _shared_concepts(concepts, stated) if explained else _shared_words(query, stated)
    if (lacking := _lacking_value(query, answer)) is not None:
        if lacking:
            return Relevance(round(WITHOUT_VALUE * shared, 4), lacking)
        return Relevance(round(VALUE + (1 - VALUE) * shared, 4))
    added = stated - set(terms(query))
    if not added:
        return Relevance(round(0.3 * shared, 4), "it repeats the question and adds nothing")
    if _is_short(answer):
        return Relevance(round(VALUE + (1 - VALUE) * shared, 4))
    reason = "" if shared >= 0.5 else f"it has {shared:.0%} of the question's words"
    return Relevance(round(shared, 4), reason)


def _shared_words(query: str, stated: Set[str]) -> float:
    """The share of the query's words that the answer states."""
    query_words = claim_of(content(query)).words
    total = sum(query_words.values())
    return sum(weight for term, weight in query_words.items() if term in stated) / total if total else 1.0


def _shared_concepts(concepts: Sequence[AskedConcept], stated: Set[str]) -> float:
    """The share of the concepts that the answer states, in one of their wordings; each weighs as much as its words."""

    def share(text: str) -> float:
        named = terms(text)
        return sum(term in stated for term in named) / len(named) if named else 0.0

    shared = total = 0.0
    for concept in concepts:
        weight = max(1, len(concept.words)) if concept.wordings else UNEXPLAINED
        own = sum(map(share, concept.words)) / len(concept.words) if concept.words else 0.0
        total += weight
        shared += weight * max([own, *(each for each in map(share, concept.wordings) if each >= FITTING)])
    return shared / total


def _is_short(answer: str) -> bool:
    return len(answer.split()) <= SHORT["ko" if language(answer) == "ko" else "en"]


def _lacking_value(query: str, answer: str) -> str | None:
    """Which kind of value the answer lacks; "" when it has it, None when the question asks for no known kind.

    A question for yes or no asks for none, even if it mentions a time or a person ("시험 기간에", "when I am ill").
    """
    if asks(query, "whether") and not asks(query, "value"):
        return None
    new_numbers = numbers_in(answer) - numbers_in(query)
    counted = counted_answer(query)
    if counted is not None:
        return "" if counted.search(normalise(answer)) and _adds(query, answer) else "it lacks the amount asked for"
    if asks(query, "date"):
        return "" if new_numbers or _TIME.search(_without(query, answer)) else "it lacks the time asked for"
    if asks(query, "number"):
        korean = language(answer) == "ko" and _KOREAN_NUMBER.search(answer)
        return "" if new_numbers or korean else "it lacks the number asked for"
    if language(query) == "en" and asks(query, "person", "place"):
        known = {word.casefold() for word in re.findall(r"[\w'’-]+", query)}
        names = [match for match in _CAPITALISED.finditer(answer) if match.group().casefold() not in known]
        named = [match for match in names if match.start() > 0 or _is_short(answer)]
        return "" if named else "it lacks the name asked for"
    return None


def _adds(query: str, answer: str) -> bool:
    return bool(set(terms(answer)) - set(terms(query)))


def _without(query: str, answer: str) -> str:
    """The answer without the words of the query."""
    words = set(normalise(query).split())
    return " ".join(word for word in answer.split() if normalise(word) not in words)
