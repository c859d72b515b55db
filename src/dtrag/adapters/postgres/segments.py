"""Term statistics as rows: segments that are counted once per batch of documents and added up in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from psycopg.types.json import Jsonb

from dtrag.adapters.postgres.rows import IntArray
from dtrag.core.documents import IndexedChunk, Terms
from dtrag.core.scoring import LexicalStatistics


class Tally:
    """Counts what a batch adds to the collection and takes from it."""

    def __init__(self) -> None:
        self._added: list[Terms] = []
        self._removed: list[Terms] = []
        self._lengths: dict[str, tuple[int, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._lengths)

    def add(self, chunk: IndexedChunk) -> None:
        """A chunk that was written."""
        self._added.append(chunk.term_ids)
        self._length(chunk.language, chunk.length, 1)

    def restore(self, row: Mapping[str, Any]) -> None:
        """A row of lexical_index (terms, length, language) that is there but was never counted."""
        self._added.append(np.asarray(row["terms"], np.int32))
        self._length(row["language"], row["length"], 1)

    def remove(self, row: Mapping[str, Any]) -> None:
        """A row of lexical_index that was deleted."""
        self._removed.append(np.asarray(row["terms"], np.int32))
        self._length(row["language"], row["length"], -1)

    def _length(self, language: str, length: int, sign: int) -> None:
        count, total = self._lengths.get(language, (0, 0))
        self._lengths[language] = (count + sign, total + sign * length)

    def statistics(self) -> LexicalStatistics:
        """What was counted, negative where more was taken than added."""
        parts = [
            LexicalStatistics(*_counted(terms, sign), chunks=sign * len(terms))
            for terms, sign in ((self._added, 1), (self._removed, -1))
        ]
        merged = LexicalStatistics.merged(parts)
        return LexicalStatistics(merged.term_ids, merged.frequencies, merged.chunks, self._lengths)


def _counted(terms: list[Terms], sign: int) -> tuple[Any, Any]:
    if not terms:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    ids, counts = np.unique(np.concatenate(terms), return_counts=True)
    return ids.astype(np.int64), sign * counts.astype(np.int64)


def statistics_of(row: Mapping[str, Any]) -> LexicalStatistics:
    """A row of statistics_segments as statistics."""
    return LexicalStatistics(
        np.asarray(row["term_ids"], dtype=np.int64),
        np.asarray(row["frequencies"], dtype=np.int64),
        row["chunks"],
        {language: (pair[0], pair[1]) for language, pair in row["lengths"].items()},
    )


def parameters_of(statistics: LexicalStatistics) -> dict[str, Any]:
    """Statistics as parameters of `count_segment` and `add_segment`."""
    return {
        "chunks": statistics.chunks,
        "lengths": Jsonb({language: list(pair) for language, pair in statistics.lengths.items()}),
        "term_ids": IntArray(statistics.term_ids.astype(np.int32)),
        "frequencies": IntArray(statistics.frequencies.astype(np.int32)),
    }
