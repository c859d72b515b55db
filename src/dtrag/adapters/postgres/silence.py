"""Cuts connections to a server that is silent: one that is frozen, or whose packets the network swallows.

Neither ends a connection, and the system of a frozen process confirms every packet for it. A statement may be long,
though: what has waited for `SILENT_S` is cut only when the same server does not respond to a new connection either, or
when it has waited longer than any of its statements may take.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

import psycopg
from psycopg.conninfo import make_conninfo

from dtrag.adapters.postgres.pool import Connection, Place, answered
from dtrag.adapters.postgres.queries import queries

SILENT_S = 5.0
"""Seconds without a response after which a server is asked with a new connection."""
PROBE_S = 5
"""Seconds in which it must respond to that."""
LOOK_S = 1.0
_LOG = logging.getLogger(__name__)


class SilenceWatch:
    """Watches the connections of one database. `conninfo` is the address for a new connection; `cut` is called after
    connections were cut."""

    def __init__(
        self, connections: Callable[[], Iterable[Connection]], conninfo: Callable[[], str], cut: Callable[[], None]
    ) -> None:
        self._connections = connections
        self._conninfo = conninfo
        self._cut = cut

    async def run(self) -> None:
        """Look again and again, until this is cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            for connection in self._connections():
                if connection.limit_s is not None and connection.waited_s() > connection.limit_s:
                    connection.cut()
            silent = {connection.place for connection in self._connections() if connection.waited_s() > SILENT_S}
            if silent:
                await asyncio.gather(*map(self._examine, silent))

    async def _examine(self, place: Place) -> None:
        """Cut all connections to the server if it does not respond."""
        if await self._responds(place):
            return
        cut = [connection for connection in self._connections() if connection.place == place]
        for connection in cut:
            connection.cut()
        _LOG.warning("the database at %s does not respond: %d connections to it are closed", place[0], len(cut))
        self._cut()

    async def _responds(self, place: Place) -> bool:
        host, address, port = place
        where = make_conninfo(
            self._conninfo(), host=host, hostaddr=address or None, port=port, target_session_attrs="any"
        )
        try:
            connection = await Connection.connect(where, autocommit=True, connect_timeout=PROBE_S)
        except psycopg.OperationalError as error:
            return answered(error)
        late = asyncio.get_running_loop().call_later(PROBE_S, connection.cut)  # a pooler accepts for a server
        try:
            await connection.execute(queries("session")["ping"])
        except psycopg.OperationalError:
            return False
        finally:
            late.cancel()
            await connection.close()
        return True
