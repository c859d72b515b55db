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

from dtrag.core.document_listing import search_name, sort_title
from dtrag.core.documents import Chunk, ChunkedDocument, Draft, IndexedChunk, IndexedDocument, ParsedDocument
from dtrag.core.editions import Edition

CHUNKS_PER_STATEMENT = 128
"""About 3 ms of work: a long document, or a batch, takes several statements."""
SEPARATOR = "\x1e"
"""Between the parts of a text that no passage contains."""
_DOCUMENT = (
    "document_id", "source_id", "source_uri", "title", "content_type", "language", "node_id", "metadata", "text",
    "chunks", "characters", "fingerprint", "segment_id", "processed_at", "source_path", "search_name", "sort_title",
    "personal_data", "work_code", "work_name", "work_id", "effective_from", "ends_on", "article_dates", "repeals",
    "retained",
)  # fmt: skip
_PASSAGE = (
    "passage_of", "ordinal", "passage_node", "start", "end", "passage", "breadcrumb", "facts",
    "passage_language", "length", "terms", "frequencies",
)  # fmt: skip


async def register_types(connection: AsyncConnection[Any]) -> None:
    """Teach a new connection pgvector's types."""
    await register_vector_async(connection)


def written(documents: Iterable[IndexedDocument], segment_id: uuid.UUID) -> Iterator[dict[str, object]]:
    """The parameters of statements `write` that write the documents; each is made when it is needed."""
    heads: list[tuple[object, ...]] = []
    passages: list[tuple[object, ...]] = []
    for document in documents:
        heads.append(_document_row(document, segment_id, datetime.now(UTC)))
        for chunk in document.chunks:
            if len(passages) == CHUNKS_PER_STATEMENT:
                yield _columns(_DOCUMENT, heads) | _columns(_PASSAGE, passages)
                heads, passages = [], []
            passages.append(_passage_row(document, chunk))
    if heads or passages:
        yield _columns(_DOCUMENT, heads) | _columns(_PASSAGE, passages)


def _columns(names: Sequence[str], rows: Sequence[tuple[object, ...]]) -> dict[str, object]:
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def _array(texts: Sequence[str]) -> str:
    """A text[] as PostgreSQL writes it: arrays of different lengths cannot be elements of an array."""
    quoted = ('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts)
    return "{" + ",".join(quoted) + "}"


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
        _stored_text(document),
        len(document.chunks),
        len(parsed.text),
        document.fingerprint,
        segment_id,
        now,
        document.source_path,
        search_name(parsed.title, document.source_uri, document.source_path),
        sort_title(parsed.title),
        document.personal_data,
        *_edition_columns(document.edition),
    )


def _stored_text(document: IndexedDocument) -> str:
    """What of the text no passage contains (`document_text` in sql/shared.sql).

    All of it if a passage is no span of it, it contains the separator, or the length would not distinguish the two.
    """
    text, reached, parts = document.document.text, 0, list[str]()
    for chunk in sorted((indexed.chunk for indexed in document.chunks), key=lambda chunk: (chunk.start, chunk.ordinal)):
        if text[chunk.start : chunk.end] != chunk.text:
            return text
        parts.append(text[reached : chunk.start])
        reached = max(reached, chunk.end)
    rest = SEPARATOR.join([*parts, text[reached:]])
    return text if SEPARATOR in text or len(rest) == len(text) else rest


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
        _array(edition.repeals) if edition.repeals else None,
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


def _passage_row(document: IndexedDocument, indexed: IndexedChunk) -> tuple[object, ...]:
    chunk = indexed.chunk
    return (
        document.document_id,
        chunk.ordinal,
        document.node_id,
        chunk.start,
        chunk.end,
        chunk.text,
        _array(chunk.breadcrumb),
        Jsonb(dict(chunk.metadata)),
        indexed.language,
        indexed.length,
        indexed.term_ids.tobytes(),
        indexed.frequencies.tobytes(),
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
        personal_data=row["personal_data"],
        original=None,
    )
