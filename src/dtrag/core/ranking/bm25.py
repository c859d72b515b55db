"""BM25 and its statistics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

K1 = 0.75
B = 0.5
"""Below the usual 1.2 and .75: passages are short and even, and a pair of Korean characters says less by occurring
again than a word. korquad1-dev .957 -> .961, wikiqa-dev .626 -> .656, the others as before; the plateau is wide (k1
.6-.9, b .4-.6, bench/README.md)."""


MOST_TERMS = 512
"""Most terms of a query: ten thousand characters have thousands, whose postings would take more memory than the rest of
the index."""


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


def damping(ratio: NDArray[np.float64]) -> NDArray[np.float64]:
    """The part of `bm25_weight`'s denominator that a passage's length decides: k1 (1 - b + b dl / avgdl).

    `ratio` is dl / avgdl.
    """
    return K1 * (1.0 - B + B * ratio)


@dataclass(frozen=True, slots=True)
class LexicalStatistics:
    """What BM25 knows of the whole collection: in how many chunks each term occurs, and how long chunks are.

    `term_ids` (integers, ascending, distinct) and `frequencies` (integers) are parallel arrays; `chunks` is N;
    `lengths` maps a language to (number of chunks, sum of their lengths in terms). `parts` are collections of which
    only `chunks` and `lengths` are in these sums already: their terms are looked up one by one.
    """

    term_ids: NDArray[np.integer[Any]] = field(default_factory=lambda: np.empty(0, np.int64))
    frequencies: NDArray[np.integer[Any]] = field(default_factory=lambda: np.empty(0, np.int64))
    chunks: int = 0
    lengths: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    parts: tuple[LexicalStatistics, ...] = ()

    def document_frequency(self, term_id: int) -> int:
        """Number of chunks with the term; 0 for an unknown one."""
        return max(0, self._counted(term_id))

    def document_frequencies(self, term_ids: Sequence[int]) -> list[int]:
        """`document_frequency` of each of the terms, in one pass over the arrays."""
        return np.maximum(self._counted_all(np.array(term_ids, np.int64)), 0).tolist()  # type: ignore[no-any-return]

    def _counted_all(self, term_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        counts = np.zeros(len(term_ids), np.int64)
        if len(self.term_ids) and len(term_ids):
            terms = term_ids.astype(self.term_ids.dtype)
            rows = np.minimum(self.term_ids.searchsorted(terms), len(self.term_ids) - 1)
            counts = np.where(self.term_ids[rows] == terms, self.frequencies[rows], 0).astype(np.int64)
        for part in self.parts:
            counts = counts + part._counted_all(term_ids)
        return counts

    def _counted(self, term_id: int) -> int:
        # A key of the array's own type: with another one numpy converts the whole array first.
        position = int(self.term_ids.searchsorted(self.term_ids.dtype.type(term_id)))
        count = 0
        if position < len(self.term_ids) and self.term_ids[position] == term_id:
            count = int(self.frequencies[position])
        for part in self.parts:
            count += part._counted(term_id)
        return count

    def mean_lengths(self) -> dict[str, float]:
        """Language -> mean length of its chunks in terms."""
        return {language: total / count for language, (count, total) in self.lengths.items() if count > 0 < total}

    @classmethod
    def joined(cls, parts: Sequence[LexicalStatistics]) -> LexicalStatistics:
        """As `merged`, in no time: the terms stay where they are."""
        return cls(chunks=sum(part.chunks for part in parts), lengths=_lengths(parts), parts=tuple(parts))

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
        nonzero = summed != 0
        return cls(distinct[nonzero], summed[nonzero], sum(part.chunks for part in parts), _lengths(parts))

    def without(self, part: LexicalStatistics) -> LexicalStatistics:
        """The statistics of the rest of a collection, of which `part` is a part."""
        lengths = {language: (-count, -total) for language, (count, total) in part.lengths.items()}
        return self.merged([self, LexicalStatistics(part.term_ids, -part.frequencies, -part.chunks, lengths)])


def _lengths(parts: Sequence[LexicalStatistics]) -> dict[str, tuple[int, int]]:
    lengths: dict[str, tuple[int, int]] = {}
    for part in parts:
        for language, (count, total) in part.lengths.items():
            known = lengths.get(language, (0, 0))
            lengths[language] = (known[0] + count, known[1] + total)
    return lengths


def _rank(pair: tuple[int, float]) -> tuple[float, int]:
    return -pair[1], pair[0]


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """A query as BM25 sees it: idf × occurrences per term id that the collection has.

    `ceiling` is the score of a fictitious passage in which every term of the query, known or not, is saturated: the
    yardstick that makes a score comparable across queries. `mean_lengths` by language are those of the same collection.
    A passage without each of the `required` terms is no candidate.
    """

    weights: Mapping[int, float]
    frequencies: Mapping[int, int]
    ceiling: float
    mean_lengths: Mapping[str, float] = field(default_factory=dict)
    required: frozenset[int] = frozenset()

    @classmethod
    def of(cls, terms: Iterable[tuple[int, float]], statistics: LexicalStatistics) -> LexicalQuery:
        """Weigh the terms of a query, given as (term id, weight in (0, 1]), by `statistics`.

        Of a very long query the `MOST_TERMS` heaviest count; all of them are in the ceiling.
        """
        weights: dict[int, float] = {}
        frequencies: dict[int, int] = {}
        ceiling = 0.0
        weighted = list(terms)
        counts = statistics.document_frequencies([term for term, _ in weighted])
        for (term, share), df in zip(weighted, counts, strict=True):
            weight = share * idf(df, max(1, statistics.chunks))
            ceiling += weight * (K1 + 1.0)
            if df:
                weights[term] = weights.get(term, 0.0) + weight
                frequencies[term] = df
        if len(weights) > MOST_TERMS:
            weights = dict(sorted(weights.items(), key=_rank)[:MOST_TERMS])
            frequencies = {term: frequencies[term] for term in weights}
        return cls(weights, frequencies, ceiling, statistics.mean_lengths())

    def shares(self, scores: Mapping[str, float]) -> dict[str, float]:
        """BM25 scores as shares of the ceiling, in [0, 1]."""
        ceiling = self.ceiling if self.ceiling > 0.0 else math.inf
        return {key: score / ceiling if score < ceiling else 1.0 for key, score in scores.items()}

    def ranked(self) -> list[tuple[int, float]]:
        """(term id, weight) by falling weight, ties by term id: the order in which every sum is made."""
        return sorted(self.weights.items(), key=_rank)
