"""The index terms of an article and where they are: in its title, or in which of its sentences.

The terms of one text never change, so they are cached by the content of the article. A cache entry can only be read
with the text itself, which a search passes here only after it was fetched in the caller's scope.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dtrag.core.text.analysis import normalise, sentences, term_id, terms

MAX_SENTENCES = 60
"""Sentences of an article that are distinguished: each is one bit of a `uint64`."""
CACHED_ARTICLES = 8_192
"""Articles whose terms are cached: about 2 kB each, and the text as the key. A book of regulations has about 5,000."""
_TITLE, _WHOLE = 1 << 61, 1 << 62
_SENTENCES = _TITLE - 1
TAIL_LENGTH = 16
"""Last characters of a sentence in which a term may begin that ends in the next sentence."""
_ARTICLE_TAIL = re.compile(r"제 ?(?:\d{1,4}(?: ?조의?)?)?$")
_IDENTIFIER_TAIL = re.compile(r"[a-z0-9][._+#/&'’-]*$")


@functools.lru_cache(8_192)
def term_ids(text: str) -> frozenset[int]:
    """The term ids of a short text, such as a heading."""
    return frozenset(map(term_id, terms(text)))


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which of a question's terms a text contains, as bit masks: bit n stands for the n-th term of the question.

    `sentences` are the distinct masks of the sentences, without those that contain no term of the question.
    """

    whole: int
    title: int
    sentences: frozenset[int]


@dataclass(frozen=True, slots=True, eq=False)
class ArticleTerms:
    """The distinct term ids of an article, ascending; `places` has bits for sentences, title and the whole."""

    ids: NDArray[np.int64]
    places: NDArray[np.uint64]

    @classmethod
    def of(cls, title: str, headings: Iterable[str], text: str) -> ArticleTerms:
        """The terms of title, other headings and text."""
        spans = list(sentences(text))
        places: dict[int, int] = {}
        for number, (start, end) in enumerate(spans[:MAX_SENTENCES]):
            bit = 1 << number
            for term in set(terms(text[start:end])):
                key = term_id(term)
                places[key] = places.get(key, 0) | bit
        of_text = places.keys() if _sentences_have_all_terms(text, spans) else set(map(term_id, terms(text)))
        for key in of_text:
            places[key] = places.get(key, 0) | _WHOLE
        for heading in headings:
            for key in term_ids(heading):
                places[key] = places.get(key, 0) | _WHOLE
        for key in term_ids(title):
            places[key] = places.get(key, 0) | _WHOLE | _TITLE
        ids = np.fromiter(places.keys(), np.int64, len(places))
        order = np.argsort(ids)
        return cls(ids[order], np.fromiter(places.values(), np.uint64, len(places))[order])

    def coverage(self, question: NumberedTerms) -> Coverage:
        """Which terms of the question the article contains, and where."""
        whole = title = 0
        of_sentence: dict[int, int] = {}
        if len(self.ids) and len(question.ids):
            rows = np.minimum(self.ids.searchsorted(question.ids), len(self.ids) - 1)
            present = self.ids[rows] == question.ids
            for bit, places in zip(question.bits[present].tolist(), self.places[rows[present]].tolist(), strict=True):
                mask = 1 << bit
                if places & _WHOLE:
                    whole |= mask
                if places & _TITLE:
                    title |= mask
                in_sentences = places & _SENTENCES
                while in_sentences:
                    lowest = in_sentences & -in_sentences
                    of_sentence[lowest] = of_sentence.get(lowest, 0) | mask
                    in_sentences ^= lowest
        return Coverage(whole, title, frozenset(of_sentence.values()))


def _sentences_have_all_terms(text: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether the terms of the sentences are certainly those of the text: no term may begin in one and end in the next.

    Only the number of an article may contain a blank; without a blank, ① continues an identifier as a 1.
    """
    if len(spans) > MAX_SENTENCES:
        return False
    for (_, end), (start, _) in itertools.pairwise(spans):
        tail = normalise(text[max(0, end - TAIL_LENGTH) : end])
        if _ARTICLE_TAIL.search(tail) or (start == end and _IDENTIFIER_TAIL.search(tail)):
            return False
    return True


class NumberedTerms:
    """The terms of a question, numbered, so that a set of them is an integer."""

    def __init__(self, terms: Iterable[int]) -> None:
        self.ids = np.array(sorted(set(terms)), np.int64)
        self.bits = np.arange(len(self.ids))
        self._bit_of: Mapping[int, int] = {term: bit for bit, term in enumerate(self.ids.tolist())}

    def mask(self, terms: Iterable[int]) -> int:
        """The set of these terms; all of them are terms of the question."""
        return sum(1 << self._bit_of[term] for term in terms)


@functools.lru_cache(CACHED_ARTICLES)
def article_terms(regulation: str, title: str, divisions: str, text: str) -> ArticleTerms:
    """The terms of an article, cached by its content."""
    return ArticleTerms.of(title, (regulation, divisions), text)
