"""All postings of a segment in the arrays that scoring reads, so that those of a term are views of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtrag.core.ranking.maxscore import DENSE_SHARE, Postings, damped_lengths, impacts
from dtrag.core.ranking.segments import Segment

PART_POSTINGS = 1_000_000
"""Postings of another table that are taken at a time: about 40 MB."""


@dataclass(frozen=True, slots=True)
class PassageTerms:
    """The terms of some passages of a segment: the first `sizes[0]` of `terms` (int32) are those of `numbers[0]`.

    `numbers` (int32) ascend; `frequencies` (uint8) are parallel to the terms, in FREQUENCY_UNIT.
    """

    numbers: NDArray[np.int32]
    sizes: NDArray[np.int32]
    terms: NDArray[np.int32]
    frequencies: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class PostingTable:
    """The postings of a segment, and the highest impact of each of its terms with the mean lengths `means`.

    `starts` (int64) is where the postings of each term begin in `chunks` (int32) and `frequencies` (uint8); -1 - row
    of `dense` (uint8: terms × passages) for a common one. `counts` (int32: how many there are) and `highest` (float32)
    are parallel to it. Documents that were deleted before the table was made have no postings in it: `absent` (bool:
    documents).
    """

    starts: NDArray[np.int64]
    counts: NDArray[np.int32]
    chunks: NDArray[np.int32]
    frequencies: NDArray[np.uint8]
    dense: NDArray[np.uint8]
    highest: NDArray[np.float32]
    absent: NDArray[np.bool_]
    means: Mapping[str, float]

    @classmethod
    def empty(cls, segment: Segment) -> PostingTable:
        """The table of a segment without its postings: all of them are to be given to `take`."""
        is_dense = segment.frequencies > DENSE_SHARE * len(segment)
        sizes = np.where(is_dense, 0, segment.frequencies).astype(np.int64)
        starts = np.cumsum(sizes) - sizes
        starts[is_dense] = -1 - np.arange(is_dense.sum())
        total = int(sizes.sum())
        return cls(
            starts,
            np.zeros(len(starts), np.int32),
            np.zeros(total, np.int32),
            np.zeros(total, np.uint8),
            np.zeros((int(is_dense.sum()), len(segment)), np.uint8),
            np.zeros(len(starts), np.float32),
            segment.documents["chunks"] > 0,
            segment.statistics().mean_lengths(),
        )

    @property
    def nbytes(self) -> int:
        """Size in memory."""
        return sum(array.nbytes for array in (self.starts, self.counts, self.chunks, self.frequencies, self.dense))

    def lacks(self, alive: NDArray[np.bool_] | None) -> bool:
        """Whether one of these documents (None: of all) is absent."""
        return bool((self.absent if alive is None else self.absent & alive).any())

    def take(self, segment: Segment, passages: PassageTerms) -> None:
        """Put the postings of passages into the arrays; their numbers are above those of all calls before.

        Raises `ValueError` when the segment does not count them.
        """
        if not len(passages.terms) == len(passages.frequencies) == passages.sizes.sum():
            raise ValueError("passages have other numbers of terms and of frequencies")
        self.absent[segment.document_of[passages.numbers]] = False
        order = _by_term(passages.terms)
        terms = passages.terms[order]
        begins = np.flatnonzero(np.concatenate([np.ones(min(1, len(terms)), bool), terms[1:] != terms[:-1]]))
        counts = np.diff(begins, append=len(terms))
        chunks = np.repeat(passages.numbers, passages.sizes)
        self._put(segment, terms[begins], counts, chunks[order], passages.frequencies[order])

    def append(self, segment: Segment, other: Segment, table: PostingTable, first: int) -> None:
        """As `take`, of all passages of another segment with this table, which are here from the number `first` on."""
        self.absent[segment.document_of[first : first + len(other)]] = False
        there = np.flatnonzero((table.starts >= 0) & (table.counts > 0))
        ends = np.cumsum(table.counts[there], dtype=np.int64)
        for edge in np.split(there, np.searchsorted(ends, np.arange(PART_POSTINGS, ends[-1:].sum(), PART_POSTINGS))):
            counts = table.counts[edge]
            places = _spread(table.starts[edge], counts)
            self._put(
                segment, other.term_ids[edge], counts, table.chunks[places] + np.int32(first), table.frequencies[places]
            )
        common = np.flatnonzero((table.starts < 0) & (table.counts > 0))
        dense = table.dense[-1 - table.starts[common]]
        rows, chunks = dense.nonzero()
        numbers = chunks.astype(np.int32) + np.int32(first)
        self._put(segment, other.term_ids[common], table.counts[common], numbers, dense[rows, chunks])

    def _put(
        self,
        segment: Segment,
        terms: NDArray[np.int32],
        counts: NDArray[np.integer[Any]],
        chunks: NDArray[np.int32],
        frequencies: NDArray[np.uint8],
    ) -> None:
        """Add postings that are grouped by term; `counts` are the sizes of the groups."""
        if not len(terms):
            return
        places = np.minimum(segment.term_ids.searchsorted(terms), len(segment.term_ids) - 1)
        counted = self.counts[places] + counts
        if (segment.term_ids[places] != terms).any() or (counted > segment.frequencies[places]).any():
            raise ValueError("passages have terms that their segment does not count")
        begins = np.cumsum(counts, dtype=np.int64) - counts
        weights = impacts(frequencies, damped_lengths(segment, self.means)[chunks])
        self.highest[places] = np.maximum(self.highest[places], np.maximum.reduceat(weights, begins))
        for term in np.flatnonzero(self.starts[places] < 0).tolist():
            own = slice(begins[term], begins[term] + counts[term])
            self.dense[-1 - self.starts[places[term]], chunks[own]] = frequencies[own]
        targets = _spread(self.starts[places] + self.counts[places], counts)
        is_sparse = np.repeat(self.starts[places] >= 0, counts)
        self.chunks[targets[is_sparse]] = chunks[is_sparse]
        self.frequencies[targets[is_sparse]] = frequencies[is_sparse]
        self.counts[places] = counted

    def without_absent(self, segment: Segment) -> tuple[Segment, PostingTable]:
        """The segment and its table with the terms and frequencies of the postings that are there."""
        there = self.counts > 0
        table = replace(self, starts=self.starts[there], counts=self.counts[there], highest=self.highest[there])
        return replace(segment, term_ids=segment.term_ids[there], frequencies=table.counts), table

    def lists(self, segment: Segment, terms: NDArray[np.int32]) -> list[Postings | None]:
        """The postings of each of the terms; None where the segment has none."""
        if not len(segment.term_ids):
            return [None] * len(terms)
        places = np.minimum(segment.term_ids.searchsorted(terms), len(segment.term_ids) - 1)
        return [
            self._list(start, count, highest) if present and count else None
            for present, start, count, highest in zip(
                (segment.term_ids[places] == terms).tolist(),
                self.starts[places].tolist(),
                self.counts[places].tolist(),
                self.highest[places],
                strict=True,
            )
        ]

    def _list(self, start: int, count: int, highest: np.float32) -> Postings:
        if start < 0:
            return Postings(count, None, self.dense[-1 - start], highest)
        return Postings(count, self.chunks[start : start + count], self.frequencies[start : start + count], highest)


def _spread(starts: NDArray[np.int64], counts: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """The numbers of the members of groups: `counts[0]` numbers from `starts[0]` on, and so on."""
    ends = np.cumsum(counts, dtype=np.int64)
    return np.repeat(starts - ends + counts, counts) + np.arange(counts.sum())


def _by_term(terms: NDArray[np.int32]) -> NDArray[np.intp]:
    """The order by term, stable: by halves, since numpy sorts numbers of 16 bits several times faster."""
    order = np.argsort(terms.astype(np.uint16), kind="stable")
    return order[np.argsort((terms >> 16).astype(np.int16)[order], kind="stable")]
