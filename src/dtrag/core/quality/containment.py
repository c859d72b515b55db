"""Whether a text contains a value or a sentence as a whole, not as a part of a longer number or word."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dtrag.core.text.analysis import normalise

_ITEM_MARK = re.compile(r"[①-⑳]")
"""A circled number is a mark of an item; NFKC would turn it into digits of the number behind it."""
_LATIN = re.compile(r"[a-zß-ɏ]")
_HANGUL = re.compile(r"[가-힣]")
_NUMBER_BEFORE = re.compile(r"(?:[\da-z]|\d[.,])\Z")
_NUMBER_AFTER = re.compile(r"\d|[.,]\d")
_LATIN_BESIDE = re.compile(r"[\da-zß-ɏ]")


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
    elif _LATIN.match(first):
        goes_on = _LATIN_BESIDE.match(before[-1:]) is not None
    else:
        goes_on = _HANGUL.match(first) is not None and before[-1:].isalnum()
    if last.isdigit():
        return not goes_on and _NUMBER_AFTER.match(after) is None
    return not goes_on and not (_LATIN.match(last) and _LATIN_BESIDE.match(after[:1]))


def _folded(text: str) -> str:
    return normalise(_ITEM_MARK.sub(" ", text)).rstrip(".。 ")
