"""Segments as rows: heads, pages of postings, and the corrections for deleted documents."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from dtrag.adapters.postgres.database import Connection, fetch_row
from dtrag.adapters.postgres.queries import queries
from dtrag.core.documents import IndexedDocument
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.ranking.segments import CHUNKS, DOCUMENTS, POSTINGS, ForwardRow, Segment, build
from dtrag.core.text.passage_title_mentions import title_key, title_number

PAGE_POSTINGS = 1_600
"""Postings of a page: 8,000 bytes, which is the most that stays in the row's own block."""


@dataclass(frozen=True, slots=True)
class Correction:
    """Documents that are gone from segments which still hold them, and what they had counted (negative numbers).

    `created_at` is when the first of them was deleted.
    """

    correction_id: uuid.UUID
    documents: tuple[tuple[uuid.UUID, uuid.UUID], ...]
    statistics: LexicalStatistics
    created_at: datetime


def pages_of(run: tuple[int, int]) -> range:
    """The pages that hold a half-open run of postings."""
    start, end = run
    return range(start // PAGE_POSTINGS, -(-end // PAGE_POSTINGS)) if end > start else range(0)


def cut_run(run: tuple[int, int], pages: Sequence[bytes]) -> NDArray[np.void]:
    """The postings of a run from the bytes of its pages, in order."""
    start, end = run
    if end <= start:
        return np.empty(0, POSTINGS)
    before = start // PAGE_POSTINGS * PAGE_POSTINGS
    return np.frombuffer(b"".join(pages), POSTINGS)[start - before : end - before]


class Pages:
    """Cuts postings that come in order into pages."""

    def __init__(self, segment_id: uuid.UUID):
        self._segment_id = segment_id
        self._next = 0
        self._left = b""

    def rows(self, postings: NDArray[np.void]) -> Iterator[tuple[uuid.UUID, int, bytes]]:
        """The rows of posting_pages that are full now."""
        data, size = self._left + postings.tobytes(), PAGE_POSTINGS * POSTINGS.itemsize
        full = len(data) // size * size
        for start in range(0, full, size):
            yield self._segment_id, self._next, data[start : start + size]
            self._next += 1
        self._left = data[full:]

    def last(self) -> Iterator[tuple[uuid.UUID, int, bytes]]:
        """The row that is not full."""
        if self._left:
            yield self._segment_id, self._next, self._left


async def copy_pages(connection: Connection, rows: Iterable[tuple[uuid.UUID, int, bytes]]) -> None:
    """Write rows of posting_pages."""
    async with connection.cursor() as cursor, cursor.copy(queries("writing")["copy_pages"]) as copy:
        copy.set_types(["uuid", "int4", "bytea"])
        for row in rows:
            await copy.write_row(row)


def forward_rows(documents: Iterable[IndexedDocument]) -> Iterator[ForwardRow]:
    """The passages of documents that were written, as `lexical_index` holds them."""
    for document in documents:
        title = title_number(title_key(document.document.title))
        for chunk in document.chunks:
            yield ForwardRow(
                document.document_id,
                title,
                document.node_id,
                chunk.language,
                chunk.length,
                chunk.term_ids,
                chunk.frequencies,
            )


def forward_row(row: DictRow) -> ForwardRow:
    """A row of `lexical_index`, with the title of its document."""
    return ForwardRow(
        row["document_id"],
        title_number(title_key(row["title"])),
        row["node_id"],
        row["language"],
        row["length"],
        np.frombuffer(row["terms"], np.int32),
        np.frombuffer(row["frequencies"], np.uint8),
    )


def segment_of(row: DictRow) -> Segment:
    """A row of `lexical_segments`."""
    return Segment(
        row["segment_id"],
        np.frombuffer(row["documents"], DOCUMENTS),
        np.frombuffer(row["chunks"], CHUNKS),
        tuple(row["languages"]),
        np.frombuffer(row["term_ids"], np.int32),
        np.frombuffer(row["frequencies"], np.int32),
    )


def segment_parameters(segment: Segment) -> dict[str, object]:
    """A head as parameters of `count_segment`."""
    return {
        "segment_id": segment.segment_id,
        "passages": len(segment),
        "languages": list(segment.languages),
        "documents": segment.documents.tobytes(),
        "chunks": segment.chunks.tobytes(),
        "term_ids": segment.term_ids.tobytes(),
        "frequencies": segment.frequencies.tobytes(),
    }


def correction_of(row: DictRow) -> Correction:
    """A row of `lexical_corrections`."""
    statistics = LexicalStatistics(
        np.frombuffer(row["term_ids"], np.int32),
        np.frombuffer(row["frequencies"], np.int32),
        row["passages"],
        {language: (pair[0], pair[1]) for language, pair in row["lengths"].items()},
    )
    documents = tuple(zip(row["document_ids"], row["origins"], strict=True))
    return Correction(row["correction_id"], documents, statistics, row["created_at"])


def correction_parameters(correction: Correction) -> dict[str, object]:
    """A correction as parameters of `add_correction`."""
    statistics = correction.statistics
    return {
        "correction_id": correction.correction_id,
        "created_at": correction.created_at,
        "document_ids": [document for document, _ in correction.documents],
        "origins": [origin for _, origin in correction.documents],
        "passages": statistics.chunks,
        "lengths": Jsonb({language: list(pair) for language, pair in statistics.lengths.items()}),
        "term_ids": statistics.term_ids.astype(np.int32).tobytes(),
        "frequencies": statistics.frequencies.astype(np.int32).tobytes(),
    }


def removed(document_id: uuid.UUID, origin: uuid.UUID, rows: Sequence[DictRow]) -> Correction:
    """The correction for a document whose rows of `lexical_index` (terms, length, language) were deleted."""
    lengths: dict[str, tuple[int, int]] = {}
    for row in rows:
        count, total = lengths.get(row["language"], (0, 0))
        lengths[row["language"]] = (count - 1, total - row["length"])
    terms = np.concatenate([np.empty(0, np.int32), *(np.frombuffer(row["terms"], np.int32) for row in rows)])
    ids, counts = np.unique(terms, return_counts=True)
    statistics = LexicalStatistics(ids, -counts, -len(rows), lengths)
    return Correction(uuid.uuid4(), ((document_id, origin),), statistics, datetime.now(UTC))


async def write_segment(connection: Connection, segment_id: uuid.UUID, passages: Iterable[ForwardRow]) -> None:
    """Write the postings and the head of an open segment, and count it in the statistics."""
    segment, postings = await asyncio.to_thread(build, segment_id, passages)
    pages = Pages(segment_id)
    await copy_pages(connection, [*pages.rows(postings), *pages.last()])
    await connection.execute(queries("writing")["bump_generation"])
    await connection.execute(queries("writing")["count_segment"], segment_parameters(segment))


async def write_stored_segment(connection: Connection, segment_id: uuid.UUID) -> None:
    """`write_segment` from the stored passages of the documents that belong to the segment."""
    values = {"segment_id": segment_id}
    cursor = await connection.execute(queries("writing")["lexical_of_segment"], values, binary=True)
    await write_segment(connection, segment_id, map(forward_row, await cursor.fetchall()))


async def is_counted(connection: Connection, segment_id: uuid.UUID) -> bool:
    """Whether the statistics hold the documents of the segment: it was counted, or merged into another.

    Locks an uncounted segment until the transaction ends, so that it stays uncounted.
    """
    row = await fetch_row(connection, queries("writing")["counted_segment"], {"segment_id": segment_id})
    return row is None or bool(row["counted"])


async def subtract(
    connection: Connection, document_id: uuid.UUID, segment_id: uuid.UUID, passages: Sequence[DictRow]
) -> None:
    """Take a document out of the statistics of its counted segment. `passages` hold terms, length and language."""
    if passages:
        correction = removed(document_id, segment_id, passages)
        await connection.execute(queries("writing")["add_correction"], correction_parameters(correction))
