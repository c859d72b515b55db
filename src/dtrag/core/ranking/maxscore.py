"""Exact BM25 over the postings of a segment, one term at a time; upper bounds make common words nearly free.

MaxScore (Turtle & Flood 1995, *Query evaluation: strategies and optimizations*): terms are processed by descending
idf. Once the remaining terms alone cannot lift a passage into the best k, their postings are looked up only for the
candidates that can still reach it. A passage's score is always summed in the same order of terms with 32-bit floats, so
that equal passages tie exactly, whichever segment holds them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dtrag.core.ranking.bm25 import K1, damping
from dtrag.core.ranking.segments import FREQUENCY_UNIT, Segment

Numbers = NDArray[np.int32]
Floats = NDArray[np.float32]

DENSE_SHARE = 0.2
"""A term in more than this share of the passages is stored as one byte per passage instead of five per posting."""
SLACK, ROUNDING = 1.0 + 1e-5, 6e-8
"""Bounds are widened by the rounding error of 32-bit sums: a factor, and half a unit in the last place per term."""
CHECK_RATIO = 2
"""The bound is checked before a term with more than this many times the postings read so far."""
LOOKED_UP = 512
"""So many candidates are looked up in the remaining terms without checking which can still be among the best."""


class Postings:
    """The passages of one segment that contain one term.

    `chunks` (int32, ascending) with `frequencies` (uint8, parallel); or, for a common term, `chunks` None and
    `frequencies` of every passage, 0 where the term is absent. `highest` is the stored bound of the impacts.
    """

    __slots__ = ("chunks", "count", "frequencies", "highest")

    def __init__(self, count: int, chunks: Numbers | None, frequencies: NDArray[np.uint8], highest: np.float32):
        self.count = count
        self.chunks = chunks
        self.frequencies = frequencies
        self.highest = highest

    def add(self, scores: Floats, weight: np.float32, damped: Floats) -> None:
        """Add weight × impact to the score of every passage that contains the term."""
        if self.chunks is None:
            scores += weight * impacts(self.frequencies, damped)
        else:
            # Several times faster than `scores[self.chunks] += …`: numpy looks up by its own kind of integers.
            places = self.chunks.astype(np.intp)
            np.add.at(scores, places, weight * impacts(self.frequencies, damped.take(places)))

    def count_where(self, visible: NDArray[np.bool_] | None) -> int:
        """How many of the passages that contain the term are visible (a mask over all passages; None: all)."""
        if visible is None:
            return self.count
        holding = (self.frequencies > 0) & visible if self.chunks is None else visible.take(self.chunks)
        return int(np.count_nonzero(holding))

    def at(self, numbers: Numbers, damped: Floats) -> Floats:
        """The impact in each of these passages, 0 where the term is absent."""
        return impacts(self._frequencies(numbers), damped.take(numbers))

    def contain(self, numbers: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which of these passages contain the term."""
        return self._frequencies(numbers.astype(np.int32)) > 0

    def _frequencies(self, numbers: Numbers) -> NDArray[np.uint8]:
        if self.chunks is None:
            return self.frequencies.take(numbers)
        places = self.chunks.searchsorted(numbers)
        frequencies = self.frequencies.take(places, mode="clip")
        frequencies *= self.chunks.take(places, mode="clip") == numbers
        return frequencies


_UNIT, _NUMERATOR = np.float32(FREQUENCY_UNIT), np.float32(K1 + 1.0)


def impacts(frequencies: NDArray[np.uint8], damped: Floats) -> Floats:
    """`bm25_weight` of occurrences in FREQUENCY_UNIT."""
    tf: Floats = frequencies * _UNIT
    below = tf + damped
    tf *= _NUMERATOR
    tf /= below
    return tf


def damped_lengths(segment: Segment, means: Mapping[str, float]) -> Floats:
    """For each passage the length term of BM25's denominator, with these mean lengths by language."""
    by_language = np.array([means.get(language, 1.0) for language in segment.languages] or [1.0])
    ratios = segment.chunks["length"] / by_language[segment.chunks["language"]]
    return damping(ratios).astype(np.float32)


def stretch(means: Mapping[str, float], others: Mapping[str, float]) -> float:
    """The factor by which impacts with the `others` as mean lengths may exceed those with `means`.

    With d = a + b dl / avgdl an impact tf / (tf + d) grows by avgdl' / avgdl at most, and only where that is > 1.
    """
    return max([1.0, *(mean / means[name] for name, mean in others.items() if name in means)])


@dataclass(frozen=True, slots=True)
class ScoredPassages:
    """Passages of one segment: their numbers and BM25 scores, unordered."""

    numbers: Numbers
    scores: Floats


def best(
    terms: Sequence[tuple[float, Postings]],
    damped: Floats,
    k: int,
    visible: Callable[[NDArray[np.intp]], NDArray[np.bool_]] | None = None,
    floor: float = 0.0,
    *,
    stretch: float = 1.0,
) -> ScoredPassages:
    """The `k` best passages of a segment, and all that tie with the last of them.

    `terms` are (weight, postings) by descending weight, ties in one fixed order. `visible` is a mask over passage
    numbers; passages below `floor` may be omitted. Impacts with `damped` are at most `stretch` times the stored bounds.
    """
    weights = [np.float32(weight) for weight, _ in terms]
    bounds = [weight * float(postings.highest) * stretch for weight, postings in terms]
    remaining = _remaining(bounds)
    scores = np.zeros(len(damped), np.float32)
    threshold, read, place = np.float32(floor), 0, 0
    hits: NDArray[np.intp] | None = None
    for place in range(len(terms)):
        postings = terms[place][1]
        if read and postings.count > CHECK_RATIO * read:
            hits = _hits(scores, threshold - remaining[place], visible)
            threshold = max(threshold, _kth(scores[hits], k))
        if remaining[place] < threshold:
            break
        hits = None
        postings.add(scores, weights[place], damped)
        read += postings.count
    else:
        place = len(terms)
    if hits is None:
        hits = _hits(scores, threshold - remaining[place], visible)
    partial = scores[hits]
    for later in range(place, len(terms)):
        if len(hits) > LOOKED_UP:
            threshold = max(threshold, _kth(partial, k))
            able = partial + remaining[later] >= threshold
            hits, partial = hits[able], partial[able]
        partial = partial + weights[later] * terms[later][1].at(hits.astype(np.int32), damped)
    retained = partial >= max(threshold, _kth(partial, k))
    return ScoredPassages(hits[retained].astype(np.int32), partial[retained])


def _remaining(bounds: Sequence[float]) -> list[np.float32]:
    """Upper bound of what the terms from each position on can add; the slack grows with the number of terms."""
    slack = SLACK + len(bounds) * ROUNDING
    sums = itertools.accumulate(reversed(bounds), initial=0.0)
    return [np.float32(total * slack) for total in sums][::-1]


def _hits(
    scores: Floats, least: np.float32, visible: Callable[[NDArray[np.intp]], NDArray[np.bool_]] | None
) -> NDArray[np.intp]:
    """The scored passages with at least `least` that are visible."""
    # Compared first: `nonzero` is several times faster on booleans than on floats.
    hits = (scores >= least if least > 0 else scores > 0).nonzero()[0]
    return hits if visible is None else hits[visible(hits)]


def _kth(scores: Floats, k: int) -> np.float32:
    """The `k`-th best of the scores; 0 when there are fewer."""
    if len(scores) < k:
        return np.float32(0)
    ordered = scores.copy()
    ordered.partition(len(scores) - k)
    return np.float32(ordered[len(scores) - k])
