"""Term statistics as rows: segments that are counted once per batch of documents and added up in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from psycopg.types.json import Jsonb

from dtrag.core.documents import IndexedChunk
from dtrag.core.scoring import LexicalStatistics


class Tally:
    """Counts what a batch adds to and takes from the collection."""

    def __init__(self) -> None:
        self._terms: Counter[int] = Counter()
        self._lengths: dict[str, tuple[int, int]] = {}
        self._chunks = 0

    def add(self, chunk: IndexedChunk) -> None:
        """A chunk that was written."""
        self._count(chunk.frequencies, chunk.length, chunk.language, 1)

    def remove(self, row: Mapping[str, Any]) -> None:
        """A row of lexical_index (terms, length, language) that was deleted."""
        self._count(row["terms"], row["length"], row["language"], -1)

    def restore(self, row: Mapping[str, Any]) -> None:
        """A row of lexical_index that is there but was never counted."""
        self._count(row["terms"], row["length"], row["language"], 1)

    def _count(self, terms: Iterable[int], length: int, language: str, sign: int) -> None:
        for term in terms:
            self._terms[term] += sign
        count, total = self._lengths.get(language, (0, 0))
        self._lengths[language] = (count + sign, total + sign * length)
        self._chunks += sign

    def parameters(self) -> dict[str, Any]:
        """As parameters of `count_segment` and `add_segment`."""
        ids = sorted(term for term, count in self._terms.items() if count)
        return {
            "chunks": self._chunks,
            "lengths": Jsonb({language: list(pair) for language, pair in self._lengths.items()}),
            "term_ids": ids,
            "frequencies": [self._terms[term] for term in ids],
        }


def statistics_of(row: Mapping[str, Any]) -> LexicalStatistics:
    """A row of statistics_segments as statistics."""
    return LexicalStatistics(
        np.asarray(row["term_ids"], dtype=np.int64),
        np.asarray(row["frequencies"], dtype=np.int64),
        row["chunks"],
        {language: (pair[0], pair[1]) for language, pair in row["lengths"].items()},
    )


def parameters_of(statistics: LexicalStatistics) -> dict[str, Any]:
    """Statistics as parameters of `add_segment`."""
    return {
        "chunks": statistics.chunks,
        "lengths": Jsonb({language: list(pair) for language, pair in statistics.lengths.items()}),
        "term_ids": statistics.term_ids.tolist(),
        "frequencies": statistics.frequencies.tolist(),
    }
