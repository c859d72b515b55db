"""How far a passage backs what a sentence says, by its words: pure, so that it can be measured (bench/support.py).

Words say what is told of, not whether it is true: coverage of the sentence's content words, and three things that an
honest paraphrase keeps: numbers, names, and whether something is denied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dtrag.core.text.analysis import STOP_WORDS, language, normalise, sentences, terms
from dtrag.core.text.numbers import LATIN, NUMBER, numbers_in, spelt_numbers
from dtrag.core.text.questions import content

SUPPORTED = 0.35
"""Share of the weight of a sentence's content words from which on its words count as said by the passage. On the even
rows of bench/support.py .35, .45, .55 wrongly mark .06, .09, .15 of FaithBench's faithful sentences; swapped names are
caught at .96 and sentences from elsewhere at .95 with each of them."""
STRONG = 0.7
"""Share from which on a passage is cited for a sentence that cites none."""
MIRRORED = 0.8
"""Share of a passage's sentence that stands in the claim, from which on a "not" that it has and the claim lacks is a
contradiction rather than another part of a long sentence."""
VERBATIM = 0.7
"""Share of a claim's words in one sentence of a passage from which on it repeats that sentence: then a word or number
that is missing there has been changed rather than drawn from elsewhere. With .7 and .8 Korean nouns swapped in KorQuAD
sentences are caught at .93 and .85, and .15 and .13 of KLUE's entailments wrongly marked."""
WINDOW = 3
"""Neighbouring sentences of a passage that may back one sentence together."""
NUMBER_WEIGHT = 2.0

_NAME = re.compile(r"(?<![\w.])[A-Z][\w&'’-]*\w")
_NOUN = re.compile(
    r"(?<![가-힣])[가-힣]{2,6}?(?=(?:은|는|이|가|을|를|의|에서|에게|으로|로|와|과|이다|입니다)(?:[\s.,]|$))"
)
_ENDING = re.compile(
    r"(?<=[가-힣])(?:하였습니다|되었습니다|했습니다|됐습니다|입니다|합니다|됩니다|습니다|이라고|하였다|되었다|했다|됐다"
    r"|한다|된다|이다|였다|하며|되며|하고|되고|하여|되어|해야|되는|하는|하지|되지|하면|되면|할|될|한|된|함|됨|다)(?=[\s.,;:!?)\]]|$)"
)
_DENIED_EN = re.compile(
    r"\b(?:not|no|never|none|nor|neither|cannot|without|nobody|nothing|hardly|barely)\b|n['’]t\b", re.I
)
_MODAL = frozenset({"must", "shall", "need", "may", "can", "ever", "allow", "permit"})
"""Words that come and go with a denial."""
_DENIED_KO = re.compile(
    r"않|아니|아닌|아닙|못하|못한|못\s|없[다는이을습었어으]|(?:^|\s)안\s|[가-힣]지\s?말|금지|불가|불허"
)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a sentence says: its content words with their weights, and what must be kept.

    `numbers` and `names` are spelt as `Said` spells them, each with the spelling that a reader knows; `nouns` are
    Hangul words with a particle: names cannot be told by their looks there.
    """

    words: dict[str, float]
    numbers: dict[str, str]
    names: dict[str, str]
    nouns: tuple[str, ...]
    denied: bool


@dataclass(frozen=True, slots=True)
class PassageSentence:
    """A span of a passage, `[start, end)`, and what stands in it; `own` are its content words."""

    start: int
    end: int
    words: frozenset[str]
    own: frozenset[str]
    numbers: frozenset[str]
    denied: bool


@dataclass(frozen=True, slots=True)
class Support:
    """How far a span backs a claim: `share` in [0, 1] of the claim's words; `reason` is "" or says what is missing."""

    share: float
    start: int
    end: int
    reason: str = ""


def claim_of(sentence: str) -> Claim:
    """What is to be found in a passage; no words for a sentence that says nothing."""
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
    """Long words are rare words, by and large: 1 for up to four letters, 2 from eight up; a Hangul pair counts 1."""
    return min(2.0, max(1.0, len(term) / 4)) if term.isascii() else min(1.0, len(term) / 2)


def denied(text: str) -> bool:
    """Whether something is denied in it, in English or Korean."""
    return bool(_DENIED_EN.search(text) or _DENIED_KO.search(text))


def _names(sentence: str) -> dict[str, str]:
    """Names of people, places and things: capitals in English but for the first word, Latin letters in Korean."""
    if language(sentence) == "ko":
        found = [(word, word) for word in LATIN.findall(normalise(sentence)) if len(word) > 1]
    else:
        lead = len(sentence) - len(sentence.lstrip(" \t\n\"'“‘([*#-"))
        found = [
            (match.group().casefold().removesuffix("'s").removesuffix("’s"), match.group())
            for match in _NAME.finditer(sentence)
            if match.start() > lead
        ]
    return {key: shown for key, shown in found if key not in STOP_WORDS}


@lru_cache(maxsize=256)
def said_in(text: str, around: str = "") -> tuple[PassageSentence, ...]:
    """The sentences of a passage; `around` is said with each of them (its title and headings).

    Kept for a few hundred passages, some 50 kB each: reading five of them is nine tenths of a check.
    """
    more = frozenset(_words(around)) | {f"#{number}" for number in numbers_in(around)}
    return tuple(_said(text[start:end], start, end, more) for start, end in sentences(text))


def _said(sentence: str, start: int, end: int, more: frozenset[str]) -> PassageSentence:
    numbers = numbers_in(sentence)
    words = more.union(_words(sentence), (f"#{number}" for number in numbers))
    claim = claim_of(sentence)
    return PassageSentence(start, end, words, frozenset(claim.words), numbers, claim.denied)


def _words(text: str) -> Iterator[str]:
    yield from terms(text)
    yield from LATIN.findall(normalise(text))


def backing(claim: Claim, said: Sequence[PassageSentence]) -> Support:
    """The run of at most `WINDOW` neighbouring sentences that backs the claim best, and what it lacks.

    Numbers and names may stand elsewhere in the passage: a model's sentence draws together what a text spreads out.
    """
    best, reach = Support(0.0, 0, 0), (0, 0)
    ranking = (-1.0, 0)
    total = sum(claim.words.values())
    if not said or not total:
        return best
    for first in range(len(said)):
        words: set[str] = set()
        numbers: set[str] = set()
        for last in range(first, min(first + WINDOW, len(said))):
            words |= said[last].words
            numbers |= said[last].numbers
            share = sum(weight for term, weight in claim.words.items() if term in words) / total
            kept = sum(number in numbers for number in claim.numbers)
            # A longer run must bring something for its length.
            if (share + 0.1 * kept - 0.04 * (last - first), first - last) > ranking:
                ranking = (share + 0.1 * kept - 0.04 * (last - first), first - last)
                best, reach = Support(share, said[first].start, said[last].end), (first, last + 1)
    return Support(best.share, best.start, best.end, _lacking(claim, said, said[reach[0] : reach[1]]))


def united(claim: Claim, said: Sequence[PassageSentence]) -> Support:
    """How far all of these together, from whichever passages, back a claim."""
    total = sum(claim.words.values())
    if not said or not total:
        return Support(0.0, 0, 0)
    words = frozenset[str]().union(*(one.words for one in said))
    share = sum(weight for term, weight in claim.words.items() if term in words) / total
    return Support(share, said[0].start, said[-1].end, _lacking(claim, said, said))


def _lacking(claim: Claim, said: Sequence[PassageSentence], run: Sequence[PassageSentence]) -> str:
    """What the passage lacks, or how it contradicts; "" when neither."""
    words = frozenset[str]().union(*(one.words for one in said))
    nearest = max(run, key=lambda one: _share(claim, one.words))
    verbatim = _share(claim, nearest.words) >= VERBATIM
    if missing := _missing(claim, words, verbatim):
        return f"{missing} is not in the passage"
    if verbatim:
        for number, shown in claim.numbers.items():
            if all(f"#{number}" not in one.words for one in run):
                return f"the number {shown} is not where the passage says the rest"
    if claim.denied and not any(one.denied for one in ((nearest,) if verbatim else run)):
        return "it denies what the passage says"
    if not claim.denied and any(one.denied and _mirrors(claim, one) for one in run):
        return "it says what the passage denies"
    return ""


def _missing(claim: Claim, words: frozenset[str], verbatim: bool) -> str:
    """The first number or name that is not among `words`; where the rest is repeated also a noun."""
    for number, shown in claim.numbers.items():
        if f"#{number}" not in words:
            return f"the number {shown}"
    for name, shown in claim.names.items():
        if name not in words and words.isdisjoint(terms(shown)):
            return f"“{shown}”"
    nouns = claim.nouns if verbatim else ()
    return next((f"“{noun}”" for noun in nouns if words.isdisjoint(terms(noun))), "")


def _share(claim: Claim, words: frozenset[str]) -> float:
    """Share of the weight of the claim's words, numbers apart, that are among `words`."""
    own = {word: weight for word, weight in claim.words.items() if not word.startswith("#")}
    total = sum(own.values())
    return sum(weight for word, weight in own.items() if word in words) / total if total else 0.0


def _mirrors(claim: Claim, one: PassageSentence) -> bool:
    """Whether the claim repeats nearly all of the sentence, so that it leaves out the denial alone."""
    theirs = one.own - _MODAL
    return bool(theirs) and sum(word in claim.words for word in theirs) >= MIRRORED * len(theirs)
