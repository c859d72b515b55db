"""Whether an answer declines, or replies to its question: it is about the same, with the kind of value asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import islice

from dtrag.core.answers.grounding import claim_of
from dtrag.core.quality.scores import Relevance
from dtrag.core.text.analysis import language, normalise, sentences, terms
from dtrag.core.text.numbers import numbers_in
from dtrag.core.text.patterns import explained
from dtrag.core.text.question_words import asks, counted_answer
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


_NOT = r"(?: ?n['’]t| not)"
_SOURCE = r"\b(?:documents?|passages?|contexts?|sources?|texts?|excerpts?|materials?|information)\b"
_SPEAKER = r"\b(?:i|we)\b"
_MISSING = r"(?:information|mention|answers?|details?|reference)"
_ENGLISH = explained(
    rf"{_SPEAKER} (?:\w+ )?(?:(?:do|did|could|can|was|were|am|are){_NOT}|cannot) (?:\w+ ){{0,3}}?"
    r"(?:answer|find|found|know|determine|say|tell|able to|see)"
    rf"|^(?:do{_NOT} know|cannot (?:answer|determine|say|tell)|unable to (?:answer|find|determine|say|tell))"
    rf"|{_SPEAKER}(?: am| was| are| were|['’]m|['’]re) unable to"
    rf"|{_SPEAKER} (?:have|found|could find|can find|see) (?:no|insufficient) {_MISSING}"
    rf"|{_SOURCE} (?:\w+ ){{0,4}}?(?:do|does|did){_NOT} (?:\w+ ){{0,3}}?"
    r"(?:contain|answer|mention|provide|include|specif|state|say|describe|discuss|address|give|explain)"
    rf"|\b(?:it|they|this)(?: does| do){_NOT} (?:mention|say|specify|state)"
    rf"|\b(?:is|are|was|were){_NOT} (?:\w+ )?(?:mentioned|stated|specified)[.!]?$"
    rf"|\b(?:is|are|was|were|could|can){_NOT} (?:be )?(?:\w+ )?"
    r"(?:found|mentioned|stated|specified|provided|given|available|answered|determined|included)"
    rf" (?:in|by|from|with) (?:\w+ ){{0,3}}?{_SOURCE}"
    rf"|\b(?:answer|question|information|this|it) (?:cannot|could{_NOT}) be (?:answered|found|determined)"
    rf"|(?:^|\bthere(?: is|['’]s| was) )no {_MISSING}\b"
    rf"|{_SOURCE} (?:\w+ ){{0,3}}?(?:contains?|provides?|gives?|has|have|makes?) no {_MISSING}"
    rf"|\bno {_SOURCE} (?:\w+ )?(?:contains?|mentions?|answers?|says?|states?|specif\w+|provides?|about|on)\b"
    r"|(?:^|\b(?:there (?:is|was)|i have|we have|contains?|provides?) )"
    r"(?:not enough|insufficient|no sufficient) (?:information|context)"
    rf"|(?:do|does){_NOT} (?:have|contain|provide) (?:enough|sufficient) (?:information|context)",
    finds=("i cannot answer", "there is no information"),
    refuses="you can answer",
)
"""The speaker does not know, or the source does not say: the subject decides, people of a rule do not do things too."""
_ENDS = r"(?:\S{0,4}(?:다|요|음|함|죠)[.!]?$|(?:는|은) 것(?:으로| 같).{0,40}(?:다|요)[.!]?$)"
_KOREAN = explained(
    r"(?:찾을|찾지|알|답할|답변할|대답할|답변드릴|확인할|확인되지|판단할)\s?(?:수\s?(?:가\s?)?)?(?:없|못|않)"
    rf"(?:{_ENDS}|으며|으므로|으나|지만|어서|기 때문)"
    r"|(?:정보|내용|규정|근거|언급|답|문서|기재|명시|나와|나타나|포함되어|정해져)\S{0,6}\s?"
    rf"(?:없|있지\s?않|되지\s?않|되어\s?있지\s?않|지\s?않){_ENDS}"
    r"|(?:답변|대답|답)\S{0,3}\s?(?:드리기\s?|하기\s?)?(?:가\s?)?어렵"
    r"|모르겠|모릅니다",
    finds=("찾을 수 없습니다", "관련 내용이 없습니다"),
    refuses="찾을 수 있습니다",
)
"""At the end of its clause: "규정되지 않은 사항은 총장이 정한다" is a rule."""
_APOLOGY = explained(
    r"^(?:(?:i am |i['’]m )?(?:very |so )?sorry|apologies|unfortunately|죄송합니다|미안합니다)\W*$",
    finds=("i am very sorry.", "죄송합니다"),
    refuses="sorry, the fee is 5",
)


def is_refusal(answer: str) -> bool:
    """Whether the answer is empty or its first sentence, after an apology, says that there is no answer.

    An answer that begins with facts is none, even if it says later what the documents leave open.
    """
    texts = [normalise(answer[start:end]) for start, end in islice(sentences(answer), 2)]
    if len(texts) > 1 and _APOLOGY.match(texts[0]):
        texts = texts[1:]
    return not texts or any(pattern.search(texts[0]) is not None for pattern in (_ENGLISH, _KOREAN))
