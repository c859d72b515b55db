"""Answers that are being made: each ends when its client leaves, and all of them before the service does."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from dtrag.errors import Stopping

T = TypeVar("T")


class InFlight:
    """The answers that one service is making; used on its event loop only."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ended = False

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin an answer. Raises `Stopping` once all have been ended."""
        if self._ended:
            work.close()
            raise Stopping
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def end(self) -> None:
        """End those under way, and begin no more: whoever waits for them is told with `Stopping`."""
        self._ended = True
        for task in self._tasks:
            task.cancel()

    def __len__(self) -> int:
        return len(self._tasks)


def result_of(task: asyncio.Task[T]) -> T:
    """What a finished task has given. Raises what it raised, and `Stopping` for one that was ended."""
    if task.cancelled():
        raise Stopping
    return task.result()


async def until_gone(request: Request, in_flight: InFlight, work: Coroutine[Any, Any, T]) -> T:
    """What the work gives, as long as the client waits for it; it is cancelled when the client leaves.

    Raises `ClientDisconnect` then, and `Stopping` when the service cannot wait for it any longer.
    """
    task = in_flight.start(work)
    leaving = asyncio.create_task(gone(request.receive))
    try:
        await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return result_of(task)
    finally:
        await ended(task, leaving)


async def gone(receive: Receive) -> None:
    """Returns when the client has left; the body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def ended(*tasks: asyncio.Task[Any]) -> None:
    """Cancel what still runs of them and wait until it has ended; what they raise is nobody's any more."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
