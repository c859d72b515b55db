"""The lexical index at one moment, and as one scope sees it: segments, which of their documents count, statistics."""

from __future__ import annotations

import uuid
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, TypeVar

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from dtrag.adapters.postgres.lexical.rows import Correction
from dtrag.core.access.scope import Scope, SearchFilters
from dtrag.core.editions import ValidPassages
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.ranking.maxscore import damped_lengths
from dtrag.core.ranking.segments import Segment, quarters
from dtrag.ports import valid_day

ROWS = np.dtype(
    [("upper", "<u8"), ("lower", "<u8"), ("first", "<i4"), ("last", "<i4"), ("start", "<i4"), ("end", "<i4")]
)
"""One row per span of passages: halves of the document id, passages, days since 1970-01-01; `end` is exclusive."""
SENT = np.dtype([(name, form.newbyteorder(">")) for name, (form, *_) in (ROWS.fields or {}).items()])
"""The same as PostgreSQL sends it."""
OPEN = np.iinfo(np.int32).max
EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class DatedPassages:
    """The validity of all dated passages. Between two of the `changes` the same passages are valid.

    `rows` are ascending by document, and `upper` has the upper halves of their ids.
    """

    spans: bytes = b""
    rows: NDArray[np.void] = field(default_factory=lambda: np.empty(0, ROWS))
    upper: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    changes: tuple[int, ...] = ()
    _by_document: dict[int, Sequence[ValidPassages]] = field(default_factory=dict)

    @classmethod
    def of(cls, spans: bytes) -> DatedPassages:
        """From the value of `validity` in sql/search.sql."""
        rows = np.frombuffer(spans, SENT).astype(ROWS)
        rows = rows[np.lexsort((rows["first"], rows["lower"], rows["upper"]))]
        days = np.unique(np.concatenate([rows["start"], rows["end"]]))
        return cls(spans, rows, rows["upper"].copy(), tuple(days[days < OPEN].tolist()))

    def period(self, day: date) -> int | None:
        """The number of the period that the day is in; None if all passages are valid in it."""
        if not self.changes:
            return None
        number = bisect_right(self.changes, day.toordinal() - EPOCH)
        return number if len(self._hidden(number)) else None

    def validity(self, chunk_ids: Iterable[str]) -> dict[str, ValidPassages]:
        """Chunk id -> validity, for the passages of dated editions."""
        if not self.changes:
            return {}
        by_chunk_id: dict[str, ValidPassages] = {}
        for chunk_id in chunk_ids:
            document, _, ordinal = chunk_id.rpartition(":")
            for part in self._of_document(int(document.replace("-", ""), 16)):
                if part.first <= int(ordinal) <= part.last:
                    by_chunk_id[chunk_id] = part
        return by_chunk_id

    def _of_document(self, number: int) -> Sequence[ValidPassages]:
        """The spans of a document, made once."""
        parts = self._by_document.get(number)
        if parts is None:
            upper, lower = np.uint64(number >> 64), number & 0xFFFF_FFFF_FFFF_FFFF
            rows = self.rows[self.upper.searchsorted(upper, "left") : self.upper.searchsorted(upper, "right")]
            parts = self._by_document[number] = [
                ValidPassages(first, last, date.fromordinal(start + EPOCH), _until(end))
                for _, of_row, first, last, start, end in rows.tolist()
                if of_row == lower
            ]
        return parts

    def hidden(self, segment: Segment, period: int) -> NDArray[np.bool_] | None:
        """Which passages of a segment are not valid in a period; None: all are."""
        rows = self._hidden(period)
        if not len(rows):
            return None
        order, upper = segment.by_document
        left, right = upper.searchsorted(rows["upper"], "left"), upper.searchsorted(rows["upper"], "right")
        mask: NDArray[np.bool_] | None = None
        for place in np.flatnonzero(right > left).tolist():
            for row in order[left[place] : right[place]].tolist():
                document = segment.documents[row]
                if document["document_id"][1] != rows["lower"][place]:
                    continue
                if mask is None:
                    mask = np.zeros(len(segment), bool)
                start = int(segment.first[row])
                last = min(int(rows["last"][place]) + 1, int(document["chunks"]))
                mask[start + int(rows["first"][place]) : start + last] = True
        return mask

    def _hidden(self, period: int) -> NDArray[np.void]:
        """The spans that are not valid between the change before the period and the one after it."""
        day = self.changes[period - 1] if period else self.changes[0] - 1
        return self.rows[(self.rows["start"] > day) | (self.rows["end"] <= day)]


def _until(end: int) -> date | None:
    return None if end == OPEN else date.fromordinal(end + EPOCH)


Bools = NDArray[np.bool_]
T = TypeVar("T")
VIEWS_KEPT = 64
"""Scopes whose passages are kept marked: a byte for each passage of the index."""
SCORED_BYTES = 64 * 2**20
"""Lengths of passages damped by the mean lengths of scopes: 4 bytes for each passage of the index and each scope."""
FILTERED_BYTES = 32 * 2**20
"""Sets of documents that pass some filters, kept for the next search with the same filters: 16 bytes each."""


@dataclass(frozen=True, slots=True)
class LiveSegment:
    """A segment with what may change around it: which documents are alive (None: all), and the damped lengths."""

    segment: Segment
    alive: Bools | None
    damped: NDArray[np.float32]

    def places(
        self, passages: Sequence[tuple[uuid.UUID, int]], visible: Bools | None
    ) -> tuple[list[int], NDArray[np.int32]]:
        """Which of the passages (document, ordinal) are here and visible (None: all are), and their numbers."""
        places, rows = self.segment.locate([document for document, _ in passages])
        ordinals = np.array([passages[place][1] for place in places.tolist()], np.int32)
        there = (ordinals >= 0) & (ordinals < self.segment.documents["chunks"][rows])
        numbers = (self.segment.first[rows] + ordinals)[there].astype(np.int32)
        places = places[there]
        if visible is not None:
            places, numbers = places[visible[numbers]], numbers[visible[numbers]]
        return places.tolist(), numbers


@dataclass(frozen=True, slots=True)
class Generation:
    """The lexical index at one moment, with caches of what is derived from it: they are dropped together with it.

    The reader fills `documents_with`, the documents that pass some filters, and `views`, by `view_key`.
    """

    segments: tuple[LiveSegment, ...]
    statistics: LexicalStatistics
    means: Mapping[str, float]
    editions: DatedPassages = field(default_factory=DatedPassages)
    documents_with: LRUCache[SearchFilters, NDArray[np.uint64]] = field(
        default_factory=lambda: by_size(FILTERED_BYTES, lambda ids: ids.nbytes), repr=False, compare=False
    )
    views: LRUCache[tuple[frozenset[int] | None, int | None], View] = field(
        default_factory=lambda: LRUCache(VIEWS_KEPT), repr=False, compare=False
    )
    _with_means: LRUCache[tuple[tuple[str, float], ...], Generation] = field(
        default_factory=lambda: by_size(SCORED_BYTES, _damped_bytes), repr=False, compare=False
    )

    def view_key(self, scope: Scope) -> tuple[frozenset[int] | None, int | None]:
        """The nodes of the scope, and the period of the editions that its day is in."""
        return scope.nodes, self.editions.period(valid_day(scope)) if self.editions.changes else None

    def with_means(self, means: Mapping[str, float]) -> Generation:
        """Scored by the mean lengths of another collection: one that this is a part of, or a scope's part of this."""
        if means == self.means:
            return self
        key = tuple(sorted(means.items()))
        scored = self._with_means.get(key)
        if scored is None:
            scored = self._with_means[key] = self._scored_by(means)
        return scored

    def _scored_by(self, means: Mapping[str, float]) -> Generation:
        live = (replace(part, damped=damped_lengths(part.segment, means)) for part in self.segments)
        return Generation(tuple(live), self.statistics, means, self.editions)


@dataclass(frozen=True, slots=True)
class View:
    """Which passages of each segment a scope reaches, are alive and valid on the day (None: all), and how many.

    `lengths` maps a language to (number of the visible passages, sum of their lengths); `frequencies` are the numbers
    of them that hold a term, as far as they were asked for. The view of a `whole` index has no `lengths`: its
    statistics are those of the index.
    """

    visible: Mapping[uuid.UUID, Bools | None]
    whole: bool
    passages: int
    lengths: Mapping[str, tuple[int, int]]
    frequencies: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, now: Generation, scope: Scope, period: int | None) -> View:
        """The view of a scope in a period of the editions (None: no passage is hidden). Reads every document."""
        all_visible: dict[uuid.UUID, Bools | None] = {}
        whole = scope.nodes is None and period is None
        passages = 0
        lengths: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        for live in now.segments:
            segment, mask = live.segment, live.alive
            if scope.nodes is not None:
                reached = np.isin(segment.documents["node_id"], list(scope.nodes))
                mask = reached if mask is None else reached & mask
            visible = None if mask is None else mask[segment.document_of]
            hidden = None if period is None else now.editions.hidden(segment, period)
            if hidden is not None:
                visible = ~hidden if visible is None else visible & ~hidden
            all_visible[segment.segment_id] = visible
            passages += len(segment) if visible is None else int(np.count_nonzero(visible))
            if whole:
                continue  # the index knows its own lengths
            chunks = segment.chunks if visible is None else segment.chunks[visible]
            for number, language in enumerate(segment.languages):
                own = chunks["length"][chunks["language"] == number]
                counts[language] += len(own)
                lengths[language] += int(own.sum(dtype=np.int64))
        by_language = {language: (counts[language], lengths[language]) for language in counts}
        return cls(all_visible, whole, passages, by_language)


def _damped_bytes(generation: Generation) -> int:
    return sum(live.damped.nbytes for live in generation.segments)


def by_size(max_bytes: int, size_of: Callable[[T], int]) -> LRUCache[Any, T]:
    """A cache that keeps the latest value even when that alone is larger than `max_bytes`."""
    return LRUCache(max_bytes, getsizeof=lambda value: min(max_bytes, size_of(value)))


def generation_of(
    segments: Sequence[Segment], corrections: Sequence[Correction], editions: DatedPassages
) -> Generation:
    """What these segments hold, less what the corrections take out of them."""
    corrected = LexicalStatistics.merged([row.statistics for row in corrections])
    parts = [*(segment.statistics() for segment in segments), corrected]
    statistics = LexicalStatistics.joined(parts)
    means = statistics.mean_lengths()
    gone = quarters(document for correction in corrections for document in correction.documents)
    live = []
    for segment in sorted(segments, key=len, reverse=True):
        rows, alive = segment.rows_of_quarters(gone), None
        if len(rows):
            alive = np.ones(len(segment.documents), bool)
            alive[rows] = False
        live.append(LiveSegment(segment, alive, damped_lengths(segment, means)))
    return Generation(tuple(live), statistics, means, editions)
