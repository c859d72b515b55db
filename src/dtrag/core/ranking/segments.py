"""An inverted index in immutable segments: the heads of segments from passages, and from the heads of others.

A segment numbers its passages 0, 1, 2 ... in the order of its documents. Deleted documents stay until a merge drops
them. The postings are in `posting_table.py`.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dtrag.core.documents import Terms
from dtrag.core.ranking.bm25 import LexicalStatistics

FREQUENCY_UNIT = 0.25
"""Field-weighted occurrences are stored in quarters, in one byte: up to 63.75, far beyond the saturation of BM25."""
MOST_FREQUENT = 255

DOCUMENTS = np.dtype(
    [("document_id", "<u8", (2,)), ("origin", "<u8", (2,)), ("title", "<u8"), ("node_id", "<i4"), ("chunks", "<i4")]
)
"""One row per document; ids as their upper and lower half. `origin` is the segment that it was written with: it
distinguishes two versions of a document; `title` is the number of its title (core/text/passage_title_mentions.py)."""
CHUNKS = np.dtype([("length", "<i4"), ("language", "u1")])
"""One row per passage: its length in terms and the number of its language."""


def quantised(frequencies: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Occurrences in FREQUENCY_UNIT, at least one unit each."""
    units: NDArray[np.float32] = np.rint(frequencies / np.float32(FREQUENCY_UNIT))
    return units.clip(1, MOST_FREQUENT).astype(np.uint8)


def whole(parts: NDArray[np.uint64]) -> uuid.UUID:
    """The id that consists of these two halves."""
    return uuid.UUID(int=int(parts[0]) << 64 | int(parts[1]))


def halves(identity: uuid.UUID) -> tuple[int, int]:
    """An id as the two 64-bit numbers that arrays hold."""
    return identity.int >> 64, identity.int & 0xFFFF_FFFF_FFFF_FFFF


@dataclass(frozen=True, slots=True)
class ForwardRow:
    """The terms of one passage: `terms` int32, ascending, distinct; `frequencies` in FREQUENCY_UNIT, parallel.

    `title` is the number of the document's title.
    """

    document_id: uuid.UUID
    title: int
    node_id: int
    language: str
    length: int
    terms: Terms
    frequencies: NDArray[np.uint8]


@dataclass(frozen=True)
class Segment:
    """The head of a segment: everything but its postings.

    `documents` (dtype DOCUMENTS), `chunks` (dtype CHUNKS), `languages` by number; `term_ids` (int32, ascending) and
    `frequencies` (int32: postings of each term, deleted passages included) are parallel.
    """

    segment_id: uuid.UUID
    documents: NDArray[np.void]
    chunks: NDArray[np.void]
    languages: tuple[str, ...]
    term_ids: NDArray[np.int32]
    frequencies: NDArray[np.int32]
    document_of: NDArray[np.int32] = field(init=False)
    first: NDArray[np.int32] = field(init=False)

    def __post_init__(self) -> None:
        counts = self.documents["chunks"].astype(np.int32)
        ends = np.cumsum(counts, dtype=np.int32)
        object.__setattr__(self, "document_of", np.repeat(np.arange(len(counts), dtype=np.int32), counts))
        object.__setattr__(self, "first", ends - counts)

    def __len__(self) -> int:
        return len(self.chunks)

    def statistics(self) -> LexicalStatistics:
        """The segment's part of the statistics of the collection, deleted documents included."""
        lengths = {}
        for number, language in enumerate(self.languages):
            own = self.chunks["length"][self.chunks["language"] == number]
            lengths[language] = (len(own), int(own.sum(dtype=np.int64)))
        return LexicalStatistics(self.term_ids, self.frequencies, len(self.chunks), lengths)

    def locate(self, documents: Sequence[uuid.UUID]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Positions in `documents` of those that are in the segment, deleted versions included, and their rows."""
        ids = np.array([halves(document) for document in documents], np.uint64).reshape(-1, 2)
        order, upper = self.by_document
        left, right = upper.searchsorted(ids[:, 0], "left"), upper.searchsorted(ids[:, 0], "right")
        pairs = [(place, order[at]) for place in range(len(ids)) for at in range(left[place], right[place])]
        places = np.array([place for place, _ in pairs], np.intp)
        rows = np.array([row for _, row in pairs], np.intp)
        exact = self.documents["document_id"][rows, 1] == ids[places, 1]
        return places[exact], rows[exact]

    def titled(self, numbers: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Rows of the documents whose title has one of these numbers."""
        order, titles = self.by_title
        if not len(titles):
            return order
        present = titles[np.minimum(titles.searchsorted(numbers), len(titles) - 1)] == numbers
        numbers = np.unique(numbers[present])  # few: all of them would take four times as long
        left, right = titles.searchsorted(numbers, "left"), titles.searchsorted(numbers, "right")
        rows = [order[left[place] : right[place]] for place in np.flatnonzero(right > left).tolist()]
        return np.concatenate(rows) if rows else np.empty(0, np.intp)

    @functools.cached_property
    def by_document(self) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
        """Rows of the documents by the upper half of the id, and those halves, ascending. Computed on first use."""
        order = np.argsort(self.documents["document_id"][:, 0])
        return order, self.documents["document_id"][order, 0]

    @functools.cached_property
    def by_title(self) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
        """Rows of the documents by the number of the title, and these numbers, ascending."""
        order = np.argsort(self.documents["title"])
        return order, self.documents["title"][order]

    def rows_of(self, documents: Iterable[tuple[uuid.UUID, uuid.UUID]]) -> NDArray[np.intp]:
        """The rows of those (document id, origin) that are in the segment."""
        return self.rows_of_quarters(quarters(documents))

    def rows_of_quarters(self, ids: NDArray[np.uint64]) -> NDArray[np.intp]:
        """As `rows_of`, for the array that `quarters` returned: computed once for all segments."""
        if not len(ids) or not len(self.documents):
            return np.empty(0, np.intp)
        rows = np.flatnonzero(np.isin(self.documents["document_id"][:, 0], ids[:, 0]))
        here = np.hstack([self.documents["document_id"][rows], self.documents["origin"][rows]])
        exact = np.isin(packed(here), packed(ids))
        return rows[exact]


def quarters(documents: Iterable[tuple[uuid.UUID, uuid.UUID]]) -> NDArray[np.uint64]:
    """Both halves of the id and both of the origin of each (document id, origin); shape (documents, 4)."""
    rows = [(*halves(document), *halves(origin)) for document, origin in documents]
    return np.array(rows, np.uint64).reshape(-1, 4)


def packed(rows: NDArray[np.uint64]) -> NDArray[np.void]:
    """Rows of four numbers as one value each, for `np.isin`."""
    return np.ascontiguousarray(rows).view([("", np.uint64)] * 4).reshape(-1)


def build(segment_id: uuid.UUID, rows: Iterable[ForwardRow], origin: uuid.UUID | None = None) -> Segment:
    """The head of a segment from passages; those of one document are consecutive."""
    documents: list[tuple[tuple[int, int], tuple[int, int], int, int, int]] = []
    lengths, languages, terms = [], [], []
    numbers: dict[str, int] = {}
    origin_halves, last = halves(origin or segment_id), None
    for row in rows:
        if row.document_id != last:
            documents.append((halves(row.document_id), origin_halves, row.title, row.node_id, 0))
            last = row.document_id
        documents[-1] = (*documents[-1][:4], documents[-1][4] + 1)
        lengths.append(row.length)
        languages.append(numbers.setdefault(row.language, len(numbers)))
        terms.append(row.terms)
    chunks = np.zeros(len(lengths), CHUNKS)
    chunks["length"], chunks["language"] = lengths, languages
    term_ids, df = np.unique(np.concatenate([np.empty(0, np.int32), *terms]), return_counts=True)
    table = np.array(documents, DOCUMENTS) if documents else np.empty(0, DOCUMENTS)
    return Segment(segment_id, table, chunks, tuple(numbers), term_ids, df.astype(np.int32))


def merged(segment_id: uuid.UUID, inputs: Sequence[Segment], removed: Sequence[NDArray[np.intp]]) -> Segment:
    """The head of one segment instead of several, without the documents in the `removed` rows of each.

    Its `frequencies` count the postings of the removed documents, too.
    """
    languages = tuple(dict.fromkeys(name for segment in inputs for name in segment.languages))
    documents, chunks = [np.empty(0, DOCUMENTS)], [np.empty(0, CHUNKS)]
    for segment, rows in zip(inputs, removed, strict=True):
        remaining = np.ones(len(segment.documents), bool)
        remaining[rows] = False
        own = segment.chunks[remaining[segment.document_of]]
        translated = np.array([languages.index(name) for name in segment.languages] or [0], np.uint8)
        own["language"] = translated[own["language"]]
        documents.append(segment.documents[remaining])
        chunks.append(own)
    counted = LexicalStatistics.merged([segment.statistics() for segment in inputs])
    return Segment(
        segment_id,
        np.concatenate(documents),
        np.concatenate(chunks),
        languages,
        counted.term_ids.astype(np.int32),
        counted.frequencies.astype(np.int32),
    )
