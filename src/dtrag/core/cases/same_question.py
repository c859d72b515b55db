"""Whether two questions ask the same, so that an earlier answer may be shown again.

Precision comes first: every number, name, condition, direction and word of the one question must be in the other one.
Embeddings cannot decide this: a question and its reversal are closer to each other than two wordings of one question.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from dtrag.core.cases.english_comparison import difference as english_difference
from dtrag.core.cases.english_question import read_english
from dtrag.core.cases.korean_comparison import Synonyms
from dtrag.core.cases.korean_comparison import difference as korean_difference
from dtrag.core.cases.korean_question import read_korean
from dtrag.core.cases.reading import LONGEST, Reading
from dtrag.core.text.analysis import clean, normalise

_HANGUL = re.compile(r"[가-힣]")
_LATIN = re.compile(r"[a-z]")


@dataclass(frozen=True, slots=True)
class SameQuestion:
    """Whether two questions ask the same; `reason` is a short phrase that says why or why not."""

    same: bool
    reason: str


def same_question(base: str, other: str, synonyms: Synonyms | None = None) -> SameQuestion:
    """Whether the two questions ask the same; symmetric in `base` and `other`."""
    left, right = _folded(base), _folded(other)
    if left == right:
        return SameQuestion(True, "the same text")
    if max(len(left), len(right)) > LONGEST:
        return SameQuestion(False, f"longer than {LONGEST} characters")
    korean = [bool(_HANGUL.search(text)) for text in (left, right)]
    if korean[0] != korean[1]:
        return SameQuestion(False, "another language")
    if not korean[0] and not (_LATIN.search(left) and _LATIN.search(right)):
        return SameQuestion(False, "the text differs")
    reason = _korean(base, other, synonyms) if korean[0] else _english(base, other)
    return SameQuestion(not reason, reason or "the same words and statements")


@functools.lru_cache(4096)
def _folded(question: str) -> str:
    return normalise(clean(question[: 4 * LONGEST])) + question[4 * LONGEST :]


@functools.lru_cache(4096)
def _read_english(question: str) -> Reading:
    return read_english(question, _folded(question))


@functools.lru_cache(4096)
def _read_korean(question: str) -> Reading:
    return read_korean(_folded(question))


def _english(base: str, other: str) -> str:
    left, right = _read_english(base), _read_english(other)
    if left.compact and left.compact == right.compact:
        return ""
    if not left.units or not right.units:
        return "no content word"
    return english_difference(left, right) or english_difference(right, left)


def _korean(base: str, other: str, synonyms: Synonyms | None) -> str:
    left, right = _read_korean(base), _read_korean(other)
    if left.compact and left.compact == right.compact:
        return ""
    if not left.units or not right.units:
        return "no content word"
    return korean_difference(left, right, synonyms) or korean_difference(right, left, synonyms)
