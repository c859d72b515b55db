"""Connections of one role: made when they are needed, kept for the next use, and given up when the server is gone.

There is no background reconnection and so no back-off: a caller that finds no living connection makes one, and gets the
error at once when the server is away. The first request after an outage therefore waits for one connection and nothing
else. A server that lives but takes no more connections (its limit is reached, its disk is full to the last byte) is no
outage: the caller waits for a connection that others use.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import select
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Literal, LiteralString, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncCursor, AsyncPipeline, AsyncTransaction, sql
from psycopg.abc import Params, PQGen
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import DictRow, dict_row

from dtrag.adapters.postgres.queries import queries
from dtrag.adapters.postgres.session import Backend
from dtrag.core.job import LEASE, Lease
from dtrag.errors import DatabaseUnavailable

T = TypeVar("T")
SILENT_OWNER_S = LEASE.total_seconds()
"""The server ends a change whose process says nothing for so long, and so releases its locks: a process that is frozen
in it holds up no other one beyond that, just as it loses its jobs."""
SILENT_READER_S = 60.0
"""The same for reads, whose locks hold up only migrations and the emptying of the index. What opens files, or computes,
between two statements takes seconds."""
ATTEND_S = SILENT_OWNER_S / 4
Place = tuple[str, str, int]
"""Host, address and port of a server."""
SILENT = "it does not respond."


class Connection(AsyncConnection[DictRow]):
    """A connection that keeps the cursor of a statement that every search repeats, and knows since when it waits.

    A cursor remembers how the parameters and columns of its last statement are converted: a tenth of the time to read
    ten passages.
    """

    backend: Backend | None = None
    """The server process, once the session is verified."""
    limit_s: float | None = None
    """Longest wait: a frozen server of a cluster keeps the coordinator from ending a statement at its time limit."""
    was_cut = False
    _repeated: tuple[LiteralString, AsyncCursor[DictRow]] | None = None
    _lease: Lease | None = None
    _waiting_since = math.inf

    async def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:  # noqa: ASYNC109
        """Wait for the server; every statement does."""
        self._waiting_since = time.monotonic()
        try:
            return await super().wait(gen, interval, timeout)
        finally:
            self._waiting_since = math.inf

    def waited_s(self) -> float:
        """Seconds since the server has been waited for; negative when it is not."""
        return time.monotonic() - self._waiting_since

    @property
    def place(self) -> Place:
        """Where its server is."""
        return self.info.host, self.info.hostaddr, self.info.port

    def cut(self) -> None:
        """End it without the server; what waits for it fails with `OperationalError`."""
        self.was_cut = True
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self.fileno())) as copied:
            copied.shutdown(socket.SHUT_RDWR)

    def repeated(self, statement: LiteralString) -> AsyncCursor[DictRow]:
        """A cursor that is kept for this statement; its rows are transferred in binary form."""
        if self._repeated is None or self._repeated[0] is not statement:
            self._repeated = statement, self.cursor(binary=True)
        return self._repeated[1]

    @asynccontextmanager
    async def fenced(self, lease: Lease) -> AsyncIterator[None]:
        """Inside the block every transaction checks the lease, and fails once it is lost; as `armed`."""
        async with self.armed():
            self._lease = lease
            try:
                yield
            finally:
                self._lease = None

    @asynccontextmanager
    async def armed(self, work: Literal["job", "batch"] = "job") -> AsyncIterator[None]:
        """The server ends the session when it says nothing for as long as a lease, also outside of a transaction.

        A process that was stopped in the middle holds no lock of the session beyond that. A batch does not wait for the
        disk.
        """
        session = queries("session")
        await self.execute(sql.SQL(session[f"arm_{work}"]).format(ms=sql.Literal(int(SILENT_OWNER_S * 1000))))
        try:
            yield
        except BaseException:
            await self.close()
            raise
        if not self.closed:
            await self.execute(session[f"disarm_{work}"])

    @asynccontextmanager
    async def attended(self) -> AsyncIterator[None]:
        """Inside the block the server does not end the session for its silence while this process lives: it works on
        something else for long."""
        over = asyncio.Event()

        async def attend() -> None:
            while not over.is_set():
                try:
                    async with asyncio.timeout(ATTEND_S):
                        await over.wait()
                except TimeoutError:
                    with suppress(psycopg.Error):  # the next statement of the block has it, too
                        await super(Connection, self).execute(queries("session")["ping"])

        attending = asyncio.create_task(attend())
        try:
            yield
        finally:
            over.set()  # not cancelled: psycopg would end the statement, and so the transaction
            await attending

    @asynccontextmanager
    async def pipeline(self) -> AsyncIterator[AsyncPipeline]:
        """As in psycopg, without its flush request after the last sync: that stops the server's clock of silence."""
        async with super().pipeline() as pipeline:
            pipeline._exit_gen = partial(_end, pipeline)  # type: ignore[method-assign]
            yield pipeline

    async def begin(self) -> None:
        """Begin a transaction by a statement of its own, as pipelines need; it is committed or rolled back so, too."""
        await super().execute(queries("session")["begin"])
        await self._check()

    @asynccontextmanager
    async def transaction(
        self, savepoint_name: str | None = None, force_rollback: bool = False
    ) -> AsyncIterator[AsyncTransaction]:
        """As in psycopg; a fenced one begins with the check of the lease."""
        async with super().transaction(savepoint_name, force_rollback) as transaction:
            await self._check()
            yield transaction

    async def execute(self, query: Any, params: Params | None = None, **options: Any) -> AsyncCursor[DictRow]:
        """As in psycopg; a fenced statement outside of a transaction is one with the check."""
        if (
            self._lease is None
            or self.info.transaction_status != TransactionStatus.IDLE
            or self.pgconn.pipeline_status != PipelineStatus.OFF
        ):
            return await super().execute(query, params, **options)
        async with self.transaction():
            return await super().execute(query, params, **options)

    async def _check(self) -> None:
        if self._lease is not None:
            await super().execute(queries("session")["check_job"], self._lease._asdict())


def _end(pipeline: AsyncPipeline) -> PQGen[None]:
    try:
        pipeline._enqueue_sync()
        yield from pipeline._communicate_gen()
    finally:
        yield from pipeline._fetch_gen(flush=False)


MAX_IDLE_S = 600.0
"""A connection unused for so long is closed: its server process takes memory."""
MAX_AGE_S = 3_600.0
"""A connection of this age is not used again: the caches of its server process only grow."""
_LOG = logging.getLogger(__name__)


class Pool:
    """At most `size` connections. `conninfo` is called for each new one: a restarted server may have moved.

    `on_lost` is called whenever the server refuses or has ended a connection. A caller waits at most `wait_s` for a
    connection that others use, a new connection may take at most `connect_s`, and a response `limit_s` (None: ever).
    """

    def __init__(
        self,
        conninfo: Callable[[], str],
        *,
        size: int,
        wait_s: float,
        connect_s: int,
        configure: Callable[[Connection], Awaitable[None]],
        limit_s: float | None = None,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        self._conninfo = conninfo
        self._wait_s = wait_s
        self._connect_s = connect_s
        self._limit_s = limit_s
        self._configure = configure
        self._on_lost = on_lost
        self._size = size
        self._slots = asyncio.Semaphore(size)
        self._idle: list[tuple[Connection, float]] = []
        self._made_at: dict[Connection, float] = {}
        self._returned = asyncio.Event()
        self._abandoned: set[asyncio.Task[None]] = set()
        self._slots_of_abandoned = 0
        self._connecting = 0
        self._last_attempt: Literal["made", "refused", "unreachable"] = "made"
        self._closed = False

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection in autocommit. Raises `DatabaseUnavailable`, and what the block raises."""
        if not self._slots.locked():
            await self._slots.acquire()  # at once: a time limit would cost more
        else:
            try:
                async with asyncio.timeout(self._wait_s):
                    await self._slots.acquire()
            except TimeoutError as error:
                raise DatabaseUnavailable(reason="no connection became free in time; it is overloaded.") from error
        try:
            connection = await self._take()
            try:
                yield connection
            except psycopg.errors.ReadOnlySqlTransaction:
                await connection.close()  # another server takes changes now
                raise
            except psycopg.OperationalError as error:
                if connection.was_cut:
                    raise DatabaseUnavailable(reason=SILENT) from error
                raise
            finally:
                await self._give_back(connection)
        finally:
            if self._slots_of_abandoned:
                self._slots_of_abandoned -= 1
            else:
                self._slots.release()

    @property
    def connections(self) -> Collection[Connection]:
        """All open ones, also those whose session is not verified yet."""
        return list(self._made_at)

    async def close(self) -> None:
        """Close every connection, also those that are being made; those in use get as long as one takes to be made."""
        self._closed = True
        free = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(self._connect_s + 1):
                while free < self._size:
                    await self._slots.acquire()
                    free += 1
        for connection in list(self._made_at):
            await self._discard(connection)
        self._idle.clear()
        for _ in range(free):  # later callers do not wait: they are refused
            self._slots.release()

    async def _take(self) -> Connection:
        waiting_until = time.monotonic() + self._wait_s
        while True:
            if self._closed:
                raise DatabaseUnavailable(reason="the connection is closed.")
            while self._idle:
                connection, _ = self._idle.pop()  # the one used last: the others may grow old
                try:
                    alive = await _is_alive(connection)
                except asyncio.CancelledError:
                    await self._discard(connection)
                    raise
                if alive:
                    return connection
                await self._discard(connection)
                self._on_lost()
            if self._last_attempt == "unreachable" and self._connecting:
                raise _refusal()  # one attempt at a time: where an address swallows them, each takes `connect_s`
            self._returned.clear()
            try:
                return await self._new()
            except psycopg.OperationalError as error:
                remaining_s = waiting_until - time.monotonic()
                if not answered(error) or not self._made_at or remaining_s <= 0:
                    self._on_lost()
                    raise _refusal() from error
            with suppress(TimeoutError):
                await asyncio.wait_for(self._returned.wait(), remaining_s)

    async def _new(self) -> Connection:
        """The connection of an attempt of its own, which a cancelled caller leaves to the next one, with the slot.

        psycopg does not close a connection whose opening is cancelled: the session lasts until the object is collected.
        """
        attempt = asyncio.create_task(self._attempt())
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            self._slots_of_abandoned += 1
            abandoned = asyncio.create_task(self._keep(attempt))
            self._abandoned.add(abandoned)
            abandoned.add_done_callback(self._abandoned.discard)
            raise

    async def _keep(self, attempt: asyncio.Task[Connection]) -> None:
        try:
            await self._give_back(await attempt)
        except (psycopg.Error, DatabaseUnavailable):
            self._on_lost()
        finally:
            self._slots.release()

    async def _attempt(self) -> Connection:
        """A new connection. Raises `psycopg.OperationalError`, which is logged when it is the first of a series."""
        self._connecting += 1
        try:
            connection = await self._connect()
        except psycopg.OperationalError as error:
            if self._last_attempt == "made":
                _LOG.warning("no connection to the database can be made", exc_info=error)
            self._last_attempt = "refused" if answered(error) else "unreachable"
            raise
        finally:
            self._connecting -= 1
        self._last_attempt = "made"
        return connection

    async def _connect(self) -> Connection:
        connection = await Connection.connect(
            self._conninfo(), autocommit=True, row_factory=dict_row, connect_timeout=self._connect_s
        )
        self._made_at[connection] = time.monotonic()
        try:
            await self._configure(connection)
        except BaseException:
            await self._discard(connection)
            raise
        connection.limit_s = self._limit_s
        return connection

    async def _give_back(self, connection: Connection) -> None:
        now = time.monotonic()
        whole = not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE
        usable = now - self._made_at.get(connection, 0.0) < MAX_AGE_S or self._last_attempt == "refused"
        if whole and usable and not self._closed:
            self._idle.append((connection, now))
        else:
            if connection.broken:
                self._on_lost()
            await self._discard(connection)
        self._returned.set()
        if self._idle and now - self._idle[0][1] > MAX_IDLE_S:
            await self._discard(self._idle.pop(0)[0])

    async def _discard(self, connection: Connection) -> None:
        self._made_at.pop(connection, None)
        await connection.close()


def _refusal() -> DatabaseUnavailable:
    return DatabaseUnavailable(reason="no connection can be made at the moment.")


def answered(error: psycopg.Error) -> bool:
    """Whether the server itself refused the connection; libpq gives no error code for that, only the message."""
    return "FATAL:" in str(error)


async def _is_alive(connection: Connection) -> bool:
    """Whether the server has not ended the connection; asks it only when there is something to be read.

    A connection at rest has nothing to say: a server that went away or closed it does, be it the end of the stream.
    That saves a round trip on every use, about a tenth of a millisecond.
    """
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if not poll.poll(0):
        return True
    try:
        await connection.execute(queries("session")["ping"])
    except psycopg.Error:
        return False
    return True
