"""Korean morphemes by Kiwi, as terms beside the bigrams. Loads 2.5 s and 550 MB at the first Korean text: an option."""

from __future__ import annotations

import threading
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dtrag.core.text.analysis import ANALYZER, Analyzer, normalise
from dtrag.core.text.patterns import HANGUL
from dtrag.errors import InvalidInput, MissingExtra
from dtrag.settings import Settings

if TYPE_CHECKING:
    from kiwipiepy import Kiwi

MARK = "ㅁ:"
"""Keeps a morpheme apart from the bigram that is spelled the same, so that each has statistics of its own."""
CONTENT = frozenset({"NNG", "NNP", "NNB", "NR", "NP", "VV", "VA", "XR", "MAG", "SL", "SN"})
"""Tags that carry content: nouns, verbs, adjectives, roots, adverbs, foreign words, numbers (Sejong tag set)."""


class Morphemes:
    """Callable: the content morphemes of a text, in order; nothing for a text without Hangul. Safe in threads."""

    def __init__(self) -> None:
        self._kiwi: Kiwi | None = None
        self._lock = threading.Lock()

    def __call__(self, text: str) -> list[str]:
        if not HANGUL.search(text):
            return []
        kiwi = self._loaded()
        with self._lock:
            tokens = kiwi.tokenize(normalise(text))
        return [
            MARK + token.form for token in tokens if token.tag.split("-")[0] in CONTENT and HANGUL.search(token.form)
        ]

    def load(self) -> None:
        """See `Loadable`."""
        self._loaded()

    def _loaded(self) -> Kiwi:
        with self._lock:
            if self._kiwi is None:
                from kiwipiepy import Kiwi

                self._kiwi = Kiwi(num_workers=1)
            return self._kiwi


def choose(settings: Settings) -> Analyzer:
    """The analyzer that the settings name: words and bigrams, and Korean morphemes beside them if configured.

    Raises `InvalidInput` for an unknown name and `MissingExtra` when the extra is not installed.
    """
    if settings.morphemes == "none":
        return Analyzer()
    if settings.morphemes != "kiwi":
        raise InvalidInput(f"DTRAG_MORPHEMES is {settings.morphemes!r}, but must be none or kiwi.")
    if find_spec("kiwipiepy") is None:
        raise MissingExtra(feature="DTRAG_MORPHEMES=kiwi", extra="kiwi")
    return Analyzer(f"{ANALYZER}+kiwi-1", Morphemes())
