"""An inverted index in immutable segments: building segments from passages, and merging segments.

A segment numbers its passages 0, 1, 2 ... in the order of its documents. Its postings are one array, sorted by term id
and within a term by passage number; `offsets[i]` is where term i begins, so that the array can be split into pages
anywhere. Deleted documents stay until a merge drops them.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Iterable, Iterator, Sequence
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
POSTINGS = np.dtype([("chunk", "<i4"), ("frequency", "u1")])
"""One posting: the number of the passage and the occurrences in FREQUENCY_UNIT. 5 bytes."""


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
    offsets: NDArray[np.int64] = field(init=False)
    document_of: NDArray[np.int32] = field(init=False)
    first: NDArray[np.int32] = field(init=False)

    def __post_init__(self) -> None:
        counts = self.documents["chunks"].astype(np.int32)
        ends = np.cumsum(counts, dtype=np.int32)
        object.__setattr__(self, "offsets", np.concatenate([[0], np.cumsum(self.frequencies, dtype=np.int64)]))
        object.__setattr__(self, "document_of", np.repeat(np.arange(len(counts), dtype=np.int32), counts))
        object.__setattr__(self, "first", ends - counts)

    def __len__(self) -> int:
        return len(self.chunks)

    def span(self, term: int) -> tuple[int, int]:
        """Where the postings of a term begin and end in the run."""
        place = int(self.term_ids.searchsorted(np.int32(term)))  # another type would convert the whole array
        if place == len(self.term_ids) or self.term_ids[place] != term:
            return 0, 0
        return int(self.offsets[place]), int(self.offsets[place + 1])

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


def build(
    segment_id: uuid.UUID, rows: Iterable[ForwardRow], origin: uuid.UUID | None = None
) -> tuple[Segment, NDArray[np.void]]:
    """A segment and its postings (dtype POSTINGS) from passages; those of one document are consecutive."""
    documents: list[tuple[tuple[int, int], tuple[int, int], int, int, int]] = []
    lengths, languages, terms, frequencies = [], [], [], []
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
        frequencies.append(row.frequencies)
    chunks = np.zeros(len(lengths), CHUNKS)
    chunks["length"], chunks["language"] = lengths, languages
    counts = [len(part) for part in terms]
    all_terms = np.concatenate([np.empty(0, np.int32), *terms])
    order = np.argsort(all_terms, kind="stable")
    postings = np.empty(len(order), POSTINGS)
    postings["chunk"] = np.repeat(np.arange(len(counts), dtype=np.int32), counts)[order]
    postings["frequency"] = np.concatenate([np.empty(0, np.uint8), *frequencies])[order]
    term_ids, df = np.unique(all_terms, return_counts=True)
    table = np.array(documents, DOCUMENTS) if documents else np.empty(0, DOCUMENTS)
    return Segment(segment_id, table, chunks, tuple(numbers), term_ids, df.astype(np.int32)), postings


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a merge: for each input the half-open range of its postings that belongs to a range of term ids."""

    spans: tuple[tuple[int, int], ...]
    lowest: int
    beyond: int


@dataclass(slots=True)
class SegmentMerge:
    """Merges segments into one without their deleted documents, one slice of the terms at a time.

    `removed` holds for each input the rows of its deleted documents. After `take` was called for all slices in order,
    `head()` is the new segment and `dropped()` the statistics of the deleted documents.
    """

    segment_id: uuid.UUID
    inputs: Sequence[Segment]
    removed: Sequence[NDArray[np.intp]]
    _numbers: list[NDArray[np.int32]] = field(init=False)
    _languages: tuple[str, ...] = field(init=False)
    _terms: list[NDArray[np.int32]] = field(default_factory=list)
    _frequencies: list[NDArray[np.int32]] = field(default_factory=list)
    _gone: list[tuple[NDArray[np.int32], NDArray[np.int64]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """New number of every passage, -1 for those that are dropped."""
        base = 0
        self._numbers = []
        for segment, alive in zip(self.inputs, self._alive(), strict=True):
            retained = alive[segment.document_of]
            numbers = np.full(len(segment), -1, np.int32)
            numbers[retained] = np.arange(base, base + int(retained.sum()), dtype=np.int32)
            base += int(retained.sum())
            self._numbers.append(numbers)
        self._languages = tuple(dict.fromkeys(name for segment in self.inputs for name in segment.languages))

    def _alive(self) -> list[NDArray[np.bool_]]:
        masks = []
        for segment, rows in zip(self.inputs, self.removed, strict=True):
            alive = np.ones(len(segment.documents), bool)
            alive[rows] = False
            masks.append(alive)
        return masks

    def slices(self, most: int) -> Iterator[Slice]:
        """Ranges of term ids with about `most` postings of all inputs together, ascending."""
        terms = np.unique(np.concatenate([np.empty(0, np.int32), *(segment.term_ids for segment in self.inputs)]))
        if not len(terms):
            return
        before = sum(
            (segment.offsets[np.searchsorted(segment.term_ids, terms)] for segment in self.inputs),
            np.zeros(len(terms), np.int64),
        )
        starts = np.unique(np.searchsorted(before, np.arange(0, before[-1] + 1, most)))
        for start, end in zip(starts, [*starts[1:], len(terms)], strict=True):
            lowest, beyond = int(terms[start]), int(terms[end - 1]) + 1
            spans = []
            for segment in self.inputs:
                left, right = np.searchsorted(segment.term_ids, [lowest, beyond])
                spans.append((int(segment.offsets[left]), int(segment.offsets[right])))
            yield Slice(tuple(spans), lowest, beyond)

    def take(self, part: Slice, runs: Sequence[NDArray[np.void]]) -> NDArray[np.void]:
        """The new postings of a slice, from its ranges of the inputs' postings."""
        terms, chunks, frequencies = [], [], []
        for segment, numbers, run in zip(self.inputs, self._numbers, runs, strict=True):
            left, right = np.searchsorted(segment.term_ids, [part.lowest, part.beyond])
            terms.append(np.repeat(segment.term_ids[left:right], segment.frequencies[left:right]))
            chunks.append(numbers[run["chunk"]])
            frequencies.append(run["frequency"])
        all_terms, all_chunks = np.concatenate(terms), np.concatenate(chunks)
        retained = np.flatnonzero(all_chunks >= 0)
        if len(retained) < len(all_chunks):
            ids, counts = np.unique(all_terms[all_chunks < 0], return_counts=True)
            self._gone.append((ids, counts))
        order = retained[np.argsort(all_terms[retained], kind="stable")]
        ids, counts = np.unique(all_terms[order], return_counts=True)
        self._terms.append(ids)
        self._frequencies.append(counts.astype(np.int32))
        merged = np.empty(len(order), POSTINGS)
        merged["chunk"] = all_chunks[order]
        merged["frequency"] = np.concatenate(frequencies)[order]
        return merged

    def head(self) -> Segment:
        """The new segment."""
        documents = [segment.documents[alive] for segment, alive in zip(self.inputs, self._alive(), strict=True)]
        chunks = []
        for segment, numbers in zip(self.inputs, self._numbers, strict=True):
            own = segment.chunks[numbers >= 0].copy()
            translated = np.array([self._languages.index(name) for name in segment.languages] or [0], np.uint8)
            own["language"] = translated[own["language"]]
            chunks.append(own)
        return Segment(
            self.segment_id,
            np.concatenate([np.empty(0, DOCUMENTS), *documents]),
            np.concatenate([np.empty(0, CHUNKS), *chunks]),
            self._languages,
            np.concatenate([np.empty(0, np.int32), *self._terms]),
            np.concatenate([np.empty(0, np.int32), *self._frequencies]),
        )

    def dropped(self) -> LexicalStatistics:
        """The statistics of the dropped documents."""
        lengths: dict[str, tuple[int, int]] = {}
        chunks = 0
        for segment, numbers in zip(self.inputs, self._numbers, strict=True):
            gone = segment.chunks[numbers < 0]
            chunks += len(gone)
            for number, language in enumerate(segment.languages):
                own = gone["length"][gone["language"] == number]
                count, total = lengths.get(language, (0, 0))
                lengths[language] = (count + len(own), total + int(own.sum(dtype=np.int64)))
        ids = np.concatenate([np.empty(0, np.int32), *(ids for ids, _ in self._gone)])
        counts = np.concatenate([np.empty(0, np.int64), *(counts for _, counts in self._gone)])
        return LexicalStatistics(ids, counts, chunks, lengths)
