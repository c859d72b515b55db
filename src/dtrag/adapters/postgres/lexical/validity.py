"""Which passages are not valid on a day: later and superseded editions, held in memory beside the segments."""

from __future__ import annotations

import uuid
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np
from numpy.typing import NDArray
from psycopg.rows import DictRow

from dtrag.core.editions import ValidPassages
from dtrag.core.ranking.segments import Segment, halves

ROWS = np.dtype(
    [("upper", "<u8"), ("lower", "<u8"), ("first", "<i4"), ("last", "<i4"), ("start", "<i4"), ("end", "<i4")]
)
"""One row per span of passages: halves of the document id, passages, days since 1970-01-01; `end` is exclusive."""
OPEN = np.iinfo(np.int32).max
EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class DatedPassages:
    """The validity of all dated passages. Between two of the `changes` the same passages are valid."""

    rows: NDArray[np.void] = field(default_factory=lambda: np.empty(0, ROWS))
    changes: tuple[int, ...] = ()
    by_document: Mapping[int, Sequence[ValidPassages]] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[DictRow]) -> DatedPassages:
        """From rows of `validity` in sql/search.sql; with many editions it belongs in a thread."""
        table = np.array([_row(row) for row in rows], ROWS)
        days = np.unique(np.concatenate([table["start"], table["end"]]))
        return cls(table, tuple(days[days < OPEN].tolist()), _by_document(table))

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
            for part in self.by_document.get(uuid.UUID(document).int, ()):
                if part.first <= int(ordinal) <= part.last:
                    by_chunk_id[chunk_id] = part
        return by_chunk_id

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


def _by_document(rows: NDArray[np.void]) -> dict[int, list[ValidPassages]]:
    parts: dict[int, list[ValidPassages]] = {}
    for upper, lower, first, last, start, end in rows.tolist():
        until = None if end == OPEN else date.fromordinal(end + EPOCH)
        part = ValidPassages(first, last, date.fromordinal(start + EPOCH), until)
        parts.setdefault(upper << 64 | lower, []).append(part)
    return parts


def _row(row: DictRow) -> tuple[int, ...]:
    end = OPEN if row["end"] < 0 else row["end"]
    return (*halves(row["document_id"]), row["first"], row["last"], row["start"], end)
