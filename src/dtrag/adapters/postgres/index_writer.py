"""Writes documents: one transaction for each that replaces another, one flush to disk for each batch of them.

The documents of a batch are committed without waiting for the disk; then the statistics segment of the batch is
committed with waiting. PostgreSQL's log is sequential, so that everything before that last commit is durable when it
returns, and only then is the batch acknowledged. A crash in between leaves whole documents and an uncounted segment,
which `lexical/merge.py::recover` builds from the rows of the documents. Removing a document writes a correction for its
segment only if that is counted: an uncounted one counts the documents that exist at that moment.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, date, datetime

import numpy as np
import psycopg
from psycopg.rows import DictRow

from dtrag.adapters.postgres import editions
from dtrag.adapters.postgres.database import CONTESTED, Connection, Database, Store, fetch, fetch_row, repeated
from dtrag.adapters.postgres.lexical.merge import MOST_SEGMENTS, merge, merge_all, recover, tidy
from dtrag.adapters.postgres.lexical.posting_files import make_files
from dtrag.adapters.postgres.lexical.rows import forward_rows, is_counted, subtract, write_segment
from dtrag.adapters.postgres.queries import Lock, lock, lock_shared, queries, uuid_key
from dtrag.adapters.postgres.rows import draft_of, written
from dtrag.adapters.postgres.stores.taxonomy import PostgresTaxonomy
from dtrag.adapters.postgres.stores.taxonomy_moves import living_nodes, rehome
from dtrag.core.access.scope import EVERYTHING, Scope
from dtrag.core.documents import Draft, IndexedDocument
from dtrag.core.editions import Edition
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.errors import Forbidden
from dtrag.ports import StoredWork, valid_day

BYTES_A_CHARACTER = 12
"""Disk that a character of text takes while it is written, about: 2,000 to 6,000 bytes a passage of 500."""
_WRITE = queries("writing")["write"].replace(")s", ")b")
"""Arrays in binary: in text, psycopg quotes each element in Python."""


class PostgresWriter(Store):
    """The writing side of one database."""

    subject = "writing"

    def __init__(self, database: Database):
        super().__init__(database)
        self._changes = 0

    async def ensure_paths(self, paths: Collection[CategoryPath]) -> Taxonomy:
        """The active taxonomy, with these paths in it."""
        return await PostgresTaxonomy(self._database).ensure(paths)

    async def fingerprints(self, document_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, bytes]:
        """Fingerprints of those of the documents that are there."""
        rows = await self._rows("fingerprints", {"document_ids": list(document_ids)})
        return {row["document_id"]: bytes(row["fingerprint"]) for row in rows}

    async def source_fingerprint(self, source_id: uuid.UUID) -> bytes | None:
        """The fingerprint of a source that was read to its end, or None."""
        rows = await self._rows("source", {"source_id": source_id})
        return bytes(rows[0]["fingerprint"]) if rows else None

    async def write(self, documents: Sequence[IndexedDocument], scope: Scope = EVERYTHING) -> None:
        """Write each document whole, or replace it; when this returns they are durable and searchable.

        Raises `Forbidden` rather than replace a document outside of the scope.
        """
        if not documents:
            return
        # A passage is kept in the document, as a chunk, as postings and vectors, and all of it in the log as well.
        self._database.require_space(
            sum(BYTES_A_CHARACTER * len(each.document.text) + 2 * len(each.original or b"") for each in documents)
        )
        segment_id = uuid.uuid4()
        async with self._database.connection("owner") as connection, self._batch(connection, segment_id):
            living = await living_nodes(connection, {document.node_id for document in documents})
            for number, document in enumerate(documents := list(documents)):
                if (node_id := living[document.node_id]) != document.node_id:
                    documents[number] = replace(document, node_id=node_id)
            try:
                await self._write_pipelined(connection, documents, segment_id, scope)
            except CONTESTED:
                # Another writer has some of the same documents: write one at a time, replacing them.
                for document in documents:
                    await self._write_alone(connection, document, segment_id, scope)
            async with connection.transaction():
                await connection.execute(queries("session")["commit_on_disk"])
                await self._count(connection, documents, segment_id)
        await self.changed()

    async def keep_decisions(self, document_ids: Sequence[uuid.UUID], since: datetime) -> int:
        """Move documents to where reviewers have put them since then; returns how many."""
        if not document_ids:
            return 0
        async with self._database.connection("owner") as connection:
            values = {"document_ids": list(document_ids), "since": since}
            moves = {
                row["document_id"]: row["node_id"]
                for row in await fetch(connection, self._sql["decided_elsewhere"], values)
            }
            if moves:
                async with connection.transaction():
                    await rehome(connection, moves)
        return len(moves)

    async def successor(self, node_id: int) -> int:
        """The node, or for a deleted one that which took its documents."""
        async with self._database.connection("owner") as connection, connection.transaction():
            await lock_shared(connection, Lock.WRITERS)
            return (await living_nodes(connection, {node_id}))[node_id]

    async def documents_of(self, source_id: uuid.UUID, most: int) -> list[uuid.UUID]:
        """The documents that came from a source, at most so many of them, in the order of their ids."""
        rows = await self._rows("documents_of_source", {"source_id": source_id, "limit": most})
        return [row["document_id"] for row in rows]

    async def reaches_out(self, source_id: uuid.UUID, scope: Scope) -> bool:
        """Whether there is a document of this source outside of the scope."""
        if scope.nodes is None:
            return False
        rows = await self._rows("source_reaches_out", {"source_id": source_id, "nodes": sorted(scope.nodes)})
        return bool(rows[0]["found"])

    async def finish_source(
        self, source_id: uuid.UUID, uri: str, fingerprint: bytes, current: Sequence[int], scope: Scope = EVERYTHING
    ) -> int:
        """Record that a source was read to its end, and delete its documents in scope that are not in `current`.

        Superseded editions of regulations stay. Returns the number of deleted documents.
        """
        deleted = await self.drop_source(source_id, scope, current)
        values = {
            "source_id": source_id,
            "source_uri": uri,
            "fingerprint": fingerprint,
            "documents": len(current),
        }
        async with self._database.connection("owner") as connection:
            await connection.execute(self._sql["set_source"], {**values, "now": datetime.now(UTC)})
        return len(deleted)

    async def drop_source(self, source_id: uuid.UUID, scope: Scope, current: Sequence[int] = ()) -> list[uuid.UUID]:
        """Delete the documents of a source in scope that are not in `current`, but for superseded editions.

        Returns the deleted ones.
        """
        async with self._database.connection("owner") as connection:
            gone = await repeated(lambda: self._mark_retained(connection, source_id, scope, current))
        return [document_id for document_id in gone if await self.delete(document_id, scope, ends=True)]

    async def _mark_retained(
        self, connection: Connection, source_id: uuid.UUID, scope: Scope, current: Sequence[int]
    ) -> list[uuid.UUID]:
        """Mark the superseded editions of a source that are not in `current`; returns its other such documents.

        Those of both that another source contains go to that one.
        """
        known = np.sort(np.asarray(current, dtype=np.uint64))
        gone: list[uuid.UUID] = []
        superseded: list[uuid.UUID] = []
        returned: list[uuid.UUID] = []
        async with connection.transaction(), connection.cursor("documents_of_source") as there:
            await there.execute(self._sql["documents_of_source"], {"source_id": source_id, "limit": None})
            while page := await there.fetchmany(10_000):
                upper = np.array([row["document_id"].int >> 64 for row in page], dtype=np.uint64)
                is_current = np.isin(upper, known, kind="sort").tolist()
                for row, current_row in zip(page, is_current, strict=True):
                    if current_row:
                        returned += [row["document_id"]] if row["retained"] else []
                    elif scope.nodes is None or row["node_id"] in scope.nodes:
                        (superseded if _stays(row["superseded_from"], current) else gone).append(row["document_id"])
            inherited = await editions.hand_over(connection, source_id, {*superseded, *gone})
            superseded = [key for key in superseded if key not in inherited]
            gone = [key for key in gone if key not in inherited]
            halves = frozenset(current)
            await editions.unlisted(connection, source_id, lambda key: key.int >> 64 in halves)
            for ids, retained in ((superseded, True), (returned, False)):
                if ids:
                    await editions.mark_retained(connection, ids, retained=retained)
            if superseded and not len(current):  # a file that comes back is read again
                await connection.execute(self._sql["forget_source"], {"source_id": source_id})
        return gone

    async def contains_others(self, source_id: uuid.UUID) -> bool:
        """Whether the source contains an edition whose document belongs to another source, which was read later."""
        async with self._database.connection("owner") as connection:
            row = await fetch_row(connection, queries("editions")["contains_others"], {"source_id": source_id})
        return bool(row and row["present"])

    async def editions_of(self, source_id: uuid.UUID) -> dict[str, Edition]:
        """Address -> newest edition that the source contained, for its documents with a date."""
        async with self._database.connection("owner") as connection:
            rows = await fetch(connection, queries("editions")["editions_of_source"], {"source_id": source_id})
        return {row["source_uri"]: Edition(row["work_name"], row["work_code"], row["effective_from"]) for row in rows}

    async def works(self, works: Collection[tuple[str, str]]) -> list[StoredWork]:
        """The works with one of these codes and folded names, one for each category with editions of it."""
        values = {"codes": [code for code, _ in works], "names": [name for _, name in works]}
        async with self._database.connection("owner") as connection:
            rows = await fetch(connection, queries("editions")["works"], values)
        return [
            StoredWork(
                row["work_id"],
                (row["work_code"], row["work_name"]),
                row["node_id"],
                row["source_id"],
                dict(zip(row["document_ids"], row["days"], strict=True)),
            )
            for row in rows
        ]

    async def delete(self, document_id: uuid.UUID, scope: Scope, *, ends: bool = False) -> bool:
        """Delete a document that the scope may see; False when there is none.

        The edition before a deleted one is valid again, unless `ends`.
        """
        async with self._database.connection("owner") as connection:
            deleted = await repeated(lambda: self._delete(connection, document_id, scope, ends=ends))
        if deleted:
            await self.changed()
        return deleted

    async def _delete(self, connection: Connection, document_id: uuid.UUID, scope: Scope, *, ends: bool) -> bool:
        name = {"document_id": document_id}
        async with connection.transaction():
            await self._locked(connection, document_id)
            document = await fetch_row(connection, self._sql["lock_document"], name)
            if document is None or (scope.nodes is not None and document["node_id"] not in scope.nodes):
                return False
            await self.erase(connection, document_id, ends=ends)
            await connection.execute(self._sql["bump_generation"])
        return True

    async def erase(self, connection: Connection, document_id: uuid.UUID, *, ends: bool = False) -> None:
        """Delete a document with what depends on it in the caller's transaction, which increments the generation.

        `ends` as for `delete`.
        """
        origin = await self._remove(connection, document_id)
        await _erase_imagined(connection, document_id)
        if origin is not None:
            await editions.removed(connection, origin, ends=ends)
            await connection.execute(self._sql["forget_source"], {"source_id": origin["source_id"]})
        await editions.forgotten(connection, document_id)

    async def changed(self, changes: int = 1) -> None:
        """Every so many segments and corrections, see whether there are too many."""
        before = self._changes // MOST_SEGMENTS
        self._changes += changes
        if self._changes // MOST_SEGMENTS > before:
            await merge(self._database.unfenced, MOST_SEGMENTS)

    async def read_back(self, after: uuid.UUID | None, limit: int) -> list[Draft]:
        """The documents as they were written, in the order of their ids, from the first after `after`."""
        rows = await self._rows("read_documents", {"after": after, "limit": limit})
        chunks: dict[uuid.UUID, list[DictRow]] = {row["document_id"]: [] for row in rows}
        for row in await self._rows("read_chunks", {"document_ids": list(chunks)}):
            chunks[row["document_id"]].append(row)
        return [draft_of(row, chunks[row["document_id"]]) for row in rows]

    async def recover(self) -> int:
        """Count the batches that a crash left uncounted; returns how many."""
        return await recover(self._database.unfenced)

    async def tidy(self) -> None:
        """After a run of writes: what keeps the index quick."""
        await tidy(self._database.unfenced)
        await make_files(self._database.unfenced)

    async def forget_deleted(self) -> None:
        """Merge segments, and remove files, that contain documents deleted more than an hour ago."""
        await merge_all(self._database)
        await make_files(self._database)

    @asynccontextmanager
    async def _batch(self, connection: Connection, segment_id: uuid.UUID) -> AsyncIterator[None]:
        """Hold the lock of a live segment writer, and commit without waiting for the disk.

        On any error, a cancellation included, the connection is closed: the pool must not hand out one that still
        holds the lock, or that does not wait for the disk.
        """
        locks = queries("locks")
        try:
            async with connection.armed("batch"):
                await connection.execute(locks["session"], {"lock": uuid_key(segment_id)})
                # No node of its documents is removed until the segment is counted.
                await connection.execute(locks["session_shared"], {"lock": Lock.WRITERS})
                opened = {"segment_id": segment_id, "now": datetime.now(UTC)}
                await connection.execute(self._sql["open_segment"], opened)
                yield
                await connection.execute(locks["release_all"])
        except BaseException:
            await connection.close()
            raise

    async def _write_pipelined(
        self,
        connection: Connection,
        documents: Sequence[IndexedDocument],
        segment_id: uuid.UUID,
        scope: Scope,
    ) -> None:
        """New documents in one transaction, each of the others in its own; nothing waits for an answer in between.

        What replaces a document, or is an edition, changes rows that other writers hold.
        """
        new = [document for document in documents if not document.replaces and document.edition is None]
        session = queries("session")
        try:
            async with connection.pipeline():
                # Explicit, since everything that a pipeline sends at once would be one transaction.
                if new:
                    await connection.begin()
                    await self._insert(connection, new, segment_id)
                    await connection.execute(session["commit"])
                for document in documents:
                    if document.replaces or document.edition is not None:
                        await connection.begin()
                        await self._write_one(connection, document, segment_id, scope)
                        await connection.execute(session["commit"])
        except psycopg.Error:
            if not connection.closed:
                await connection.rollback()
            raise

    async def _write_alone(
        self, connection: Connection, document: IndexedDocument, segment_id: uuid.UUID, scope: Scope
    ) -> None:
        async def write() -> None:
            async with connection.transaction():
                await self._write_one(connection, replace(document, replaces=True), segment_id, scope)

        await repeated(write)

    async def _write_one(
        self, connection: Connection, document: IndexedDocument, segment_id: uuid.UUID, scope: Scope
    ) -> None:
        """Write a document, or replace it, in the caller's transaction, with what depends on it."""
        if document.original is None and document.replaces:
            row = await fetch_row(connection, self._sql["original"], {"document_id": document.document_id})
            document = replace(document, original=row["content"] if row else b"")
        origin = await self._remove(connection, document.document_id, scope) if document.replaces else None
        await self._insert(connection, [document], segment_id)
        if origin is not None:
            await _move_imagined(connection, document.document_id)
        await editions.written(connection, document.edition, document.node_id, origin)
        await editions.listed(connection, document)

    async def _insert(
        self, connection: Connection, documents: Sequence[IndexedDocument], segment_id: uuid.UUID
    ) -> None:
        for values in written(documents, segment_id):
            await connection.execute(_WRITE, values)
            await asyncio.sleep(0)  # sending does not wait: a long document would hold up the service
        for document in documents:
            if document.original:
                key = {"document_id": document.document_id, "node_id": document.node_id}
                await connection.execute(self._sql["write_original"], key | {"content": document.original})

    async def _count(self, connection: Connection, documents: Sequence[IndexedDocument], segment_id: uuid.UUID) -> None:
        """Write the segment: of the documents that were written those that are still there."""
        names = {"segment_id": segment_id, "document_ids": [document.document_id for document in documents]}
        await connection.execute(self._sql["lock_uncounted_segment"], names)
        rows = await fetch(connection, self._sql["documents_of_segment"], names)
        existing = {row["document_id"] for row in rows}
        await write_segment(
            connection, segment_id, forward_rows(document for document in documents if document.document_id in existing)
        )

    async def _remove(
        self, connection: Connection, document_id: uuid.UUID, scope: Scope = EVERYTHING
    ) -> DictRow | None:
        """Delete a document in the caller's transaction, and take its terms out of the statistics if they are in.

        Returns what it was; None when there was none.
        """
        name = {"document_id": document_id}
        origin = await self._locked(connection, document_id)
        if origin is None:
            return None
        if scope.nodes is not None and origin["node_id"] not in scope.nodes:
            raise Forbidden("A document with this address exists outside your branches. Give the file another name.")
        counted = await is_counted(connection, origin["segment_id"])
        passages = await connection.execute(self._sql["delete_lexical"], name, binary=True)
        rows = await passages.fetchall()
        await connection.execute(self._sql["delete_document"], name)
        if counted:
            await subtract(connection, document_id, origin["segment_id"], rows)
        return origin

    async def _locked(self, connection: Connection, document_id: uuid.UUID) -> DictRow | None:
        """Lock a document and then its work, before any row: who holds the work changes rows of all its editions.

        Returns what the document is; None when there is none.
        """
        name = {"document_id": document_id}
        await lock(connection, uuid_key(document_id))
        origin = await fetch_row(connection, self._sql["origin"], name)
        if origin is None or origin["work_id"] is None:
            return origin
        await lock(connection, uuid_key(origin["work_id"]))
        return await fetch_row(connection, self._sql["origin"], name)


async def _move_imagined(connection: Connection, document_id: uuid.UUID) -> None:
    """The imagined questions of a replaced document follow their texts; those without a text are deleted."""
    await connection.execute(queries("imagined")["follow_texts"], {"document_id": document_id})
    await _erase_imagined(connection, document_id)


async def _erase_imagined(connection: Connection, document_id: uuid.UUID) -> None:
    await connection.execute(queries("imagined")["erase_without_text"], {"document_id": document_id})


def _stays(superseded_from: date | None, current: Sequence[int]) -> bool:
    """Whether a document that its file does not contain is a superseded edition, or in a file with `current` documents
    one that will be: the file may contain its successor."""
    return superseded_from is not None and (len(current) > 0 or superseded_from <= valid_day(EVERYTHING))
