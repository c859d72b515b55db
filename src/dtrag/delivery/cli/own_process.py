"""Runs a reading command in its own process: loads the engine and starts the database concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress

from dtrag.delivery.local.results import ReadingResult
from dtrag.errors import DatabaseUnavailable
from dtrag.settings import Settings


async def in_this_process(settings: Settings, operation: str, arguments: Mapping[str, object]) -> ReadingResult:
    """The result of an operation of `delivery.local.operations`. Raises `DatabaseUnavailable` and its errors."""
    async with _database_started(settings) as started:
        from dtrag.app import open_app
        from dtrag.delivery.local.operations import OPERATIONS

        await started()
        async with open_app(settings) as app:
            return await OPERATIONS[operation](app, **arguments)


@asynccontextmanager
async def _database_started(settings: Settings) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    """Start the embedded server in a thread while the block imports the engine, which takes longer.

    Yields a function that waits for the server and raises `DatabaseUnavailable`. The server is released at the end.
    """
    if settings.database_url:
        yield _no_wait
        return
    from dtrag.adapters.postgres.server.server import EmbeddedServer

    opening = asyncio.create_task(asyncio.to_thread(EmbeddedServer.open, settings.data_dir))
    try:
        await asyncio.sleep(0)  # the thread begins
        yield lambda: asyncio.shield(opening)
    finally:
        with suppress(DatabaseUnavailable):
            server = await asyncio.shield(opening)
            await asyncio.shield(asyncio.to_thread(server.close))


async def _no_wait() -> None:
    """An external database needs no wait."""
