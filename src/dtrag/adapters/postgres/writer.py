"""Writing the index: one document = one transaction, a batch of them = one flush to disk.

The documents of a batch are committed without waiting for the disk; the batch's statistics segment is committed with
waiting, after them. PostgreSQL's log is sequential, so when that last commit returns everything before it is durable,
and only then is the batch acknowledged. A crash in between leaves whole documents and an uncounted segment, which
`recover()` counts from the index itself.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import numpy as np
import psycopg
from pgvector import HalfVector, SparseVector
from psycopg.types.json import Jsonb

from dtrag.adapters.postgres.database import Connection, Database
from dtrag.adapters.postgres.queries import queries
from dtrag.adapters.postgres.segments import Tally, parameters_of, statistics_of
from dtrag.adapters.postgres.taxonomy import PostgresTaxonomy
from dtrag.core.documents import Chunk, Draft, IndexedChunk, IndexedDocument, ParsedDocument, Passages
from dtrag.core.scope import Scope
from dtrag.core.scoring import LexicalStatistics, bm25_weight, reweigh
from dtrag.core.taxonomy import CategoryPath, Taxonomy
from dtrag.core.text import TERM_SPACE

WRITING_LOCK = 7_203_114_003
MERGING_LOCK = 7_203_114_004
MOST_SEGMENTS = 32
"""More segments than this are merged into one by `tidy()`: reading them costs about a millisecond each."""
LENGTH_DRIFT = 0.1
"""When the mean chunk length of a language has moved by more than this share, its weights are computed anew. Below it
the effect on a score is under 4 % of one term's weight (b = .75), the same for every chunk."""


class PostgresWriter:
    """The writing side of one database."""

    def __init__(self, database: Database):
        self._database = database
        self._sql = queries("writing")

    async def ensure_paths(self, paths: Collection[CategoryPath]) -> Taxonomy:
        """The active taxonomy, with these paths in it."""
        return await PostgresTaxonomy(self._database).ensure(paths)

    async def fingerprints(self, document_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, bytes]:
        """Fingerprints of those of the documents that are there."""
        rows = await self._fetch("fingerprints", {"document_ids": list(document_ids)})
        return {row["document_id"]: bytes(row["fingerprint"]) for row in rows}

    async def source_fingerprint(self, source_id: uuid.UUID) -> bytes | None:
        """The fingerprint of a source that was read to its end, or None."""
        rows = await self._fetch("source", {"source_id": source_id})
        return bytes(rows[0]["fingerprint"]) if rows else None

    async def write(self, documents: Sequence[IndexedDocument]) -> None:
        """Write each document whole, or replace it; when this returns they are durable and searchable."""
        if not documents:
            return
        segment_id, tally = uuid.uuid4(), Tally()
        async with self._database.connection("owner") as connection, self._writing(connection, segment_id):
            await connection.execute(self._sql["open_segment"], {"segment_id": segment_id, "now": datetime.now(UTC)})
            means = await self._mean_lengths(connection, documents)
            try:
                await self._write_pipelined(connection, documents, segment_id, means, tally)
            except (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected):
                # Somebody else writes some of the same documents: one at a time, replacing what is there.
                tally = Tally()
                for document in documents:
                    await self._write_alone(connection, document, segment_id, means)
                await self._restore(connection, segment_id, tally)
            async with connection.transaction():
                await connection.execute(self._sql["bump_generation"])
                await connection.execute(self._sql["count_segment"], {"segment_id": segment_id, **tally.parameters()})

    async def finish_source(
        self, source_id: uuid.UUID, source_uri: str, fingerprint: bytes, kept: Collection[uuid.UUID]
    ) -> int:
        """Remember that a source was read to its end; its documents that are not among `kept` go. Returns how many."""
        there = await self._fetch("documents_of_source", {"source_id": source_id})
        gone = [row["document_id"] for row in there if row["document_id"] not in kept]
        for document_id in gone:
            await self.delete(document_id, Scope.everything())
        async with self._database.connection("owner") as connection:
            await connection.execute(
                self._sql["set_source"],
                {
                    "source_id": source_id,
                    "source_uri": source_uri,
                    "fingerprint": fingerprint,
                    "documents": len(kept),
                    "now": datetime.now(UTC),
                },
            )
        return len(gone)

    async def delete(self, document_id: uuid.UUID, scope: Scope) -> bool:
        """Delete a document that the scope may see; False when there is none."""
        name = {"document_id": document_id}
        async with self._database.connection("owner") as connection, connection.transaction():
            found = await (await connection.execute(self._sql["lock_document"], name)).fetchone()
            if found is None or (scope.nodes is not None and found["node_id"] not in scope.nodes):
                return False
            tally = Tally()
            for row in await (await connection.execute(self._sql["delete_lexical"], name)).fetchall():
                tally.remove(row)
            deleted = await (await connection.execute(self._sql["delete_document"], name)).fetchone()
            if deleted is not None:
                await connection.execute(self._sql["forget_source"], {"source_id": deleted["source_id"]})
            await connection.execute(
                self._sql["add_segment"],
                {"segment_id": uuid.uuid4(), "now": datetime.now(UTC), **tally.parameters()},
            )
            await connection.execute(self._sql["bump_generation"])
        return True

    async def read_back(self, after: uuid.UUID | None, wanted: int) -> list[Draft]:
        """The documents as they were written, in the order of their ids, from the first after `after`."""
        rows = await self._fetch("read_documents", {"after": after, "wanted": wanted})
        chunks: dict[uuid.UUID, list[Chunk]] = {row["document_id"]: [] for row in rows}
        for row in await self._fetch("read_chunks", {"document_ids": list(chunks)}):
            chunks[row["document_id"]].append(_chunk(row))
        return [_draft(row, chunks[row["document_id"]]) for row in rows]

    async def recover(self) -> int:
        """Count the batches that a crash left uncounted; returns how many. Batches in progress are left alone."""
        recovered = 0
        for row in await self._fetch("uncounted_segments", {}):
            segment_id = row["segment_id"]
            async with self._database.connection("owner") as connection, connection.transaction():
                locked = await connection.execute(self._sql["try_lock_segment"], {"key": _lock_key(segment_id)})
                free = await locked.fetchone()
                if free is None or not free["free"]:
                    continue
                tally = Tally()
                await self._restore(connection, segment_id, tally)
                await connection.execute(self._sql["bump_generation"])
                await connection.execute(self._sql["count_segment"], {"segment_id": segment_id, **tally.parameters()})
                recovered += 1
        return recovered

    async def tidy(self) -> None:
        """Merge the statistics segments when there are many, and weigh anew where the mean length has moved."""
        async with self._database.connection("owner") as connection, connection.transaction():
            await connection.execute("select pg_advisory_xact_lock(%s)", (MERGING_LOCK,))
            rows = await (await connection.execute(self._sql["all_segments"])).fetchall()
            statistics = LexicalStatistics.merged([statistics_of(row) for row in rows])
            if len(rows) > MOST_SEGMENTS:
                merged = {"segment_id": uuid.uuid4(), "now": datetime.now(UTC), **parameters_of(statistics)}
                await connection.execute(self._sql["add_segment"], merged)
                await connection.execute(
                    self._sql["drop_segments"], {"segment_ids": [row["segment_id"] for row in rows]}
                )
                await connection.execute(self._sql["bump_generation"])
        await self._reweigh(statistics)

    async def _reweigh(self, statistics: LexicalStatistics) -> None:
        async with self._database.connection("owner") as connection, connection.transaction():
            stored = await self._stored_means(connection)
            moved = {
                language: total / count
                for language, (count, total) in statistics.lengths.items()
                if count > 0 and total > 0 and language in stored
                if abs(total / count / stored[language] - 1.0) > LENGTH_DRIFT
            }
            if not moved:
                return
            await connection.execute(self._sql["lock_writing"], {"key": WRITING_LOCK})
            for language, mean in moved.items():
                async with connection.cursor("weights") as rows, connection.cursor() as update:
                    await rows.execute(self._sql["weights_of_language"], {"language": language})
                    while page := await rows.fetchmany(1000):
                        await update.executemany(
                            self._sql["set_weights"], [_reweighed(row, stored[language], mean) for row in page]
                        )
            await connection.execute(self._sql["set_setting"], {"name": "mean_lengths", "value": Jsonb(stored | moved)})
            await connection.execute(self._sql["bump_generation"])

    @asynccontextmanager
    async def _writing(self, connection: Connection, segment_id: uuid.UUID) -> AsyncIterator[None]:
        """Hold off weighing anew, and show that the segment's writer is alive."""
        keys = ((self._sql["lock_writing_shared"], WRITING_LOCK), (self._sql["lock_segment"], _lock_key(segment_id)))
        for statement, key in keys:
            await connection.execute(statement, {"key": key})
        try:
            yield
        finally:
            if not connection.closed:
                await connection.execute("select pg_advisory_unlock_all()")

    async def _mean_lengths(self, connection: Connection, documents: Sequence[IndexedDocument]) -> dict[str, float]:
        """The mean length that each language's weights refer to; the first batch of a language sets it."""
        means = await self._stored_means(connection)
        seen: dict[str, list[int]] = {}
        for document in documents:
            for chunk in document.chunks:
                if chunk.language not in means:
                    seen.setdefault(chunk.language, []).append(chunk.length)
        if seen:
            async with connection.transaction():
                await connection.execute("select pg_advisory_xact_lock(%s)", (MERGING_LOCK,))
                first = {language: max(1.0, sum(lengths) / len(lengths)) for language, lengths in seen.items()}
                means = first | await self._stored_means(connection)
                await connection.execute(self._sql["set_setting"], {"name": "mean_lengths", "value": Jsonb(means)})
        return means

    async def _stored_means(self, connection: Connection) -> dict[str, float]:
        cursor = await connection.execute("select value from index_settings where name = 'mean_lengths'")
        row = await cursor.fetchone()
        return dict(row["value"]) if row else {}

    async def _write_pipelined(
        self,
        connection: Connection,
        documents: Sequence[IndexedDocument],
        segment_id: uuid.UUID,
        means: Mapping[str, float],
        tally: Tally,
    ) -> None:
        replaced = []
        try:
            async with connection.pipeline():
                for document in documents:
                    await connection.execute("begin")
                    await connection.execute("set local synchronous_commit = off")
                    replaced.append(await self._write_document(connection, document, segment_id, means))
                    await connection.execute("commit")
        except psycopg.Error:
            if not connection.closed:
                await connection.execute("rollback")
            raise
        for cursor in replaced:
            for row in await cursor.fetchall():
                tally.remove(row)
        for document in documents:
            for chunk in document.chunks:
                tally.add(chunk)

    async def _write_alone(
        self, connection: Connection, document: IndexedDocument, segment_id: uuid.UUID, means: Mapping[str, float]
    ) -> None:
        async with connection.transaction():
            await connection.execute("select pg_advisory_xact_lock(%s)", (_lock_key(document.document_id),))
            cursor = await self._write_document(connection, document, segment_id, means)
            removed = Tally()
            for row in await cursor.fetchall():
                removed.remove(row)
            await connection.execute(
                self._sql["add_segment"],
                {"segment_id": uuid.uuid4(), "now": datetime.now(UTC), **removed.parameters()},
            )

    async def _write_document(
        self, connection: Connection, document: IndexedDocument, segment_id: uuid.UUID, means: Mapping[str, float]
    ) -> psycopg.AsyncCursor[dict[str, Any]]:
        """The statements of one document, in the caller's transaction; the cursor holds what was replaced."""
        name = {"document_id": document.document_id}
        replaced = await connection.execute(self._sql["delete_lexical"], name)
        await connection.execute(self._sql["delete_document"], name)
        await connection.execute(self._sql["insert_document"], _document_row(document, segment_id))
        async with connection.cursor() as cursor:
            await cursor.executemany(
                self._sql["insert_chunk"], [_chunk_row(document, indexed) for indexed in document.chunks]
            )
            await cursor.executemany(
                self._sql["insert_lexical"], [_lexical_row(document, chunk, means) for chunk in document.chunks]
            )
            vectors = [chunk for chunk in document.chunks if chunk.vector is not None]
            if vectors:
                await cursor.executemany(
                    self._sql["insert_embedding"], [_embedding_row(document, chunk) for chunk in vectors]
                )
        return replaced

    async def _restore(self, connection: Connection, segment_id: uuid.UUID, tally: Tally) -> None:
        cursor = await connection.execute(self._sql["lexical_of_segment"], {"segment_id": segment_id})
        while rows := await cursor.fetchmany(1000):
            for row in rows:
                tally.restore(row)

    async def _fetch(self, name: str, parameters: Mapping[str, object]) -> list[dict[str, Any]]:
        async with self._database.connection("owner") as connection:
            return await (await connection.execute(self._sql[name], parameters)).fetchall()


def _lock_key(identity: uuid.UUID) -> int:
    """A 64-bit key for PostgreSQL's advisory locks."""
    return int.from_bytes(identity.bytes[:8], "big", signed=True)


def _document_row(document: IndexedDocument, segment_id: uuid.UUID) -> dict[str, object]:
    parsed = document.document
    return {
        "document_id": document.document_id,
        "source_id": document.source_id,
        "source_uri": document.source_uri,
        "title": parsed.title,
        "content_type": parsed.content_type,
        "language": document.language,
        "node_id": document.node_id,
        "metadata": Jsonb(dict(parsed.metadata)),
        "text": parsed.text,
        "chunks": len(document.chunks),
        "characters": len(parsed.text),
        "fingerprint": document.fingerprint,
        "segment_id": segment_id,
        "now": datetime.now(UTC),
    }


def _chunk_row(document: IndexedDocument, indexed: IndexedChunk) -> dict[str, object]:
    chunk = indexed.chunk
    return {
        "document_id": document.document_id,
        "ordinal": chunk.ordinal,
        "node_id": document.node_id,
        "start": chunk.start,
        "end": chunk.end,
        "text": chunk.text,
        "breadcrumb": list(chunk.breadcrumb),
        "metadata": Jsonb(dict(chunk.metadata)),
    }


def _lexical_row(document: IndexedDocument, indexed: IndexedChunk, means: Mapping[str, float]) -> dict[str, object]:
    mean = means[indexed.language]
    weights = {term: bm25_weight(frequency, indexed.length, mean) for term, frequency in indexed.frequencies.items()}
    return {
        "document_id": document.document_id,
        "ordinal": indexed.chunk.ordinal,
        "node_id": document.node_id,
        "language": indexed.language,
        "length": indexed.length,
        "terms": sorted(indexed.frequencies),
        "weights": SparseVector(weights, TERM_SPACE),
    }


def _embedding_row(document: IndexedDocument, indexed: IndexedChunk) -> dict[str, object]:
    assert indexed.vector is not None  # noqa: S101 - the caller has filtered
    return {
        "document_id": document.document_id,
        "ordinal": indexed.chunk.ordinal,
        "node_id": document.node_id,
        "vec": HalfVector(indexed.vector.astype(np.float16)),
    }


def _chunk(row: Mapping[str, Any]) -> Chunk:
    return Chunk(
        ordinal=row["ordinal"],
        start=row["start_offset"],
        end=row["end_offset"],
        text=row["text"],
        breadcrumb=tuple(row["breadcrumb"]),
        metadata=row["metadata"],
    )


def _draft(row: Mapping[str, Any], chunks: Sequence[Chunk]) -> Draft:
    document = ParsedDocument(row["title"], row["text"], row["content_type"], metadata=row["metadata"])
    return Draft(Passages(document, tuple(chunks)), row["source_id"], row["source_uri"], row["node_id"], b"")


def _reweighed(row: Mapping[str, Any], old: float, new: float) -> dict[str, object]:
    stored: SparseVector = row["weights"]
    weights = {
        term: reweigh(weight, row["length"], old, new)
        for term, weight in zip(stored.indices(), stored.values(), strict=True)
    }
    return {"document_id": row["document_id"], "ordinal": row["ordinal"], "weights": SparseVector(weights, TERM_SPACE)}
