"""All postings of a segment in the arrays that scoring reads, so that those of a term are views of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dtrag.core.ranking.maxscore import DENSE_SHARE, Postings, damped_lengths, impacts
from dtrag.core.ranking.segments import Segment


@dataclass(frozen=True, slots=True)
class PostingTable:
    """The postings of a segment, and the highest impact of each of its terms with the mean lengths `means`.

    `starts` (int64) is where the postings of each term begin in `chunks` (int32) and `frequencies` (uint8); -1 - row
    of `dense` (uint8: terms × passages) for a common one. `highest` (float32) is parallel to it.
    """

    starts: NDArray[np.int64]
    chunks: NDArray[np.int32]
    frequencies: NDArray[np.uint8]
    dense: NDArray[np.uint8]
    highest: NDArray[np.float32]
    means: Mapping[str, float]

    @classmethod
    def empty(cls, segment: Segment) -> PostingTable:
        """The table of a segment without its postings: `take` is to be called for all `parts`."""
        is_dense = segment.frequencies > DENSE_SHARE * len(segment)
        sizes = np.where(is_dense, 0, segment.frequencies).astype(np.int64)
        starts = np.cumsum(sizes) - sizes
        starts[is_dense] = -1 - np.arange(is_dense.sum())
        total = int(sizes.sum())
        return cls(
            starts,
            np.empty(total, np.int32),
            np.empty(total, np.uint8),
            np.zeros((int(is_dense.sum()), len(segment)), np.uint8),
            np.empty(len(starts), np.float32),
            segment.statistics().mean_lengths(),
        )

    @staticmethod
    def parts(segment: Segment, most: int) -> Iterator[tuple[int, int]]:
        """Half-open ranges of the segment's terms with about `most` postings each, in order."""
        edges = np.searchsorted(segment.offsets, np.arange(0, segment.offsets[-1] + 1, most))
        edges = np.unique([*edges.tolist(), len(segment.term_ids)])
        yield from zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)

    def take(self, segment: Segment, part: tuple[int, int], run: NDArray[np.void]) -> None:
        """Put the postings of the terms of a part (dtype POSTINGS) into the arrays."""
        left, right = part
        chunks, frequencies = run["chunk"].astype(np.int32), run["frequency"].copy()
        ends = segment.offsets[left : right + 1] - segment.offsets[left]
        weights = impacts(frequencies, damped_lengths(segment, self.means)[chunks])
        self.highest[left:right] = np.maximum.reduceat(weights, ends[:-1])
        is_sparse = np.ones(len(run), bool)
        for term in np.flatnonzero(self.starts[left:right] < 0).tolist():
            own = slice(ends[term], ends[term + 1])
            self.dense[-1 - self.starts[left + term], chunks[own]] = frequencies[own]
            is_sparse[own] = False
        starts = self.starts[left:right]
        if is_sparse.any():
            start = int(starts[starts >= 0][0])
            self.chunks[start : start + is_sparse.sum()] = chunks[is_sparse]
            self.frequencies[start : start + is_sparse.sum()] = frequencies[is_sparse]

    def lists(self, segment: Segment, terms: NDArray[np.int32]) -> list[Postings | None]:
        """The postings of each of the terms; None where the segment has none."""
        if not len(segment.term_ids):
            return [None] * len(terms)
        places = np.minimum(segment.term_ids.searchsorted(terms), len(segment.term_ids) - 1)
        return [
            self._list(start, count, highest) if present else None
            for present, start, count, highest in zip(
                (segment.term_ids[places] == terms).tolist(),
                self.starts[places].tolist(),
                segment.frequencies[places].tolist(),
                self.highest[places],
                strict=True,
            )
        ]

    def _list(self, start: int, count: int, highest: np.float32) -> Postings:
        if start < 0:
            return Postings(count, None, self.dense[-1 - start], highest)
        return Postings(count, self.chunks[start : start + count], self.frequencies[start : start + count], highest)
