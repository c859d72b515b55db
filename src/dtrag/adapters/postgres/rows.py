"""Documents as rows: the parameters of the writing statements, and two array types in PostgreSQL's binary format.

The library's own types for `int[]` and `sparsevec` go through Python lists, which was a third of the time of an ingest.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector.psycopg import register_vector_async
from psycopg import AsyncConnection
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.types.json import Jsonb

from dtrag.adapters.postgres.queries import queries
from dtrag.core.documents import Chunk, Draft, IndexedChunk, IndexedDocument, ParsedDocument, Passages
from dtrag.core.scoring import bm25_weights
from dtrag.core.text import TERM_SPACE

MOST_PARAMETERS = 32_000
"""Of one statement; the protocol's limit is 65,535. Documents with more rows take several statements."""


@dataclass(frozen=True, slots=True)
class IntArray:
    """An `int[]`."""

    ids: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Weights:
    """A `sparsevec` of TERM_SPACE dimensions: values at ascending term ids."""

    ids: NDArray[np.int32]
    values: NDArray[np.float32]


class _IntArrayDumper(Dumper):
    format = Format.BINARY
    oid = 1007  # int4[]

    def dump(self, obj: IntArray) -> bytes:
        count = len(obj.ids)
        if not count:
            return np.array([0, 0, 23], dtype=">i4").tobytes()
        elements = np.full((count, 2), 4, dtype=">i4")
        elements[:, 1] = obj.ids
        return np.array([1, 0, 23, count, 1], dtype=">i4").tobytes() + elements.tobytes()


class _WeightsDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Weights) -> bytes:
        head = np.array([TERM_SPACE, len(obj.ids), 0], dtype=">i4").tobytes()
        return head + obj.ids.astype(">i4").tobytes() + obj.values.astype(">f4").tobytes()


class _IntArrayLoader(Loader):
    """One-dimensional `int[]` without nulls, as this schema has them, to an int32 array."""

    format = Format.BINARY

    def load(self, data: Buffer) -> NDArray[np.int32]:
        numbers = np.frombuffer(bytes(data), dtype=">i4")
        return numbers[6::2].astype(np.int32) if numbers[0] else np.empty(0, np.int32)


async def register_types(connection: AsyncConnection[Any]) -> None:
    """Teach a new connection pgvector's types and ours."""
    await register_vector_async(connection)
    info = connection.adapters.types["sparsevec"]
    connection.adapters.register_dumper(IntArray, _IntArrayDumper)
    connection.adapters.register_loader(_IntArrayDumper.oid, _IntArrayLoader)
    connection.adapters.register_dumper(Weights, type("WeightsDumper", (_WeightsDumper,), {"oid": info.oid}))


def statements(
    document: IndexedDocument, segment_id: uuid.UUID, means: Mapping[str, float]
) -> list[tuple[str, list[object]]]:
    """What writes the document: one statement, unless it is very long."""
    now = datetime.now(UTC)
    chunks = [_chunk_row(document, indexed) for indexed in document.chunks]
    lexical = [_lexical_row(document, indexed, means[indexed.language]) for indexed in document.chunks]
    vectors = [_embedding_row(document, indexed) for indexed in document.chunks if indexed.vector is not None]
    written: list[tuple[str, list[object]]] = []
    head = _document_row(document, segment_id, now)
    per_statement = max(1, MOST_PARAMETERS // (8 + 7 + 4))
    for start in range(0, max(1, len(chunks)), per_statement):
        part = slice(start, start + per_statement)
        name = "write_document" if start == 0 else "write_more"
        written.append(_combined(name, head if start == 0 else None, chunks[part], lexical[part]))
    for start in range(0, len(vectors), MOST_PARAMETERS // 4):
        part = slice(start, start + MOST_PARAMETERS // 4)
        written.append((queries("writing")["write_vectors"].format(rows=_places(vectors[part])), _flat(vectors[part])))
    return written


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
    )


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


def _lexical_row(document: IndexedDocument, indexed: IndexedChunk, mean: float) -> tuple[object, ...]:
    weights = bm25_weights(indexed.frequencies, indexed.length, mean)
    return (
        document.document_id,
        indexed.chunk.ordinal,
        document.node_id,
        indexed.language,
        indexed.length,
        IntArray(indexed.term_ids),
        Weights(indexed.term_ids, weights),
    )


def _embedding_row(document: IndexedDocument, indexed: IndexedChunk) -> tuple[object, ...]:
    return (
        document.document_id,
        indexed.chunk.ordinal,
        document.node_id,
        HalfVector(np.asarray(indexed.vector, dtype=np.float16)),
    )


def draft_of(row: Mapping[str, Any], chunk_rows: Iterable[Mapping[str, Any]]) -> Draft:
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
    passages = Passages(document, chunks)
    return Draft(row["document_id"], passages, row["source_id"], row["source_uri"], row["node_id"], b"")
