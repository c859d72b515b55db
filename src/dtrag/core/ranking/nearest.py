"""The nearest of many vectors without a graph: their sign bits are scanned, and the closest rows compared exactly.

Which rows count is decided before anything is compared, so that a search in a narrow scope returns as many as there are
and costs less than one of everything. To scan 100,000 vectors of 384 numbers takes .46 ms of a processor (`simsimd`:
.39, no reason for a dependency), and to compare 2,000 of them as long, mostly to fetch them from memory: in float32,
and exactly only those that can be among the nearest by its rounding.

Sign bits are those of the difference from a `centre`: all vectors of e5 lie in one direction (their mean is .92 long),
which says nothing about any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dtrag.core.documents import Vector

LEAST_RESCORED = 2_000
"""Rows compared exactly at least; where no more count, all are. They contained .997 of the 10 nearest of 11,750 Korean
passages (e5, 317 questions) and all of 16,028 English ones (MiniLM, 400), and no less in narrower scopes:
`bench/search/recall.py`, 2026-11-24, bench/README.md. Of 1,000 rows it was .989 for e5."""
RESCORED_PER_RESULT = 20
"""Rows compared exactly for each requested one: of the 100 nearest 2,000 contained .96 (e5) and .99 (MiniLM)."""
RESCORED_SHARE = 0.02
"""The same as a share of the rows that count: among more of them, more are as near by their signs."""
CENTRED_FROM = 1_000
"""Vectors whose mean serves as centre: of fewer, the mean says more about them than about their model."""
GATHERED_BELOW = 0.2
"""Share of the rows below which their bits are gathered: reading all and leaving some out takes longer."""
SCANNED_AT_ONCE = 8_192
COMPARED_AT_ONCE = 256
"""Rows of a step: what it computes with stays in the processor's cache."""
_ROUNDING = 1.01 * 2**-24
"""What each number of a vector adds at most to the error of a cosine in float32: half a unit of the last place of a sum
that is at most about 1, in whatever order it is added up."""
_LARGEST = 32_767
Rows = NDArray[np.intp]
_Words = NDArray[np.uint64]
_Float = TypeVar("_Float", np.float32, np.float64)


@dataclass(frozen=True, slots=True)
class Direction:
    """A vector of length 1 as `values` (int16) times `scale`. Products of such integers add up exactly in float64, so
    that a cosine does not depend on which rows are compared together. It differs by about 1e-5 from the cosine of
    the halves that PostgreSQL compares."""

    values: NDArray[np.int16]
    scale: float

    @classmethod
    def of(cls, vector: Vector) -> Self:
        """The direction of a vector; of zeros, which has none and whose cosines are 0, zeros."""
        values, scales = _quantised(vector[np.newaxis])
        return cls(values[0], float(scales[0]))


@dataclass(frozen=True, slots=True)
class Vectors:
    """Vectors of one model: row i is `values[i]` (int16) times `scales[i]` (float32), of length 1.

    `signs` has a bit for each number of a row, whether it is above that of `centre` (float32): 64 a word, shape
    (words, rows), so that a scan reads one word of all rows after another.
    """

    values: NDArray[np.int16]
    scales: NDArray[np.float32]
    signs: _Words
    centre: NDArray[np.float32]

    @classmethod
    def of(cls, vectors: Vector) -> Self:
        """From an array of shape (rows, dim)."""
        return cls.of_values(*_quantised(vectors))

    @classmethod
    def of_values(
        cls, values: NDArray[np.int16], scales: NDArray[np.float32], centre: NDArray[np.float32] | None = None
    ) -> Self:
        """Signs by this centre; by default the mean, or zeros where the vectors are too few for one."""
        if centre is None or not centre.any():
            centre = np.zeros(values.shape[1], np.float32)
            if len(values) >= CENTRED_FROM:
                centre = (scales @ values / len(values)).astype(np.float32)
        return cls(values, scales, _signs(values, scales, centre), centre)

    def __len__(self) -> int:
        return len(self.values)

    def centred(self, centre: NDArray[np.float32]) -> Vectors:
        """With signs by this centre: distances by two centres do not compare."""
        if np.array_equal(centre, self.centre):
            return self
        return replace(self, signs=_signs(self.values, self.scales, centre), centre=centre)

    def signs_of(self, query: Direction) -> NDArray[np.uint64]:
        """The signs of the query by the centre of these."""
        return _signs(query.values[np.newaxis], np.array([query.scale], np.float32), self.centre)

    def distances(self, signs: _Words, rows: Rows | None, counts: NDArray[np.uint16]) -> None:
        """Write to `counts` how many signs of each of these rows (None: all) differ from those of a query."""
        if rows is None:
            _differing(self.signs, signs, counts)
        elif len(rows) < GATHERED_BELOW * len(self):
            _differing(self.signs.take(rows, axis=1), signs, counts)
        else:
            all_counts = np.empty(len(self), np.uint16)
            _differing(self.signs, signs, all_counts)
            all_counts.take(rows, out=counts)

    def cosines(self, query: Direction, rows: Rows, kind: type[_Float]) -> NDArray[_Float]:
        """The cosine of each of these rows: exact in float64, and near enough to select rows by in float32."""
        sums, numbers = np.empty(len(rows), kind), query.values.astype(kind)
        for start in range(0, len(rows), COMPARED_AT_ONCE):
            part = slice(start, start + COMPARED_AT_ONCE)
            some = self.values.take(rows[part], axis=0, mode="clip")  # the quickest mode; no row is out of range
            np.dot(some.astype(kind), numbers, out=sums[part])
        return (sums * self.scales[rows] * query.scale).clip(-1, 1)


def nearest(
    parts: Sequence[tuple[Vectors, Rows | None]], query: Direction, limit: int
) -> list[tuple[Rows, NDArray[np.float64]]]:
    """Rows of each part and their cosines: the `limit` nearest of all, and those as near as the last of them.

    `parts` hold which rows count (ascending; None: all). All centres are the same.
    """
    ends = np.cumsum([0, *(len(vectors) if rows is None else len(rows) for vectors, rows in parts)]).tolist()
    most = max(LEAST_RESCORED, RESCORED_PER_RESULT * limit, int(RESCORED_SHARE * ends[-1]))
    if ends[-1] > most:
        distances, signs = np.empty(ends[-1], np.uint16), parts[0][0].signs_of(query)
        for (vectors, rows), start, end in zip(parts, ends, ends[1:], strict=False):
            vectors.distances(signs, rows, distances[start:end])
        chosen = _cut(_closest(distances, most), ends)
        chosen = [here if rows is None else rows[here] for (_, rows), here in zip(parts, chosen, strict=True)]
    else:
        chosen = [np.arange(len(vectors)) if rows is None else rows for vectors, rows in parts]
    if sum(map(len, chosen)) > limit:
        about = [vectors.cosines(query, rows, np.float32) for (vectors, _), rows in zip(parts, chosen, strict=True)]
        floor = _last(about, limit) - 2 * _ROUNDING * (len(query.values) + 8)
        chosen = [rows[part >= floor] for rows, part in zip(chosen, about, strict=True)]
    scored = [vectors.cosines(query, rows, np.float64) for (vectors, _), rows in zip(parts, chosen, strict=True)]
    floor = _last(scored, limit)
    return [(rows[part >= floor], part[part >= floor]) for rows, part in zip(chosen, scored, strict=True)]


def _last(scores: Sequence[NDArray[_Float]], limit: int) -> float:
    """The lowest of the `limit` highest."""
    joined = np.concatenate([np.empty(0, np.float32), *scores])
    return float(np.partition(joined, -limit)[-limit]) if len(joined) > limit else -np.inf


def _closest(distances: NDArray[np.uint16], most: int) -> Rows:
    """The places of the `most` smallest, ascending; of those equal to the last one at most three times as many."""
    last = np.bincount(distances).cumsum().searchsorted(most)
    places = np.flatnonzero(distances <= last)
    if len(places) <= 3 * most:
        return places
    return np.sort(np.concatenate([np.flatnonzero(distances < last), np.flatnonzero(distances == last)[: 3 * most]]))


def _cut(places: Rows, ends: Sequence[int]) -> list[Rows]:
    """The places between each two of the ends, counted from the first of them."""
    bounds = places.searchsorted(ends).tolist()
    return [places[left:right] - end for end, left, right in zip(ends, bounds, bounds[1:], strict=False)]


def _differing(signs: _Words, words: _Words, counts: NDArray[np.uint16]) -> None:
    for start in range(0, signs.shape[1], SCANNED_AT_ONCE):
        part = slice(start, start + SCANNED_AT_ONCE)
        np.add.reduce(np.bitwise_count(signs[:, part] ^ words), axis=0, dtype=np.uint16, out=counts[part])


def _quantised(vectors: Vector) -> tuple[NDArray[np.int16], NDArray[np.float32]]:
    numbers = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(numbers, axis=1, keepdims=True)
    units = np.divide(numbers, lengths, out=np.zeros_like(numbers), where=lengths > 0)
    steps = (np.abs(units).max(axis=1, initial=0) / _LARGEST).astype(np.float32)
    values = np.divide(units, steps[:, np.newaxis], out=np.zeros_like(units), where=steps[:, np.newaxis] > 0)
    return np.rint(values).clip(-_LARGEST, _LARGEST).astype(np.int16), steps


def _signs(values: NDArray[np.int16], scales: NDArray[np.float32], centre: NDArray[np.float32]) -> _Words:
    width = -(-values.shape[1] // 64) * 8
    rows = np.zeros((len(values), width), np.uint8)
    for start in range(0, len(values), SCANNED_AT_ONCE):
        part = slice(start, start + SCANNED_AT_ONCE)
        bits = np.packbits(values[part] * scales[part, np.newaxis] > centre, axis=1)
        rows[part, : bits.shape[1]] = bits
    return np.ascontiguousarray(rows.view(np.uint64).T)
