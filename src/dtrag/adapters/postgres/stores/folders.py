"""Files whose documents are in the index, and what follows a file that was renamed."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from psycopg.rows import DictRow

from dtrag.adapters.postgres.database import Store, fetch
from dtrag.adapters.postgres.queries import Lock, lock, lock_shared, queries, uuid_key
from dtrag.adapters.postgres.rows import draft_of
from dtrag.adapters.postgres.stores.vectors import next_change
from dtrag.core.documents import Draft
from dtrag.ports import StoredFile

MOVE_REVIEW_STATE = ("drop_signals", "move_signals", "drop_placements", "move_placements", "move_review_items")


class PostgresFolders(Store):
    """The files of one database."""

    subject = "folders"

    async def files_below(self, prefix: str) -> list[StoredFile]:
        """Files whose addresses begin with `prefix` and that have documents, in the order of their addresses."""
        rows = await self._rows("files_below", {"prefix": prefix})
        return [
            StoredFile(row["source_id"], row["source_uri"], bytes(row["fingerprint"]), row["documents"]) for row in rows
        ]

    async def drafts_of(self, source_id: uuid.UUID, after: uuid.UUID | None, limit: int) -> list[Draft]:
        """Documents of a file as they were written, in the order of their ids, from the first after `after`."""
        rows = await self._rows("read_documents_of", {"source_id": source_id, "after": after, "limit": limit})
        chunks: dict[uuid.UUID, list[DictRow]] = {row["document_id"]: [] for row in rows}
        async with self._database.connection("owner") as connection:
            for row in await fetch(connection, queries("writing")["read_chunks"], {"document_ids": list(chunks)}):
                chunks[row["document_id"]].append(row)
        return [draft_of(row, chunks[row["document_id"]]) for row in rows]

    async def copy_vectors(self, moved: Mapping[uuid.UUID, uuid.UUID]) -> None:
        """Copy the vectors and imagined questions of old documents to new ones, in the categories of these."""
        names = {"old": list(moved), "new": list(moved.values())}
        async with self._database.connection("owner") as connection, connection.transaction():
            await lock_shared(connection, Lock.WRITERS)
            for document_id in sorted(moved.values()):
                await lock(connection, uuid_key(document_id))
            change = await next_change(connection)
            for statement in ("copy_vectors", "copy_sentences", "copy_imagined"):
                await connection.execute(self._sql[statement], {**names, "change": change})

    async def copy_originals(self, moved: Mapping[uuid.UUID, uuid.UUID]) -> None:
        """Copy the stored files of old documents to new ones, in the categories of these."""
        names = {"old": list(moved), "new": list(moved.values())}
        async with self._database.connection("owner") as connection, connection.transaction():
            await lock_shared(connection, Lock.WRITERS)
            await connection.execute(self._sql["copy_originals"], names)

    async def move_review_state(self, moved: Mapping[uuid.UUID, uuid.UUID]) -> None:
        """Decisions, placements and review items of old ids belong to the new ids."""
        names = {"old": list(moved), "new": list(moved.values())}
        async with self._database.connection("owner") as connection, connection.transaction():
            for statement in MOVE_REVIEW_STATE:
                await connection.execute(self._sql[statement], names)

    async def retained_below(self, prefix: str) -> list[uuid.UUID]:
        """Superseded editions from files with such addresses that do not contain them any more."""
        async with self._database.connection("owner") as connection:
            return [
                row["document_id"]
                for row in await fetch(connection, queries("editions")["retained_below"], {"prefix": prefix})
            ]
