"""The index terms of an article and where they are: in its title, or in which of its sentences.

The terms of one text never change, so they are cached by the text of each piece (passage): whichever pieces of an
article a search returns, none is analysed again. A cache entry can only be read with the text itself, which a search
passes here only after it was fetched in the caller's scope.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dtrag.core.text import analysis
from dtrag.core.text.analysis import normalise, sentences

MAX_SENTENCES = 60
"""Sentences of an article that are distinguished: each is one bit of a `uint64`."""
CACHED_PIECES = 8_192
"""Pieces of articles whose terms are cached: about 1 kB each, and the text as the key. A book of 371 regulations has
6,261."""
_WHOLE = 1 << 62
TAIL_LENGTH = 16
"""Last characters of a sentence in which a term may begin that ends in the next sentence."""
_ARTICLE_TAIL = re.compile(r"제 ?(?:\d{1,4}(?: ?조의?)?)?$")
_IDENTIFIER_TAIL = re.compile(r"[a-z0-9][._+#/&'’-]*$")


@functools.lru_cache(8_192)
def term_ids(text: str) -> frozenset[int]:
    """The term ids of a short text, such as a heading."""
    return frozenset(analysis.term_ids(text))


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which of a question's terms a text contains, as bit masks: bit n stands for the n-th term of the question.

    `sentences` are the distinct masks of the sentences (the first `MAX_SENTENCES` of the article), without those that
    contain no term of the question.
    """

    whole: int
    title: int
    sentences: frozenset[int]


@dataclass(frozen=True, slots=True, eq=False)
class PieceTerms:
    """The distinct term ids of a piece of an article, ascending; `places` has bits for sentences and the whole.

    `sentences` is the number of all sentences; `may_continue` says whether a term that begins in the last one may end
    in the next piece.
    """

    ids: NDArray[np.int32]
    places: NDArray[np.uint64]
    sentences: int
    may_continue: bool

    @classmethod
    def of(cls, text: str) -> PieceTerms:
        """The terms of a text."""
        spans = list(sentences(text))
        is_complete = _sentences_have_all_terms(text, spans)
        places: dict[int, int] = {}
        for number, (start, end) in enumerate(spans[:MAX_SENTENCES]):
            bit = 1 << number | _WHOLE * is_complete
            for key in set(analysis.term_ids(text[start:end])):
                places[key] = places.get(key, 0) | bit
        for key in () if is_complete else set(analysis.term_ids(text)):
            places[key] = places.get(key, 0) | _WHOLE
        ids = np.fromiter(places.keys(), np.int32, len(places))
        order = np.argsort(ids)
        may_continue = bool(spans) and _ARTICLE_TAIL.search(_tail(text, spans[-1][1])) is not None
        return cls(ids[order], np.fromiter(places.values(), np.uint64, len(places))[order], len(spans), may_continue)


def coverage(question: NumberedTerms, title: str, headings: Iterable[str], pieces: Sequence[str]) -> Coverage:
    """Which terms of the question an article contains, and where: its pieces count as one text, with line breaks."""
    analysed = [piece_terms(piece) for piece in pieces]
    if any(piece.may_continue for piece in analysed[:-1]):
        analysed = [piece_terms("\n".join(pieces))]
    of_title = question.mask(term_ids(title) & question.terms)
    whole = of_title
    for heading in headings:
        whole |= question.mask(term_ids(heading) & question.terms)
    sentence_masks: set[int] = set()
    counted = 0
    for piece in analysed:
        of_sentence: dict[int, int] = {}
        distinguished = (1 << max(0, MAX_SENTENCES - counted)) - 1
        counted += piece.sentences
        if not len(piece.ids) or not len(question.ids):
            continue
        rows = np.minimum(piece.ids.searchsorted(question.ids), len(piece.ids) - 1)
        present = piece.ids[rows] == question.ids
        for bit, places in zip(question.bits[present].tolist(), piece.places[rows[present]].tolist(), strict=True):
            mask = 1 << bit
            if places & _WHOLE:
                whole |= mask
            in_sentences = places & distinguished
            while in_sentences:
                lowest = in_sentences & -in_sentences
                of_sentence[lowest] = of_sentence.get(lowest, 0) | mask
                in_sentences ^= lowest
        sentence_masks.update(of_sentence.values())
    return Coverage(whole, of_title, frozenset(sentence_masks))


def _sentences_have_all_terms(text: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether the terms of the sentences are certainly those of the text: no term may begin in one and end in the next.

    Only the number of an article may contain a blank; without a blank, ① continues an identifier as a 1.
    """
    if len(spans) > MAX_SENTENCES:
        return False
    for (_, end), (start, _) in itertools.pairwise(spans):
        tail = _tail(text, end)
        if _ARTICLE_TAIL.search(tail) or (start == end and _IDENTIFIER_TAIL.search(tail)):
            return False
    return True


def _tail(text: str, end: int) -> str:
    return normalise(text[max(0, end - TAIL_LENGTH) : end])


class NumberedTerms:
    """The terms of a question, numbered, so that a set of them is an integer."""

    def __init__(self, terms: Iterable[int]) -> None:
        self.terms = frozenset(terms)
        self.ids = np.array(sorted(self.terms), np.int32)
        self.bits = np.arange(len(self.ids))
        self._bit_of: Mapping[int, int] = {term: bit for bit, term in enumerate(self.ids.tolist())}

    def mask(self, terms: Iterable[int]) -> int:
        """The set of these terms; all of them are terms of the question."""
        return sum([1 << self._bit_of[term] for term in terms])


@functools.lru_cache(CACHED_PIECES)
def piece_terms(text: str) -> PieceTerms:
    """The terms of a piece of an article, cached by its text."""
    return PieceTerms.of(text)
