"""The gate of the case memory: whether two questions ask the same, with the synonyms of the regulation lexicon.

It needs no data folder, no database and no model.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from dtrag.core.cases.same_question import SameQuestion, same_question
from dtrag.packs.regulation_ko.lexicon import Lexicon, built_in, words_of

Gate = Callable[[str, str], SameQuestion]
OFFICIAL_WORDS = 1
"""Official words of an entry that count as its meaning; later ones are only related to it."""


class LexiconSynonyms:
    """The synonyms of a regulation lexicon, as the comparison of two questions needs them."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._official = frozenset(entry.official[0] for entry in lexicon.entries)
        self._known = frozenset(word for entry in lexicon.entries for word in entry.official) | frozenset(
            form for entry in lexicon.entries for form in entry.spoken if " " not in form
        )
        self._explained = functools.lru_cache(4096)(self._matches)

    def knows(self, word: str) -> bool:
        """Whether the lexicon has this word, so that it is no typing error."""
        return word in self._known

    def official(self, words: Sequence[str]) -> Sequence[tuple[tuple[int, ...], frozenset[str]]]:
        """Positions in `words` that an entry explains as it stands -> the best official words of the entry."""
        return self._explained(tuple(words))

    def _matches(self, words: tuple[str, ...]) -> list[tuple[tuple[int, ...], frozenset[str]]]:
        text = " ".join(words)
        if words_of(text) != list(words):
            return []
        return [
            (match.words, frozenset(match.entry.official[:OFFICIAL_WORDS]))
            for match in self._lexicon.matches(text)
            if match.by == "words" and len(match.words) == match.size and self._is_whole(match.form, match.words, words)
        ]

    def _is_whole(self, form: str, positions: tuple[int, ...], words: Sequence[str]) -> bool:
        """Whether a form of one word is the written word itself, and not also an official word."""
        return len(positions) > 1 or (words[positions[0]] == form and form not in self._official)


@functools.cache
def gate() -> Gate:
    """The gate with the built-in lexicon. Blocking: reads the lexicon once."""
    return functools.partial(same_question, synonyms=LexiconSynonyms(built_in()))
