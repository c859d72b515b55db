"""Mentions of document titles in passages, for questions that need a second document.

A question about the birthplace of a film's director needs two documents: only the first shares words with it, and the
first mentions the title of the second. Titles are compared folded, without a suffix in brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b

from dtrag.core.text.analysis import normalise
from dtrag.core.text.patterns import HANGUL
from dtrag.core.text.questions import TITLE_PARTICLE

MOST_WORDS = 7
MOST_HANGUL_WORDS = 3
"""Longest title that is recognised, in words; in Korean shorter, because every word may begin a title."""
LEAST_CHARACTERS, LEAST_HANGUL = 4, 3
"""Shorter titles are ordinary words."""

_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_BRACKETED = re.compile(r"\s*[(（][^)）]*[)）]\s*$")


def title_key(title: str) -> str:
    """The folded form for comparisons; "" for a title that is too short or too long."""
    words = _WORD.findall(normalise(_BRACKETED.sub("", title)))
    return _key(words) if len(words) <= MOST_WORDS else ""


def title_number(key: str) -> int:
    """A 64-bit hash of a key; 0 for "". Collisions are unlikely among 10 million titles."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little") if key else 0


@lru_cache(maxsize=4_096)
def mentioned_numbers(text: str) -> tuple[int, ...]:
    """The numbers of all titles that may be mentioned in a text; cached, because passages recur.

    1 ms for a passage of 2,000 characters, which is a fifth of a search.
    """
    return tuple(title_number(key) for key in mentions(text))


def mentions(text: str) -> list[str]:
    """The keys of all titles that may be mentioned in a text, in order, each once.

    A mention begins and ends with a word that has a capital, a digit or Hangul; a Korean particle after it is dropped.
    """
    keys: dict[str, None] = {}
    words = _WORD.findall(text)
    can_border = [
        word[0].isupper() or word[0].isdigit() or (not word.isascii() and "가" <= word[0] <= "힣") for word in words
    ]
    if not any(can_border):
        return []
    folded = [word.lower() if word.isascii() else normalise(word) for word in words]
    for start, word in enumerate(words):
        if can_border[start]:
            most = MOST_HANGUL_WORDS if HANGUL.match(word) else MOST_WORDS
            for end in range(start + 1, min(len(words), start + most) + 1):
                if can_border[end - 1]:
                    keys.update((key, None) for key in _forms(folded[start:end]) if key)
    return list(keys)


def _forms(words: list[str]) -> Iterator[str]:
    yield _key(words)
    bare = TITLE_PARTICLE.sub("", words[-1])
    if bare != words[-1]:
        yield _key([*words[:-1], bare])


def _key(words: list[str]) -> str:
    key = " ".join(words)
    return key if len(key) >= (LEAST_HANGUL if HANGUL.search(key) else LEAST_CHARACTERS) else ""
