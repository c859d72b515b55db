"""Korean morphemes by Kiwi, as terms beside the bigrams. Loads 2.5 s and 550 MB at the first Korean text: an option."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

from dtrag.core.text.analysis import normalise

if TYPE_CHECKING:
    from kiwipiepy import Kiwi

MARK = "ㅁ:"
"""Keeps a morpheme apart from the bigram that is spelled the same, so that each has statistics of its own."""
CONTENT = frozenset({"NNG", "NNP", "NNB", "NR", "NP", "VV", "VA", "XR", "MAG", "SL", "SN"})
"""Tags that carry content: nouns, verbs, adjectives, roots, adverbs, foreign words, numbers (Sejong tag set)."""
_HANGUL = re.compile(r"[가-힣]")


class Morphemes:
    """Callable: the content morphemes of a text, in order; nothing for a text without Hangul. Safe in threads."""

    def __init__(self) -> None:
        self._kiwi: Kiwi | None = None
        self._lock = threading.Lock()

    def __call__(self, text: str) -> list[str]:
        if not _HANGUL.search(text):
            return []
        kiwi = self._loaded()
        with self._lock:
            tokens = kiwi.tokenize(normalise(text))
        return [
            MARK + token.form for token in tokens if token.tag.split("-")[0] in CONTENT and _HANGUL.search(token.form)
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
