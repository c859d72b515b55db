"""Lexical support with reasons: a judge without a model.

A sentence that stands in a context to the letter is supported. Otherwise rules decide: enough of its words are in a
few neighbouring sentences, its numbers and names are there, it denies nothing that they say
(core/answers/grounding.py), and where it copies a sentence it changes no number, name, noun or negation of it
(`alteration`). The score is how likely people are to call the claim supported: a logistic regression per language
over features.py, fitted by bench/judge.py.

All of this compares words and does not understand a conclusion that shares none with its source. How far people agree
is in bench/README.md.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, lru_cache
from importlib import resources

from dtrag.core.answers.grounding import claim_of, denied
from dtrag.core.quality.features import (
    NAMES,
    Compared,
    compare,
    contradicting_words,
    missing_words,
    quantifiers,
    source_of,
)
from dtrag.core.quality.scores import Judgement
from dtrag.core.text.analysis import STOP_WORDS, language, normalise, sentences, terms
from dtrag.core.text.numbers import numbers_in
from dtrag.core.text.patterns import CIRCLED, DIGITS, HANGUL
from dtrag.core.text.questions import content, without_particle

WEIGHTS = "lexical_judge.json"
LEAST_SHARE = 0.3
"""Share of a claim's words that a few sentences must have: .35 marks honest paraphrases, without catching more."""
SHORT = 5
"""Written words up to which a claim is a value ("26 days") that the source must contain, not a sentence."""
ABOUT = 0.25
"""Share of the question's words that a context must have to support a bare value."""
_SPELT = re.compile(r"the number ([a-z]+) is not in")
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
    stated = " ".join(without_marker(claim).split())
    if len(stated.split()) <= SHORT and not stated.endswith((".", "다", "요", "!", "。")):
        return _value(claim, contexts, query)
    if verbatim := tuple(index for index, context in enumerate(contexts) if contains_sentence(context, stated)):
        return Judgement(claim, True, 1.0, verbatim)
    regression = regressions()["ko" if language(stated) == "ko" else "en"]
    compared = [compare(stated, source_of(context)) for context in contexts]
    against = [objection(stated, each) for each in compared]
    supporting = tuple(index for index, reason in enumerate(against) if not reason)
    if not supporting and len(contexts) > 1:
        compared.append(compare(stated, source_of("\n".join(contexts))))
        against.append(objection(stated, compared[-1]))
    scores = [regression.probability(each.values) for each in compared]
    if supporting:
        return Judgement(claim, True, round(max(scores[index] for index in supporting), 4), supporting)
    if not against[-1]:
        return Judgement(claim, True, round(scores[-1], 4))
    best = max(range(len(contexts)), key=scores.__getitem__)
    return Judgement(claim, False, round(max(scores), 4), (), _reasons(stated, compared[best], against[best]))


def objection(claim: str, compared: Compared) -> str:
    """Why the source does not support the claim; "" when it does."""
    support = compared.support
    if support.share < LEAST_SHARE:
        return f"the closest passage has {support.share:.0%} of its words"
    if support.reason and not _counts_a_list(support.reason, claim, compared.source.text):
        return support.reason
    if denied(claim) and not denied(compared.nearest_text):
        return "it denies what the passage says"
    if word := misplaced_negation(claim, compared.nearest_text):
        return f"it denies “{word}”, which the passage says"
    return alteration(claim, compared.source.text)


def _counts_a_list(reason: str, claim: str, source: str) -> bool:
    """Whether the missing number is spelled out and counts what the source names without a number ("two films")."""
    spelt = _SPELT.match(reason)
    if spelt is None:
        return False
    counted = re.search(rf"\b{spelt[1]}\W+(\w{{4,}})", normalise(claim))
    if counted is None:
        return False
    words = normalise(source).split()
    places = [place for place, word in enumerate(words) if word[:4] == counted[1][:4]]
    return bool(places) and not any(numbers_in(" ".join(words[max(0, at - 2) : at])) for at in places)


def _value(claim: str, contexts: Sequence[str], query: str) -> Judgement:
    """A bare value is supported by a context that contains it and is about the question."""
    about = claim_of(content(query)).words if query else {}
    containing = []
    for index, context in enumerate(contexts):
        words = {*terms(context), *(f"#{number}" for number in numbers_in(context))}
        total = sum(about.values())
        shared = sum(weight for term, weight in about.items() if term in words) / total if total else 1.0
        if shared >= ABOUT and contains_value(context, claim):
            containing.append(index)
    if containing:
        return Judgement(claim, True, 1.0, tuple(containing))
    return Judgement(claim, False, 0.0, (), f"“{claim}” is not in the contexts")


def _reasons(claim: str, compared: Compared, against: str) -> str:
    """The objection, and what else the closest part of the source lacks or says instead."""
    reasons = [against]
    for stated, opposite in contradicting_words(claim, compared.nearest_text)[:2]:
        reasons.append(f"it says “{stated}” where the passage says “{opposite}”")
    if added := sorted(quantifiers(claim) - quantifiers(compared.window)):
        reasons.append(f"“{added[0]}” is not in the passage")
    missing = missing_words(claim, compared.source)
    if words := [word for word in missing if not any(word in reason for reason in reasons)]:
        listed = ", ".join(f"“{word}”" for word in words[:NAMED_WORDS])
        reasons.append(f"{listed} {'is' if len(words) == 1 else 'are'} not in the passage")
    return "; ".join(dict.fromkeys(reasons))


_NUMBER_BEFORE = re.compile(r"(?:[\da-z]|\d[.,])\Z")
_NUMBER_AFTER = re.compile(r"\d|[.,]\d")


def contains_sentence(text: str, sentence: str) -> bool:
    """Whether the text contains the sentence to the letter."""
    text, sentence = _folded(text), _folded(sentence)
    return sentence in text and _contains(text, range(len(text)), text, sentence)


def contains_value(text: str, value: str) -> bool:
    """Whether the text contains the value; blanks do not count ("6 학기" contains 6학기)."""
    text = _folded(text)
    value = _folded(value).replace(" ", "").strip(".,;:!?\"'“”‘’()")
    dense = text.replace(" ", "")
    if not value or value not in dense:
        return False
    places = [place for place, character in enumerate(text) if character != " "]
    return _contains(dense, places, text, value)


def _contains(dense: str, places: Sequence[int], text: str, part: str) -> bool:
    """Whether the part is in `dense` with whole ends; `places` are the places of its characters in the text."""
    if not part:
        return True
    at = dense.find(part)
    while at >= 0:
        if _whole(text, places[at], places[at + len(part) - 1] + 1):
            return True
        at = dense.find(part, at + 1)
    return False


def _whole(text: str, start: int, end: int) -> bool:
    """Whether neither the number nor the word at an end of the span goes on outside of it.

    What follows Hangul is free: a particle or a copula may.
    """
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    first, last = text[start], text[end - 1]
    if first.isdigit():
        goes_on = _NUMBER_BEFORE.search(before) is not None
    elif _is_latin(first):
        goes_on = _is_latin(before[-1:]) or before[-1:].isdecimal()
    else:
        goes_on = HANGUL.match(first) is not None and before[-1:].isalnum()
    if last.isdigit():
        return not goes_on and _NUMBER_AFTER.match(after) is None
    return not goes_on and not (_is_latin(last) and (_is_latin(after[:1]) or after[:1].isdecimal()))


def _is_latin(character: str) -> bool:
    return "a" <= character <= "z" or "ß" <= character <= "ɏ"


def _folded(text: str) -> str:
    """Without circled numbers: they are marks of items, and NFKC would turn them into digits of the number behind."""
    return normalise(CIRCLED.sub(" ", text)).rstrip(".。 ")


COPIED = 0.7
"""Share of a claim's written words that stand in one sentence in the same order, from which on it is a copy of it."""
NEARLY = 0.8
"""The same from which on a Korean noun in place of another one is a change rather than a synonym."""
BEFORE = 5
"""Words before a word among which a negation of it stands."""
MOST_WORDS = 200
"""Written words of a sentence that are compared: longer ones are tables or lists."""
_EDGES = ".,;:!?\"'“”‘’「」『』()[]{}<>·"
_MARKER = re.compile(r"^\s*(?:\d{1,2}[.)]|[-*•·])\s+(?=\S)")
_NEGATIONS = frozenset({"not", "no", "never", "without", "cannot"})


def without_marker(claim: str) -> str:
    """The claim without the number or bullet of a list."""
    return _MARKER.sub("", claim)


def alteration(claim: str, source: str) -> str:
    """What the claim changes in the sentence of the source that it copies; "" when nothing, or when it copies none."""
    words = _words(claim)
    best, copied = max(
        ((sentence, _copied(words, sentence)) for sentence in _sentences(source)),
        key=lambda pair: pair[1],
        default=([], 0.0),
    )
    if len(words) < 4 or copied < COPIED:
        return ""
    known = {_bare(word) for word in best} | numbers_in(" ".join(best))
    nearly = copied >= NEARLY
    for kind, start, end, there, until in SequenceMatcher(None, words, best, autojunk=False).get_opcodes():
        if kind in {"equal", "insert"}:
            continue
        mine, theirs = words[start:end], best[there:until]
        changed = _changed_value(mine[start == 0 :], theirs, known, nouns=nearly and end < len(words))
        if reason := _negation(mine, theirs) or changed:
            return reason
    return ""


def _negation(mine: Sequence[str], theirs: Sequence[str]) -> str:
    """The negation that a claim adds or leaves out, with the words `mine` where the source has `theirs`."""
    if _denies(mine) and not _denies(theirs):
        return f"it adds “{' '.join(mine)}” to a sentence of the passage"
    if mine and _denies(theirs) and not _denies(mine):
        return f"it has “{' '.join(mine)}” where the passage has “{' '.join(theirs)}”"
    return ""


def _changed_value(mine: Sequence[str], theirs: Sequence[str], known: set[str], *, nouns: bool) -> str:
    """The number, name or (with `nouns`) Korean noun that a claim has in place of the source's words `theirs`."""
    if all(_bare(word) in STOP_WORDS for word in theirs):
        return ""
    for word in mine:
        bare = _bare(word)
        number = numbers_in(word) if DIGITS.search(bare) else frozenset[str]()
        changed = number and number.isdisjoint(numbers_in(" ".join(theirs))) and DIGITS.search(" ".join(theirs))
        name = word[:1].isupper() and bare not in STOP_WORDS
        hangul = HANGUL.match(bare)
        noun = nouns and hangul is not None and len(hangul[0]) > 1 and without_particle(word) != word
        if changed or (bare not in known and (name or noun or (number and number.isdisjoint(known)))):
            return f"it has “{word}” where the passage has “{' '.join(theirs)[:60]}”"
    return ""


def _denies(words: Sequence[str]) -> bool:
    text = " ".join(words)
    return bool(_NEGATIONS & {word.casefold() for word in words}) or denied(text)


def _words(text: str) -> list[str]:
    return [stripped for word in text.split() if (stripped := word.strip(_EDGES))][:MOST_WORDS]


@lru_cache(maxsize=256)
def _sentences(source: str) -> list[list[str]]:
    """The distinct sentences of a source, as words."""
    return [_words(sentence) for sentence in dict.fromkeys(source[start:end] for start, end in sentences(source))]


def _bare(word: str) -> str:
    return without_particle(normalise(word)).removesuffix("'s").removesuffix("’s")


def _copied(words: Sequence[str], sentence: Sequence[str]) -> float:
    if not words or sum(word in sentence for word in words) < COPIED * len(words):
        return 0.0
    blocks = SequenceMatcher(None, words, sentence, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / len(words)


def misplaced_negation(claim: str, sentence: str) -> str:
    """The word that an English claim negates and the sentence has without a negation before it; "" for none."""
    stated, known = _tokens(claim), _tokens(sentence)
    for place, word in enumerate(stated):
        if word not in _NEGATIONS:
            continue
        following = next((later for later in stated[place + 1 : place + 4] if later not in STOP_WORDS), "")
        places = [at for at, other in enumerate(known) if following and other[:5] == following[:5]]
        if places and not any(_NEGATIONS & set(known[max(0, at - BEFORE) : at]) for at in places):
            return following
    return ""


def _tokens(text: str) -> list[str]:
    return re.findall(
        r"[a-z]+", normalise(text).replace("n't", " not").replace("n’t", " not").replace("cannot", "can not")
    )
