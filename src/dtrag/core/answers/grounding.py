"""Lexical support of a sentence by a passage; pure functions, measured by bench/support.py.

Support is the coverage of the sentence's content words, and three properties that a faithful paraphrase keeps: numbers,
names and negation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dtrag.core.text.analysis import STOP_WORDS, language, normalise, terms
from dtrag.core.text.numbers import LATIN, NUMBER, numbers_in, spelt_numbers
from dtrag.core.text.patterns import explained
from dtrag.core.text.questions import content
from dtrag.core.text.sentences import AnalysedSentence, Preceding, sentences_after

SUPPORTED = 0.35
"""Minimum share of the weight of a sentence's content words for support by the passage. On the even
rows of bench/support.py .35, .45, .55 wrongly mark .06, .09, .15 of FaithBench's faithful sentences; swapped names are
caught at .96 and sentences from elsewhere at .95 with each of them."""
STRONG = 0.7
"""Minimum share for citing a passage for a sentence without a citation."""
MIRRORED = 0.8
"""Share of a passage's sentence that stands in the claim, from which on a "not" that it has and the claim lacks is a
contradiction rather than another part of a long sentence."""
VERBATIM = 0.7
"""Share of a claim's words in one sentence of a passage from which on it repeats that sentence: then a word or number
that is missing there has been changed rather than drawn from elsewhere. With .7 and .8 Korean nouns swapped in KorQuAD
sentences are caught at .93 and .85, and .15 and .13 of KLUE's entailments wrongly marked."""
WINDOW = 3
"""Neighbouring sentences of a passage that may support one sentence together."""
NUMBER_WEIGHT = 2.0

_NAME = re.compile(r"(?<![\w.])[A-Z][\w&'’-]*\w")
_NOUN = re.compile(
    r"(?<![가-힣])[가-힣]{2,6}?(?=(?:은|는|이|가|을|를|의|에서|에게|으로|로|와|과|이다|입니다)(?:[\s.,]|$))"
)
_ENDING = explained(
    r"(?<=[가-힣])(?:하였습니다|되었습니다|했습니다|됐습니다|입니다|합니다|됩니다|습니다|이라고|하였다|되었다|했다|됐다"
    r"|한다|된다|이다|였다|하며|되며|하고|되고|하여|되어|해야|되는|하는|하지|되지|하면|되면|할|될|한|된|함|됨|다)(?=[\s.,;:!?)\]]|$)",
    finds="신청한다.",
    refuses="신청한다고",
)
_DENIED_EN = explained(
    r"\b(?:not|no|never|none|nor|neither|cannot|without|nobody|nothing|hardly|barely)\b|n['’]t\b",
    flags=re.I,
    finds=("isn't", "without leave"),
    refuses="notice",
)
_MODAL = frozenset({"must", "shall", "need", "may", "can", "ever", "allow", "permit"})
"""Words that depend on a negation."""
_DENIED_KO = re.compile(
    r"않|아니|아닌|아닙|못하|못한|못\s|없[다는이을습었어으]|(?:^|\s)안\s|[가-힣]지\s?말|금지|불가|불허"
)


@dataclass(frozen=True, slots=True)
class Claim:
    """Content of a sentence: words with their weights, and what a faithful paraphrase keeps.

    `numbers` and `names` map the form in `PassageSentence` to the written form; `nouns` are Hangul words with a
    particle, because Korean names cannot be recognised by their spelling.
    """

    words: dict[str, float]
    numbers: dict[str, str]
    names: dict[str, str]
    nouns: tuple[str, ...]
    denied: bool


@dataclass(frozen=True, slots=True)
class PassageSentence:
    """A sentence `[start, end)` of a passage and its words, with those of the headings; `own` are its content words.

    A heading, a lead-in or the header of a table is not `quotable`: it supports only together with what it heads.
    """

    start: int
    end: int
    words: frozenset[str]
    own: frozenset[str]
    numbers: frozenset[str]
    denied: bool
    quotable: bool = True


@dataclass(frozen=True, slots=True)
class Support:
    """Support of a claim by a span: `share` in [0, 1] of the claim's words; `reason` is "" or says what is missing."""

    share: float
    start: int
    end: int
    reason: str = ""


def claim_of(sentence: str) -> Claim:
    """The content of a sentence; without words when the sentence has no content."""
    bare = _ENDING.sub(" ", content(sentence)) if language(sentence) == "ko" else sentence
    words: dict[str, float] = {}
    numbers = spelt_numbers(sentence)
    for term in terms(bare) or terms(sentence):
        if not NUMBER.fullmatch(term):
            words[term] = _weight(term)
    words |= {f"#{number}": NUMBER_WEIGHT for number in numbers}
    nouns = tuple(dict.fromkeys(_NOUN.findall(sentence)))
    return Claim(words, numbers, _names(sentence), nouns, denied(sentence))


def _weight(term: str) -> float:
    """Weight by length, because long words are rare: 1 for up to four letters, 2 from eight; a Hangul pair has 1."""
    return min(2.0, max(1.0, len(term) / 4)) if term.isascii() else min(1.0, len(term) / 2)


def denied(text: str) -> bool:
    """Whether the text contains a negation, in English or Korean."""
    return bool(_DENIED_EN.search(text) or _DENIED_KO.search(text))


def _names(sentence: str) -> dict[str, str]:
    """Names of people, places and things: capitals in English but for the first word, Latin letters in Korean."""
    if language(sentence) == "ko":
        names = [(word, word) for word in LATIN.findall(normalise(sentence)) if len(word) > 1]
    else:
        lead = len(sentence) - len(sentence.lstrip(" \t\n\"'“‘([*#-"))
        names = [
            (match.group().casefold().removesuffix("'s").removesuffix("’s"), match.group())
            for match in _NAME.finditer(sentence)
            if match.start() > lead
        ]
    return {key: shown for key, shown in names if key not in STOP_WORDS}


@lru_cache(maxsize=256)
def passage_sentences(
    text: str, around: str = "", preceding: Preceding | None = None, start: int = 0
) -> tuple[PassageSentence, ...]:
    """The sentences of a passage; the words of `around` (its title and headings) are added to each of them.

    So are header and unit of a table row, and the lead-in of a list item; `preceding` and `start` as in
    `sentences_after`.

    Cached for a few hundred passages of about 50 kB: reading five takes nine tenths of the time of a check.
    """
    more = frozenset(_words(around)) | {f"#{number}" for number in numbers_in(around)}
    return tuple(_passage_sentence(unit, more) for unit in sentences_after(preceding, text, start))


def _passage_sentence(unit: AnalysedSentence, more: frozenset[str]) -> PassageSentence:
    numbers = numbers_in(unit.display)
    words = more.union(_words(unit.display), unit.context_terms, (f"#{number}" for number in numbers))
    claim = claim_of(unit.display)
    own = frozenset(claim.words)
    return PassageSentence(unit.start, unit.end, words, own, numbers, claim.denied, unit.quotable)


def _words(text: str) -> Iterator[str]:
    yield from terms(text)
    yield from LATIN.findall(normalise(text))


def support_of(claim: Claim, passage: Sequence[PassageSentence]) -> Support:
    """The run of at most `WINDOW` neighbouring sentences with the best support, and what it lacks.

    Numbers and names may be elsewhere in the passage, because a model's sentence combines distant parts of a text.
    """
    best, reach = Support(0.0, 0, 0), (0, 0)
    ranking = (-1.0, 0)
    total = sum(claim.words.values())
    if not passage or not total:
        return best
    quotable = any(sentence.quotable for sentence in passage)
    for first in range(len(passage)):
        if quotable and not passage[first].quotable:
            continue
        words: set[str] = set()
        numbers: set[str] = set()
        for last in range(first, min(first + WINDOW, len(passage))):
            words |= passage[last].words
            numbers |= passage[last].numbers
            if quotable and not passage[last].quotable:
                continue
            share = sum(weight for term, weight in claim.words.items() if term in words) / total
            kept_numbers = sum(number in numbers for number in claim.numbers)
            # A longer run must gain something.
            if (share + 0.1 * kept_numbers - 0.04 * (last - first), first - last) > ranking:
                ranking = (share + 0.1 * kept_numbers - 0.04 * (last - first), first - last)
                best, reach = Support(share, passage[first].start, passage[last].end), (first, last + 1)
    return Support(best.share, best.start, best.end, _lacking(claim, passage, passage[reach[0] : reach[1]]))


def combined_support(claim: Claim, passage: Sequence[PassageSentence]) -> Support:
    """Support of a claim by all of these sentences together, from any passages."""
    total = sum(claim.words.values())
    if not passage or not total:
        return Support(0.0, 0, 0)
    words = frozenset[str]().union(*(sentence.words for sentence in passage))
    share = sum(weight for term, weight in claim.words.items() if term in words) / total
    return Support(share, passage[0].start, passage[-1].end, _lacking(claim, passage, passage))


def _lacking(claim: Claim, passage: Sequence[PassageSentence], run: Sequence[PassageSentence]) -> str:
    """What the passage lacks, or how it contradicts the claim; "" when neither."""
    words = frozenset[str]().union(*(sentence.words for sentence in passage))
    nearest = max(run, key=lambda sentence: _share(claim, sentence.words))
    verbatim = _share(claim, nearest.words) >= VERBATIM
    if missing := _missing(claim, words, verbatim):
        return f"{missing} is not in the passage"
    if verbatim:
        for number, shown in claim.numbers.items():
            if all(f"#{number}" not in sentence.words for sentence in run):
                return f"the number {shown} is not where the passage says the rest"
    if claim.denied and not any(sentence.denied for sentence in ((nearest,) if verbatim else run)):
        return "it denies what the passage says"
    if not claim.denied and any(sentence.denied and _mirrors(claim, sentence) for sentence in run):
        return "it says what the passage denies"
    return ""


def _missing(claim: Claim, words: frozenset[str], verbatim: bool) -> str:
    """The first number or name that is not among `words`; with `verbatim` also a noun."""
    for number, shown in claim.numbers.items():
        if f"#{number}" not in words:
            return f"the number {shown}"
    for name, shown in claim.names.items():
        if name not in words and words.isdisjoint(terms(shown)):
            return f"“{shown}”"
    nouns = claim.nouns if verbatim else ()
    return next((f"“{noun}”" for noun in nouns if words.isdisjoint(terms(noun))), "")


def _share(claim: Claim, words: frozenset[str]) -> float:
    """Share of the weight of the claim's words, without numbers, that are among `words`."""
    own = {word: weight for word, weight in claim.words.items() if not word.startswith("#")}
    total = sum(own.values())
    return sum(weight for word, weight in own.items() if word in words) / total if total else 0.0


def _mirrors(claim: Claim, sentence: PassageSentence) -> bool:
    """Whether the claim repeats nearly all of the sentence, so that only the negation is missing."""
    theirs = sentence.own - _MODAL
    return bool(theirs) and sum(word in claim.words for word in theirs) >= MIRRORED * len(theirs)
