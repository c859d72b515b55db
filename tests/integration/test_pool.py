"""Connections of one role: when the server takes no more of them, and when their callers are cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio
from psycopg.conninfo import make_conninfo

from dtrag.adapters.postgres.pool import Connection, Pool
from dtrag.adapters.postgres.server.server import EmbeddedServer
from dtrag.errors import DatabaseUnavailable


class Refusing:
    """Addresses of a server that accepts `accepted` connections and refuses all others."""

    def __init__(self, server: EmbeddedServer, accepted: int) -> None:
        self._server = server
        self._accepted = accepted
        self.refused = asyncio.Event()

    def __call__(self) -> str:
        self._accepted -= 1
        if self._accepted >= 0:
            return self._server.address.conninfo("dtrag_owner", "postgres")
        self.refused.set()
        return self._server.address.conninfo("dtrag_owner", "no_such_database")


async def _configure(connection: Connection) -> None:
    """Nothing: no types are needed here."""


def _pool(address: Refusing, *, wait_s: float = 30.0) -> Pool:
    return Pool(address, size=3, wait_s=wait_s, connect_s=3, configure=_configure)


async def _process(pool: Pool) -> int:
    async with pool.connection() as connection:
        return connection.info.backend_pid


async def test_callers_share_the_connection_there_is(embedded: EmbeddedServer) -> None:
    address = Refusing(embedded, 1)
    pool = _pool(address)
    async with pool.connection() as connection:
        process = connection.info.backend_pid
        others = [asyncio.create_task(_process(pool)) for _ in range(2)]
        await address.refused.wait()
    assert await asyncio.gather(*others) == [process, process]
    await pool.close()


async def test_without_a_connection_to_wait_for_the_refusal_is_raised_at_once(embedded: EmbeddedServer) -> None:
    with pytest.raises(DatabaseUnavailable, match="no connection can be made"):
        await _process(_pool(Refusing(embedded, 0)))


async def test_the_wait_is_bounded(embedded: EmbeddedServer) -> None:
    pool = _pool(Refusing(embedded, 1), wait_s=0.05)
    async with pool.connection():
        with pytest.raises(DatabaseUnavailable, match="no connection can be made"):
            await _process(pool)
    await pool.close()


async def test_a_lost_connection_is_not_waited_for(embedded: EmbeddedServer) -> None:
    address = Refusing(embedded, 1)
    pool = _pool(address)
    async with pool.connection() as connection:
        other = asyncio.create_task(_process(pool))
        await address.refused.wait()
        await connection.close()
    with pytest.raises(DatabaseUnavailable, match="no connection can be made"):
        await other


class SlowServer:
    """A relay to the embedded server that withholds its answers until `released` is set."""

    def __init__(self, server: EmbeddedServer, folder: Path) -> None:
        self._upstream = f"{server.address.socket_dir}/.s.PGSQL.{server.address.port}"
        self._direct = server.address.conninfo("dtrag_owner", "postgres")
        self.path = folder / f".s.PGSQL.{server.address.port}"
        self.conninfo = make_conninfo(self._direct, host=str(folder), application_name=folder.name)
        self.called, self.released = asyncio.Event(), asyncio.Event()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.called.set()
        answers, requests = await asyncio.open_unix_connection(self._upstream)

        async def answer() -> None:
            await self.released.wait()
            await _copy(answers, writer)

        await asyncio.gather(_copy(reader, requests), answer())

    async def sessions(self) -> int:
        """Sessions of these connections on the server, when those that ended have had time to leave its list."""
        count = "select count(*) from pg_stat_activity where application_name = %s"
        async with await psycopg.AsyncConnection.connect(self._direct, autocommit=True) as connection:
            for _ in range(100):
                [sessions] = await (await connection.execute(count, [self.path.parent.name])).fetchone() or (0,)
                if not sessions:
                    break
                await asyncio.sleep(0.05)
        return int(sessions)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while part := await reader.read(65_536):
        writer.write(part)
    writer.close()


@pytest_asyncio.fixture
async def slow(embedded: EmbeddedServer, tmp_path: Path) -> AsyncIterator[SlowServer]:
    relay = SlowServer(embedded, tmp_path)
    async with await asyncio.start_unix_server(relay.accept, relay.path):
        yield relay


def _slow_pool(slow: SlowServer, *, size: int = 3) -> Pool:
    return Pool(lambda: slow.conninfo, size=size, wait_s=30.0, connect_s=30, configure=_configure)


async def test_a_closed_pool_has_no_session_of_a_cancelled_caller(slow: SlowServer) -> None:
    pool = _slow_pool(slow)
    caller = asyncio.create_task(_process(pool))
    await slow.called.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError) as raised:  # its traceback holds what psycopg has of the connection
        await caller
    closing = asyncio.create_task(pool.close())
    slow.released.set()
    await closing
    assert await slow.sessions() == 0
    with pytest.raises(DatabaseUnavailable, match="closed"):
        await _process(pool)
    assert raised.tb is not None


async def test_a_cancelled_caller_leaves_its_connection_to_the_next(slow: SlowServer) -> None:
    pool = _slow_pool(slow, size=1)
    caller = asyncio.create_task(_process(pool))
    await slow.called.wait()
    caller.cancel()
    next_caller = asyncio.create_task(_process(pool))
    with pytest.raises(asyncio.CancelledError):
        await caller
    slow.called.clear()
    slow.released.set()
    await next_caller
    assert not slow.called.is_set()
    await pool.close()
    assert await slow.sessions() == 0


async def test_a_closed_pool_waits_for_connections_in_use_and_then_closes_them(slow: SlowServer) -> None:
    slow.released.set()
    pool = Pool(lambda: slow.conninfo, size=2, wait_s=30.0, connect_s=2, configure=_configure)
    async with pool.connection() as returned:
        using = asyncio.create_task(pool.close())
        await asyncio.sleep(0)
        in_use = returned.closed
    await using
    assert (in_use, returned.closed) == (False, True)

    pool = Pool(lambda: slow.conninfo, size=2, wait_s=30.0, connect_s=2, configure=_configure)
    async with pool.connection() as retained:
        await pool.close()
        assert retained.closed
    assert await slow.sessions() == 0
