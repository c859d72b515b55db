"""Tasks of requests: cancelled when the service stops, and those for answers when their client disconnects."""

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
    """The running tasks of one service; used on its event loop only."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ended = False

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task. Raises `Stopping` after `end`."""
        if self._ended:
            work.close()
            raise Stopping
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def end(self) -> None:
        """Cancel all tasks and start no more: those that wait for one receive `Stopping`."""
        self._ended = True
        for task in self._tasks:
            task.cancel()

    def __len__(self) -> int:
        return len(self._tasks)


def result_of(task: asyncio.Task[T]) -> T:
    """The result of a finished task. Raises what the task raised, and `Stopping` for a cancelled one."""
    if task.cancelled():
        raise Stopping
    return task.result()


async def until_gone(request: Request, in_flight: InFlight, work: Coroutine[Any, Any, T]) -> T:
    """The result of the work, which is cancelled when the client disconnects.

    Raises `ClientDisconnect` then, and `Stopping` when the service stops before the work is done.
    """
    task = in_flight.start(work)
    leaving = asyncio.create_task(client_gone(request.receive))
    try:
        await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return result_of(task)
    finally:
        await cancelled(task, leaving)


async def until_done(in_flight: InFlight, work: Coroutine[Any, Any, T]) -> T:
    """The result of the work, whether or not the client is still there. Raises `Stopping` when the service stops."""
    task = in_flight.start(work)
    try:
        await asyncio.wait({task})
        return result_of(task)
    finally:
        await cancelled(task)


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """The result of the work. Raises `TimeoutError` after that time; the cancelled work may end later.

    `asyncio.timeout` waits for that end, which takes ten seconds for a statement in a database that does not respond.
    """
    task = asyncio.create_task(work)
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        task.cancel()


async def client_gone(receive: Receive) -> None:
    """Return when the client has disconnected; the body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def cancelled(*tasks: asyncio.Task[Any]) -> None:
    """Cancel the tasks that still run and wait until all have ended; their errors are dropped."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
