"""BM25 and the statistics that it needs. Small pure functions that cite their source."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

K1 = 1.2
B = 0.75
"""Robertson & Zaragoza's usual constants; see bench/README.md for the figures of other choices."""


def idf(document_frequency: int, documents: int) -> float:
    """Inverse document frequency, never negative: ln(1 + (N - df + .5) / (df + .5)).

    Robertson & Zaragoza 2009, *The Probabilistic Relevance Framework*, eq. 3.3, with the 1 + of Lucene.
    """
    return math.log(1.0 + (documents - document_frequency + 0.5) / (document_frequency + 0.5))


def bm25_weight(frequency: float, length: int, mean_length: float) -> float:
    """The part of BM25 that belongs to the document: tf (k1 + 1) / (tf + k1 (1 - b + b dl / avgdl)).

    Robertson & Zaragoza 2009, eq. 3.15. In [0, k1 + 1); times the term's idf and summed it is the score.
    """
    return frequency * (K1 + 1.0) / (frequency + K1 * (1.0 - B + B * length / mean_length))


def bm25_weights(frequencies: NDArray[np.float32], length: int, mean_length: float) -> NDArray[np.float32]:
    """`bm25_weight` of every term of a passage."""
    return frequencies * np.float32(K1 + 1.0) / (frequencies + np.float32(K1 * (1.0 - B + B * length / mean_length)))


def reweigh(weights: NDArray[np.float32], length: int, old_mean: float, new_mean: float) -> NDArray[np.float32]:
    """`bm25_weights` for another mean length, from the stored weights alone (the frequencies are recovered)."""
    damping = np.float32(K1 * (1.0 - B + B * length / old_mean))
    return bm25_weights(weights * damping / (np.float32(K1 + 1.0) - weights), length, new_mean)


@dataclass(frozen=True, slots=True)
class LexicalStatistics:
    """What BM25 knows of the whole collection: in how many chunks each term occurs, and how long chunks are.

    `term_ids` (int64, ascending, distinct) and `frequencies` (int64) are parallel arrays; `chunks` is N;
    `lengths` maps a language to (number of chunks, sum of their lengths in terms).
    """

    term_ids: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    frequencies: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    chunks: int = 0
    lengths: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def document_frequency(self, term_id: int) -> int:
        """Number of chunks with the term; 0 for an unknown one."""
        position = int(np.searchsorted(self.term_ids, term_id))
        if position < len(self.term_ids) and self.term_ids[position] == term_id:
            return max(0, int(self.frequencies[position]))
        return 0

    @classmethod
    def merged(cls, parts: Sequence[LexicalStatistics]) -> LexicalStatistics:
        """The statistics of the union of disjoint collections (segments of an index, shards of a cluster)."""
        if not parts:
            return cls()
        ids = np.concatenate([part.term_ids for part in parts])
        frequencies = np.concatenate([part.frequencies for part in parts])
        distinct, inverse = np.unique(ids, return_inverse=True)
        summed = np.zeros(len(distinct), np.int64)
        np.add.at(summed, inverse, frequencies)
        lengths: dict[str, tuple[int, int]] = {}
        for part in parts:
            for language, (count, total) in part.lengths.items():
                known = lengths.get(language, (0, 0))
                lengths[language] = (known[0] + count, known[1] + total)
        kept = summed != 0
        return cls(distinct[kept], summed[kept], sum(part.chunks for part in parts), lengths)


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """A query as BM25 sees it: idf × occurrences per term id that the collection has.

    `ceiling` is the score of a fictitious passage in which every term of the query, known or not, is saturated: the
    yardstick that makes a score comparable across queries.
    """

    weights: Mapping[int, float]
    frequencies: Mapping[int, int]
    ceiling: float

    @classmethod
    def of(cls, terms: Iterable[tuple[int, float]], statistics: LexicalStatistics) -> LexicalQuery:
        """Weigh the terms of a query, given as (term id, weight in (0, 1]), by `statistics`."""
        weights: dict[int, float] = {}
        frequencies: dict[int, int] = {}
        ceiling = 0.0
        for term, share in terms:
            df = statistics.document_frequency(term)
            weight = share * idf(df, max(1, statistics.chunks))
            ceiling += weight * (K1 + 1.0)
            if df:
                weights[term] = weights.get(term, 0.0) + weight
                frequencies[term] = df
        return cls(weights, frequencies, ceiling)

    def candidates(self, chunks: int) -> list[int]:
        """The terms that generate candidates: all, unless the collection is large and a rarer one is among them."""
        if chunks <= ALL_TERMS_BELOW:
            return sorted(self.weights)
        rare = sorted(term for term, df in self.frequencies.items() if df <= COMMON_SHARE * chunks)
        return rare or sorted(self.weights)


COMMON_SHARE = 0.1
"""Terms in more than this share of the chunks score but do not generate candidates (exact BM25's top 10 stays)."""
ALL_TERMS_BELOW = 20_000
"""Chunks up to which every term generates candidates: scoring all of them costs less than a second look."""
