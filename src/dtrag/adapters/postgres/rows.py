"""Documents as rows: the parameters of the writing statements, and stored rows as documents again."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Any

from pgvector.psycopg import register_vector_async
from psycopg import AsyncConnection
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from dtrag.adapters.postgres.queries import queries
from dtrag.core.document_listing import search_name, sort_title
from dtrag.core.documents import Chunk, ChunkedDocument, Draft, IndexedChunk, IndexedDocument, ParsedDocument
from dtrag.core.editions import Edition
from dtrag.core.ranking.segments import quantised

CHUNKS_PER_STATEMENT = 500
"""About 10,000 parameters, 30 ms of work; the protocol's limit is 65,535. Longer documents take several statements."""


async def register_types(connection: AsyncConnection[Any]) -> None:
    """Teach a new connection pgvector's types."""
    await register_vector_async(connection)


def statements(document: IndexedDocument, segment_id: uuid.UUID) -> Iterator[tuple[str, list[object]]]:
    """What writes the document: one statement, unless it is long. Each is made when it is asked for."""
    head = _document_row(document, segment_id, datetime.now(UTC))
    for start in range(0, max(1, len(document.chunks)), CHUNKS_PER_STATEMENT):
        part = document.chunks[start : start + CHUNKS_PER_STATEMENT]
        chunks = [_chunk_row(document, indexed) for indexed in part]
        lexical = [_lexical_row(document, indexed) for indexed in part]
        name = "write_document" if start == 0 else "write_more"
        yield _combined(name, head if start == 0 else None, chunks, lexical)


def _combined(
    name: str,
    head: Sequence[object] | None,
    chunks: Sequence[Sequence[object]],
    lexical: Sequence[Sequence[object]],
) -> tuple[str, list[object]]:
    text = queries("writing")[name if chunks else "write_empty"]
    places = {"document": _places([head]) if head else "", "chunks": _places(chunks), "lexical": _places(lexical)}
    return text.format(**places), [*(head or ()), *_flat(chunks), *_flat(lexical)]


def _places(rows: Sequence[Sequence[object]]) -> str:
    return ", ".join("(" + ", ".join(["%s"] * len(row)) + ")" for row in rows)


def _flat(rows: Iterable[Sequence[object]]) -> list[object]:
    return [value for row in rows for value in row]


def _document_row(document: IndexedDocument, segment_id: uuid.UUID, now: datetime) -> tuple[object, ...]:
    parsed = document.document
    return (
        document.document_id,
        document.source_id,
        document.source_uri,
        parsed.title,
        parsed.content_type,
        document.language,
        document.node_id,
        Jsonb(dict(parsed.metadata)),
        parsed.text,
        len(document.chunks),
        len(parsed.text),
        document.fingerprint,
        segment_id,
        now,
        document.source_path,
        search_name(parsed.title, document.source_uri, document.source_path),
        sort_title(parsed.title),
        *_edition_columns(document.edition),
    )


def _edition_columns(edition: Edition | None) -> tuple[object, ...]:
    """The columns from `work_code` to `retained`."""
    if edition is None:
        return (*(None,) * 7, False)
    dates = {label: day.isoformat() for label, day in edition.article_dates.items()}
    return (
        edition.code,
        edition.name,
        edition.work_id,
        edition.effective_from,
        edition.ends_on,
        Jsonb(dates) if dates else None,
        list(edition.repeals) or None,
        edition.retained,
    )


def edition_of(row: DictRow) -> Edition | None:
    """The inverse of `_edition_columns`."""
    if row["work_name"] is None:
        return None
    return Edition(
        row["work_name"],
        row["work_code"],
        row["effective_from"],
        article_dates(row),
        tuple(row["repeals"] or ()),
        row["work_id"],
        row["ends_on"],
        row["retained"],
    )


def article_dates(row: DictRow) -> dict[str, date]:
    """Label -> day on which the provision takes effect, where it is not that of the edition."""
    return {label: date.fromisoformat(day) for label, day in (row["article_dates"] or {}).items()}


def _chunk_row(document: IndexedDocument, indexed: IndexedChunk) -> tuple[object, ...]:
    chunk = indexed.chunk
    return (
        document.document_id,
        chunk.ordinal,
        document.node_id,
        chunk.start,
        chunk.end,
        chunk.text,
        list(chunk.breadcrumb),
        Jsonb(dict(chunk.metadata)),
    )


def _lexical_row(document: IndexedDocument, indexed: IndexedChunk) -> tuple[object, ...]:
    return (
        document.document_id,
        indexed.chunk.ordinal,
        document.node_id,
        indexed.language,
        indexed.length,
        indexed.term_ids.tobytes(),
        quantised(indexed.frequencies).tobytes(),
    )


def draft_of(row: DictRow, chunk_rows: Iterable[DictRow]) -> Draft:
    """A stored document as it came in."""
    chunks = tuple(
        Chunk(
            ordinal=chunk["ordinal"],
            start=chunk["start_offset"],
            end=chunk["end_offset"],
            text=chunk["text"],
            breadcrumb=tuple(chunk["breadcrumb"]),
            metadata=chunk["metadata"],
        )
        for chunk in chunk_rows
    )
    document = ParsedDocument(row["title"], row["text"], row["content_type"], metadata=row["metadata"])
    passages = ChunkedDocument(document, chunks)
    return Draft(
        row["document_id"],
        passages,
        row["source_id"],
        row["source_uri"],
        row["node_id"],
        b"",
        source_path=row["source_path"],
        edition=edition_of(row),
    )
