"""Segments as rows: heads, the terms of their passages, and the corrections for deleted documents."""

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
from dtrag.core.ranking.posting_table import PassageTerms
from dtrag.core.ranking.segments import CHUNKS, DOCUMENTS, ForwardRow, Segment, build
from dtrag.core.text.passage_title_mentions import title_key, title_number

_PASSAGES = np.dtype([("number", ">i4"), ("ordinal", ">i4"), ("size", ">i4"), ("origin", ">u8", (2,))])
"""One row per passage of `terms_of` in sql/search.sql."""
_TERMS = {"terms": np.int32, "frequencies": np.uint8}


@dataclass(frozen=True, slots=True)
class Correction:
    """Documents that are gone from segments which still hold them, and what they had counted (negative numbers).

    `created_at` is when the first of them was deleted.
    """

    correction_id: uuid.UUID
    documents: tuple[tuple[uuid.UUID, uuid.UUID], ...]
    statistics: LexicalStatistics
    created_at: datetime


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


async def read_terms(connection: Connection, segment: Segment, rows: range) -> PassageTerms:
    """The terms of the passages of these documents of a segment, without those that were deleted or replaced."""
    documents = segment.documents[rows.start : rows.stop]
    names = f"{{{','.join(names_of(documents['document_id']))}}}"
    cursor = await connection.execute(queries("search")["terms_of"], {"document_ids": names}, binary=True)
    row = await cursor.fetchone()
    passages = np.frombuffer(row["passages"] if row else b"", _PASSAGES)
    terms, frequencies = (np.frombuffer(row[name] if row else b"", kind) for name, kind in _TERMS.items())
    places, sizes = passages["number"] - 1, passages["size"].astype(np.int32)
    numbers = (segment.first[rows.start + places] + passages["ordinal"]).astype(np.int32)
    own = (passages["origin"] == documents["origin"][places]).all(axis=1)
    if own.all():
        return PassageTerms(numbers, sizes, terms, frequencies)
    postings = np.repeat(own, sizes)
    return PassageTerms(numbers[own], sizes[own], terms[postings], frequencies[postings])


def names_of(ids: NDArray[np.uint64]) -> list[str]:
    """Ids as strings. Formatted together: `uuid.UUID` takes three times as long for each."""
    digits = ids.astype(">u8").tobytes().hex()
    parts = (digits[start : start + 32] for start in range(0, len(digits), 32))
    return [f"{part[:8]}-{part[8:12]}-{part[12:16]}-{part[16:20]}-{part[20:]}" for part in parts]


async def write_segment(connection: Connection, segment_id: uuid.UUID, passages: Iterable[ForwardRow]) -> None:
    """Write the head of an open segment, and count it in the statistics."""
    segment = await asyncio.to_thread(build, segment_id, passages)
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
