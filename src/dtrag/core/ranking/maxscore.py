"""Exact BM25 over the postings of a segment, a term at a time, with bounds that let common words cost next to nothing.

MaxScore (Turtle & Flood 1995, *Query evaluation: strategies and optimizations*): terms are taken by falling idf; once
those that are left cannot lift a passage without any earlier term into the best k, only the passages that still can
get there are looked up in them. The sum of a passage is always made in the same order of terms with 32-bit floats, so
that equal passages tie exactly, wherever they lie.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dtrag.core.ranking.bm25 import K1, damping
from dtrag.core.ranking.segments import FREQUENCY_UNIT, Segment

Numbers = NDArray[np.int32]
Floats = NDArray[np.float32]

DENSE_SHARE = 0.2
"""A term in more than this share of the passages is kept as one byte a passage: smaller than 5 bytes a posting."""
SLACK, ROUNDING = 1.0 + 1e-5, 6e-8
"""Bounds are widened by what 32-bit sums may be off: a little, and half a unit in the last place for each term."""
WORTH_A_LOOK = 2
"""The bound is looked at before a term with this many times the postings that were read so far."""


class Postings:
    """The passages of one segment that hold one term.

    `chunks` (int32, ascending) with `frequencies` (uint8, parallel); or, for a common term, `chunks` None and
    `frequencies` of every passage, 0 where the term is absent.
    """

    __slots__ = ("_bound", "_bound_for", "chunks", "count", "frequencies")

    def __init__(self, run: NDArray[np.void], size: int):
        self.count = len(run)
        self._bound = np.float32(0)
        # Weak: a term that is not asked for again must not keep the lengths of an old generation in memory.
        self._bound_for: Callable[[], Floats | None] = _nothing
        self.chunks: Numbers | None = None
        if self.count > DENSE_SHARE * size:
            self.frequencies = np.zeros(size, np.uint8)
            self.frequencies[run["chunk"]] = run["frequency"]
        else:
            self.chunks = run["chunk"].astype(np.int32)
            self.frequencies = run["frequency"].copy()

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        return self.frequencies.nbytes + (self.chunks.nbytes if self.chunks is not None else 0) + 200

    def bound(self, damped: Floats) -> np.float32:
        """The highest impact of the term in any passage (reckoned once for each `damped`)."""
        if self._bound_for() is not damped:
            impacts = _impacts(self.frequencies, damped if self.chunks is None else damped[self.chunks])
            self._bound, self._bound_for = impacts.max(initial=np.float32(0)), weakref.ref(damped)
        return self._bound

    def add(self, scores: Floats, weight: np.float32, damped: Floats) -> None:
        """Add weight × impact to the score of every passage that holds the term."""
        if self.chunks is None:
            scores += weight * _impacts(self.frequencies, damped)
        else:
            scores[self.chunks] += weight * _impacts(self.frequencies, damped[self.chunks])

    def count_where(self, visible: Callable[[NDArray[np.intp]], NDArray[np.bool_]] | None) -> int:
        """How many of the passages that hold the term count."""
        if visible is None:
            return self.count
        held = np.flatnonzero(self.frequencies) if self.chunks is None else self.chunks.astype(np.intp)
        return int(visible(held).sum())

    def at(self, numbers: Numbers, damped: Floats) -> Floats:
        """The impact in each of these passages, 0 where the term is absent."""
        if self.chunks is None:
            return _impacts(self.frequencies[numbers], damped[numbers])
        places = np.searchsorted(self.chunks, numbers)
        places[places == len(self.chunks)] = 0
        frequencies = np.where(self.chunks[places] == numbers, self.frequencies[places], np.uint8(0))
        return _impacts(frequencies, damped[numbers])


def _nothing() -> None:
    """The reference of a bound that was not reckoned yet."""


def _impacts(frequencies: NDArray[np.uint8], damped: Floats) -> Floats:
    """`bm25_weight` of occurrences in FREQUENCY_UNIT."""
    tf = frequencies * np.float32(FREQUENCY_UNIT)
    return tf * np.float32(K1 + 1.0) / (tf + damped)


def damped_lengths(segment: Segment, means: Mapping[str, float]) -> Floats:
    """For each passage the part of BM25's denominator that its length decides, with these mean lengths by language."""
    by_language = np.array([means.get(language, 1.0) for language in segment.languages] or [1.0])
    ratios = segment.chunks["length"] / by_language[segment.chunks["language"]]
    return damping(ratios).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Found:
    """Passages of one segment: their numbers and BM25 scores, in no order."""

    numbers: Numbers
    scores: Floats


def best(
    terms: Sequence[tuple[float, Postings]],
    damped: Floats,
    wanted: int,
    visible: Callable[[NDArray[np.intp]], NDArray[np.bool_]] | None = None,
    floor: float = 0.0,
    *,
    bounded: tuple[Floats, float] | None = None,
) -> Found:
    """The `wanted` best passages of a segment, and all that tie with the last of them.

    `terms` are (weight, postings) by falling weight, ties in one fixed order; `visible` says which of some passages
    count at all; passages below `floor` need not be found. `bounded` holds damped lengths whose bounds are kept, and by
    how much impacts with `damped` may be higher; None: `damped` itself.
    """
    weights = [np.float32(weight) for weight, _ in terms]
    reference, stretch = bounded or (damped, 1.0)
    bounds = [
        weight * postings.bound(reference) * np.float32(stretch)
        for weight, (_, postings) in zip(weights, terms, strict=True)
    ]
    rest = _rest(bounds)
    scores = np.zeros(len(damped), np.float32)
    threshold, read, place = np.float32(floor), 0, 0
    hits: NDArray[np.intp] | None = None
    for place in range(len(terms)):
        postings = terms[place][1]
        if read and postings.count > WORTH_A_LOOK * read:
            hits = _hits(scores, threshold - rest[place], visible)
            threshold = max(threshold, _kth(scores[hits], wanted))
        if rest[place] < threshold:
            break
        hits = None
        postings.add(scores, weights[place], damped)
        read += postings.count
    else:
        place = len(terms)
    if hits is None:
        hits = _hits(scores, threshold - rest[place], visible)
    found = scores[hits]
    for later in range(place, len(terms)):
        threshold = max(threshold, _kth(found, wanted))
        able = found + rest[later] >= threshold
        hits, found = hits[able], found[able]
        found = found + weights[later] * terms[later][1].at(hits.astype(np.int32), damped)
    kept = found >= max(threshold, _kth(found, wanted))
    return Found(hits[kept].astype(np.int32), found[kept])


def _rest(bounds: Sequence[np.float32]) -> list[np.float32]:
    """What the terms from each place on can add at most, in one pass; the more terms, the more a sum may be off."""
    slack = SLACK + len(bounds) * ROUNDING
    sums = np.cumsum(np.array(bounds[::-1], np.float64))[::-1] * slack
    return [*sums.astype(np.float32), np.float32(0)]


def _hits(
    scores: Floats, least: np.float32, visible: Callable[[NDArray[np.intp]], NDArray[np.bool_]] | None
) -> NDArray[np.intp]:
    """The passages that were met, those of them that have `least` and count."""
    # By way of booleans: numpy finds their places several times faster than those of floats.
    hits = np.flatnonzero(scores >= least if least > 0 else scores > 0)
    return hits if visible is None else hits[visible(hits)]


def _kth(scores: Floats, wanted: int) -> np.float32:
    """The `wanted`-th best of the scores; 0 when there are fewer."""
    if len(scores) < wanted:
        return np.float32(0)
    return np.float32(np.partition(scores, len(scores) - wanted)[len(scores) - wanted])
