"""The tokenizer of XLM-RoBERTa: words into the pieces of a unigram model (Kudo 2018), as SentencePiece does.

Pieces are looked up by their hashes, 4 MB of arrays; the `tokenizers` library takes 2 s and 280 MB for this vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

_START = "▁"
"""Before the first letter of each word."""
_REPLACED = dict.fromkeys(map(ord, "\u061c\u200b\u200c\u200e\u200f▁\ufeff\ufffd"), " ") | dict.fromkeys(
    (*range(9), 11, *range(14, 32), 0x7F, 0x8F, 0x9F), ""
)
"""Beside NFKC: what SentencePiece's rules `nmt_nfkc` take for a blank, and what they drop."""
_CACHED_WORDS = 16_384
_UNKNOWN_PENALTY = 10.0
"""An unknown character is so much less likely than the rarest piece (SentencePiece's constant)."""


class Unigram:
    """Splits texts into pieces. `pieces` in the order of their numbers (UTF-8), `scores` their log-likelihoods.

    Pieces with the score 0 are marks such as `<s>`, which no text contains. Hashes are those of bytes: those of strings
    with the same bytes in memory (`zz` and U+7A7A) are equal.
    """

    def __init__(self, pieces: Iterable[bytes], scores: NDArray[np.float32], unknown: int) -> None:
        hashes = np.fromiter(map(hash, pieces), np.int64, len(scores))
        order = np.argsort(hashes, kind="stable").astype(np.int32)
        self._ids = order[scores[order] < 0]
        self._hashes = hashes[self._ids]
        self._scores = np.where(np.arange(len(scores)) == unknown, scores.min() - _UNKNOWN_PENALTY, scores)
        self._unknown = unknown
        self._of_word = lru_cache(_CACHED_WORDS)(self._best)

    def encode(self, text: str, most: int, longest_piece: int = 16) -> list[int]:
        """The numbers of the first `most` pieces."""
        ids: list[int] = []
        for word in normalize("NFKC", text.translate(_REPLACED)).split():
            ids += self._of_word((_START + word)[: most * longest_piece], longest_piece)
            if len(ids) >= most:
                break
        return ids[:most]

    def _best(self, word: str, longest_piece: int) -> tuple[int, ...]:
        """The most likely pieces of a word (Viterbi); unknown characters beside each other are one."""
        ends = range(1, len(word) + 1)
        spans = [(start, end) for end in ends for start in range(max(0, end - longest_piece), end)]
        texts = (word[start:end].encode("utf-8", "replace") for start, end in spans)
        hashes = np.fromiter(map(hash, texts), np.int64, len(spans))
        places = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        pieces: dict[int, list[tuple[int, int]]] = {end: [] for end in ends}
        for hit in np.flatnonzero(self._hashes[places] == hashes).tolist():
            start, end = spans[hit]
            pieces[end].append((start, int(self._ids[places[hit]])))
        totals, last = [0.0], [(0, self._unknown)]
        for end in ends:
            if not pieces[end] or pieces[end][-1][0] != end - 1:
                pieces[end].append((end - 1, self._unknown))
            sums = [totals[start] + float(self._scores[piece]) for start, piece in pieces[end]]
            totals.append(max(sums))
            last.append(pieces[end][sums.index(totals[end])])
        ids: list[int] = []
        end = len(word)
        while end:
            end, piece = last[end]
            if piece != self._unknown or ids[-1:] != [piece]:
                ids.append(piece)
        return tuple(reversed(ids))
