"""Reads without the postings: the index of mode `strict`, and reads as the owner that prove the isolation.

The index of mode `strict` is created in the background when the mode is first used, kept current by PostgreSQL then.
Until it is there, searches in that mode read the text of passages: of all in a small collection, of the best by words
in a large one.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Collection, Sequence

import psycopg
from psycopg.rows import DictRow

from dtrag.adapters.postgres.database import Connection, Database, Store, fetch_row
from dtrag.adapters.postgres.queries import Lock, queries
from dtrag.core.access.scope import Scope
from dtrag.core.documents import uuid_or_none
from dtrag.core.statements import Statement, stated
from dtrag.errors import DatabaseUnavailable
from dtrag.ports import valid_day

_LOG = logging.getLogger(__name__)

MOST_READ = 4_000
"""Passages whose text one search reads without the index: about half a second."""
RETRY_S = 600.0
"""Seconds after a failed creation in which it is not tried again."""
CLOSE_S = 5.0
"""Seconds for which closing waits for a creation that has begun: that of about 50,000 passages."""

_FORBIDDEN = (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction)


class StrictIndex:
    """Knows whether the index is there and creates it. One for each process and database."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._there = False
        self._forbidden = False
        self._retry_at = 0.0
        self._creation: asyncio.Task[None] | None = None

    async def ready(self) -> bool:
        """Whether searches can use the index; when it is missing, its creation begins in the background."""
        if not self._there:
            async with self._database.connection("search") as connection:
                self._there = await _valid(connection) is True
            if not self._there:
                self._begin()
        return self._there

    def note(self) -> Statement:
        """What people should know of a search that has read only `MOST_READ` passages."""
        head = "Mode strict has read the {passages} best passages by words only, others may be missing: its index "
        most = f"{MOST_READ:,}"
        if self._forbidden:
            statement = queries("strict")["create_index"]
            owner = f"{head}may not be created by this database user. Let the owner of dtrag.chunks run: {{statement}}"
            return stated("strict_index_forbidden", owner, passages=most, statement=statement)
        if self._creation is None or self._creation.done():
            failed = f"{head}could not be created; the log has the reason, and it is tried again in ten minutes."
            return stated("strict_index_failed", failed, passages=most)
        return stated("strict_index_pending", f"{head}is being created. Search again in a few minutes.", passages=most)

    async def close(self) -> None:
        """Wait a little for a creation that has begun, then end it; what is half done is removed by the next one."""
        if self._creation is not None:
            await asyncio.wait({self._creation}, timeout=CLOSE_S)
            self._creation.cancel()
            await asyncio.wait({self._creation})

    def _begin(self) -> None:
        running = self._creation is not None and not self._creation.done()
        if not running and not self._forbidden and self._clock() >= self._retry_at:
            self._creation = asyncio.create_task(self._try_creation(), name="strict-index")

    async def _try_creation(self) -> None:
        """The named boundary at which creation may fail: searches go on without the index, and say so."""
        try:
            await self.create()
        except _FORBIDDEN:
            self._forbidden = True
            _LOG.warning("the index of mode strict may not be created by this database user")
        except (psycopg.Error, DatabaseUnavailable):
            self._retry_at = self._clock() + RETRY_S
            _LOG.warning("the index of mode strict could not be created", exc_info=True)

    async def create(self) -> None:
        """Create the index unless it is there or another process is creating it. Raises `psycopg.Error`."""
        statements, lock = queries("locks"), {"lock": Lock.STRICT_INDEX}
        async with self._database.own_connection("owner") as connection:
            row = await fetch_row(connection, statements["try_session"], lock)
            if row is None or not row["free"]:
                return
            try:
                await _create(connection)
            finally:
                if not connection.closed:
                    await connection.execute(statements["release"], lock)


async def _create(connection: Connection) -> None:
    valid = await _valid(connection)
    if valid:
        return
    statements = queries("strict")
    if valid is False:  # an earlier creation was interrupted
        await connection.execute(statements["drop_index"])
    await connection.execute(statements["create_index"])
    await connection.execute(statements["skip_statistics"])


async def _valid(connection: Connection) -> bool | None:
    """Whether the index can be used; None when there is none."""
    row = await fetch_row(connection, queries("strict")["index_state"])
    return None if row is None else bool(row["valid"])


class UnscopedReads(Store):
    """Reads of one database as its owner; `rows_under_policy` is the same read as a caller."""

    subject = "unscoped"

    async def documents_of_each_node(self, per_node: int) -> list[DictRow]:
        """Id, node and title of at most `per_node` documents of every node that has any, ordered by id."""
        return await self._rows("documents_of_each_node", {"per_node": per_node})

    async def total(self) -> int:
        """The number of all documents."""
        [row] = await self._rows("total")
        return int(row["documents"])

    async def count(self, scope: Scope) -> int:
        """The number of documents in scope that are valid on its day."""
        values = {"as_of": valid_day(scope), "text": "", "content_types": None, "nodes": sorted(scope.nodes or ())}
        async with self._database.connection("owner") as connection:
            row = await fetch_row(connection, queries("content")["document_count_in"], values)
        return int(row["documents"]) if row else 0

    async def nodes(self, document_ids: Collection[str]) -> dict[str, int]:
        """Document id -> node, of those of the ids that documents have."""
        rows = await self._rows("nodes", {"document_ids": list(document_ids)}) if document_ids else []
        return {str(row["document_id"]): row["node_id"] for row in rows}

    async def texts(self, keys: Collection[str]) -> dict[str, str]:
        """Chunk id or document id -> its text."""
        places = [key.rpartition(":") for key in keys]
        passages = [(uuid_or_none(document), int(ordinal)) for document, colon, ordinal in places if colon]
        rows = await self._rows(
            "passages", {"document_ids": [key for key, _ in passages], "ordinals": [ordinal for _, ordinal in passages]}
        )
        rows += await self._rows("texts", {"document_ids": [document for _, colon, document in places if not colon]})
        return {row["key"]: row["text"] for row in rows}

    async def tables_without_policy(self) -> list[str]:
        """Tables whose row-level security is off, or without a policy for callers."""
        return [row["name"] for row in await self._rows("tables_without_policy")]

    async def rows_in_scope(self, scope: Scope, document_ids: Sequence[str]) -> dict[str, int]:
        """Table -> number of rows in scope; of passages only those of these documents."""
        values = {"nodes": sorted(scope.nodes or ()), "document_ids": _uuids(document_ids)}
        [row] = await self._rows("rows_in_scope", values)
        return dict(row)

    async def rows_under_policy(self, scope: Scope, document_ids: Sequence[str]) -> dict[str, int]:
        """Table -> number of rows that a caller with this scope gets, when a statement names no scope itself."""
        values = {"document_ids": _uuids(document_ids)}
        row = await self._database.read_row(scope, self._sql["rows_under_policy"], values)
        return dict(row or {})


def _uuids(document_ids: Sequence[str]) -> list[uuid.UUID]:
    return [uuid.UUID(document_id) for document_id in document_ids]
