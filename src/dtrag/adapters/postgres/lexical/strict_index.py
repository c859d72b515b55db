"""The index of mode `strict`: created in the background when the mode is first used, kept current by PostgreSQL then.

Until it is there, searches in that mode read the text of passages: of all in a small collection, of the best by words
in a large one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

import psycopg

from dtrag.adapters.postgres.database import Connection, Database
from dtrag.adapters.postgres.locks import Lock
from dtrag.adapters.postgres.queries import queries
from dtrag.core.statements import stated
from dtrag.errors import DatabaseUnavailable

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

    def note(self) -> str:
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
        async with self._database.connection("owner") as connection:
            row = await (await connection.execute(statements["try_session"], lock)).fetchone()
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
    row = await (await connection.execute(queries("strict")["index_state"])).fetchone()
    return None if row is None else bool(row["valid"])
