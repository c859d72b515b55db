"""Restarts the embedded server when it dies or is stuck while it is in use, and watches its disk.

Every process that is attached to the server supervises it: whichever takes `start.lock` first launches it, and the
others notice that it is there again. Requests do not wait for that: they are refused at once while the server is away.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from contextlib import suppress

from dtrag.adapters.postgres.database import READ_ONLY, Database
from dtrag.adapters.postgres.disk import Disk
from dtrag.adapters.postgres.lexical import maintenance
from dtrag.adapters.postgres.server.server import EmbeddedServer
from dtrag.errors import DatabaseStartFailed, DatabaseUnavailable

LOOK_S = 0.5
"""A dead server is noticed after this time even without requests, in seconds."""
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0
"""Between attempts while the server does not come back; they grow from the first to this."""
_LOG = logging.getLogger(__name__)


class Supervisor:
    """Keeps the server of one attachment running until its task is cancelled."""

    def __init__(self, server: EmbeddedServer, database: Database, disk: Disk) -> None:
        self._server = server
        self._database = database
        self._disk = disk

    async def run(self) -> None:
        """Look after the server for ever."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._database.lost.wait(), LOOK_S)
            self._database.lost.clear()
            try:
                await asyncio.to_thread(self._disk.look)
            except OSError as error:
                _LOG.error("the disk of the data folder cannot be looked at", exc_info=error)
            if not await asyncio.to_thread(self._server.is_alive):
                _LOG.warning("the embedded database is not running any more; it is being started again")
                await self._bring_back()
            elif (stuck := await asyncio.to_thread(self._server.stuck_process)) is not None:
                _LOG.warning("the embedded database is stuck (process %d); it is ended and started again", stuck)
                await self._bring_back(stuck)

    async def _bring_back(self, stuck: int | None = None) -> None:
        started, pause, told = time.monotonic(), FIRST_PAUSE_S, ""
        while True:
            try:
                if await self._revived(stuck):
                    break
            except DatabaseStartFailed as error:
                if isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EROFS:
                    self._database.outage = READ_ONLY
                if str(error) != told:
                    _LOG.error("the embedded database does not start; trying again", exc_info=error)
                told = str(error)
                pause = min(2 * pause, LONGEST_PAUSE_S)
            await asyncio.sleep(pause)
        self._database.outage = ""
        _LOG.warning("the embedded database is back after %.1f s", time.monotonic() - started)
        try:
            await maintenance.recover(self._database)
        except DatabaseUnavailable as error:
            _LOG.warning("what an interrupted write left could not be counted yet", exc_info=error)

    async def _revived(self, stuck: int | None) -> bool:
        """One attempt. A cancellation waits for it (two seconds, as a rule): it holds the lock that a stop needs."""
        attempt = asyncio.ensure_future(asyncio.to_thread(self._server.revive, stuck))
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            await asyncio.wait([attempt])
            if not attempt.cancelled():
                attempt.exception()
            raise
