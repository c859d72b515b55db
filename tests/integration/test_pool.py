"""Connections of one role, when the server takes no more of them."""

from __future__ import annotations

import asyncio

import pytest

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
