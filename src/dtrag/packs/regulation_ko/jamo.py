"""Misspelt Korean words: distance by letters (jamo), one letter wrong, missing or too many."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

Value = TypeVar("Value")
LONGER = 3
"""Syllables that a question's word may be longer than the word it is compared with: particles and endings."""


def letters(word: str) -> str:
    """The word in letters: 휴학 gives ㅎㅠㅎㅏㄱ (conjoining jamo)."""
    return unicodedata.normalize("NFD", word)


def within_one(left: str, right: str) -> bool:
    """Whether one inserted, deleted or replaced letter, or two exchanged ones, make `left` into `right`."""
    if abs(len(left) - len(right)) > 1:
        return False
    start = 0
    while start < min(len(left), len(right)) and left[start] == right[start]:
        start += 1
    a, b = left[start:], right[start:]
    if len(a) == len(b):
        return a[1:] == b[1:] or (len(a) > 1 and a[0] == b[1] and a[1] == b[0] and a[2:] == b[2:])
    return a[1:] == b if len(a) > len(b) else b[1:] == a


class SpellingIndex(Generic[Value]):
    """Words that are found when one letter of them is wrong (symmetric deletion: Garbe 2012, *SymSpell*)."""

    def __init__(self, words: Iterable[tuple[str, Value]]) -> None:
        self._values: dict[str, list[Value]] = {}
        self._deletions: dict[str, set[str]] = {}
        for word, value in words:
            self._values.setdefault(word, []).append(value)
        for word in self._values:
            for shorter in _one_less(letters(word)):
                self._deletions.setdefault(shorter, set()).add(word)

    def nearest(self, word: str) -> Iterator[Value]:
        """The values of the words that a beginning of `word` is one letter away from; the longest beginning decides."""
        for length in range(len(word), max(2, len(word) - LONGER - 1), -1):
            spelt = letters(word[:length])
            near = {
                known
                for shorter in _one_less(spelt)
                for known in self._deletions.get(shorter, ())
                if within_one(spelt, letters(known))
            }
            if near:
                for known in sorted(near):
                    yield from self._values[known]
                return


def _one_less(text: str) -> set[str]:
    return {text, *(text[:at] + text[at + 1 :] for at in range(len(text)))}
