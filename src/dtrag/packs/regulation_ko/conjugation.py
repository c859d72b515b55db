"""Forms of one Korean verb, compared without a dictionary: 바꾸다 is written 바꿔, 바꿀, 바꾼, 바꿨."""

from __future__ import annotations

_FIRST, _LAST = 0xAC00, 0xD7A3
_FINALS = 28
_VOWELS = 21
_OPEN = frozenset((0, 4, 8, 16, 17, 20))
"""Final consonants that endings put under a stem that ends in a vowel: none, ㄴ, ㄹ, ㅁ, ㅂ, ㅆ."""
_CONTRACTED = {14: 13, 6: 20, 9: 8, 10: 11, 1: 0, 4: 18}
"""Vowel of a stem with -아/-어 to the vowel of the stem: ㅝ ㅜ, ㅕ ㅣ, ㅘ ㅗ, ㅙ ㅚ, ㅐ ㅏ, ㅓ ㅡ."""


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
