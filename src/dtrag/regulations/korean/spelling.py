"""Misspelt and inflected Korean words, compared by letters (jamo), without a dictionary: 바꾸다 is written 바꿔."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

Value = TypeVar("Value")
LONGER = 3
"""Syllables by which a word of a question may be longer than the known word: particles and endings."""
_FIRST, _LAST = 0xAC00, 0xD7A3
_FINALS = 28
_VOWELS = 21
_OPEN = frozenset((0, 4, 8, 16, 17, 20))
"""Final consonants that endings put under a stem that ends in a vowel: none, ㄴ, ㄹ, ㅁ, ㅂ, ㅆ."""
_CONTRACTED = {14: 13, 6: 20, 9: 8, 10: 11, 1: 0, 4: 18}
"""Vowel of a stem with -아/-어 to the vowel of the stem: ㅝ ㅜ, ㅕ ㅣ, ㅘ ㅗ, ㅙ ㅚ, ㅐ ㅏ, ㅓ ㅡ."""


def letters(word: str) -> str:
    """The word in letters: 휴학 gives ㅎㅠㅎㅏㄱ (conjoining jamo)."""
    return unicodedata.normalize("NFD", word)


def within_one(left: str, right: str) -> bool:
    """Whether `left` and `right` differ by one inserted, deleted or replaced letter, or by two exchanged ones."""
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
    """Looks up words in spite of one wrong letter (symmetric deletion: Garbe 2012, *SymSpell*)."""

    def __init__(self, words: Iterable[tuple[str, Value]]) -> None:
        self._values: dict[str, list[Value]] = {}
        self._deletions: dict[str, set[str]] = {}
        for word, value in words:
            self._values.setdefault(word, []).append(value)
        self._longest = max((len(letters(word)) for word in self._values), default=0)
        for word in self._values:
            for shorter in _one_less(letters(word)):
                self._deletions.setdefault(shorter, set()).add(word)

    def nearest(self, word: str) -> Iterator[Value]:
        """The values of the words that differ by one letter from a prefix of `word`, the longest such prefix."""
        for length in range(len(word), max(2, len(word) - LONGER - 1), -1):
            spelt = letters(word[:length])
            if len(spelt) > self._longest + 1:
                continue
            similar = {
                other
                for shorter in _one_less(spelt)
                for other in self._deletions.get(shorter, ())
                if within_one(spelt, letters(other))
            }
            if similar:
                for other in sorted(similar):
                    yield from self._values[other]
                return


def _one_less(text: str) -> set[str]:
    return {text, *(text[:at] + text[at + 1 :] for at in range(len(text)))}


def begins(token: str, word: str) -> bool:
    """Whether `word` begins with `token` (two syllables or more), or with another form of the verb that it writes.

    Only the last syllable of `token` may differ: 옮기 begins 옮겨서 and 옮긴, but not 옮은.
    """
    if word.startswith(token):
        return True
    last = len(token) - 1
    return (
        last > 0
        and len(word) > last
        and word[:last] == token[:last]
        and _stem(word[last]) is not None
        and _stem(word[last]) == _stem(token[last])
    )


def _stem(syllable: str) -> tuple[int, int] | None:
    """Initial consonant and vowel of the stem that a syllable can be a form of; None for other syllables."""
    number = ord(syllable)
    if not _FIRST <= number <= _LAST:
        return None
    initial, rest = divmod(number - _FIRST, _VOWELS * _FINALS)
    vowel, final = divmod(rest, _FINALS)
    return (initial, _CONTRACTED.get(vowel, vowel)) if final in _OPEN else None
