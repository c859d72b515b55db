"""Server-sent events of an answer while it is made: told as they come, ended in order whatever happens.

The first event is waited for before the response begins: what fails before that is answered with its status, like on
every other route.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import aclosing
from typing import Any, Generic, TypeVar

from fastapi import Request, Response
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from dtrag import logs
from dtrag.delivery.api.errors import error_body
from dtrag.delivery.api.request_tasks import InFlight, ended, gone, result_of
from dtrag.errors import DtragError
from dtrag.pipeline.run import Emit

_LOG = logging.getLogger(__name__)
T = TypeVar("T")
HEARTBEAT_S = 10.0
"""Silence after which a comment is sent: proxies cut connections that say nothing, most of them after 30 or 60 s."""
BEAT = b": still here\n\n"
_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
"""Characters that JSON leaves as they are, and at which clients that follow Unicode end a line."""
Told = tuple[str, Mapping[str, Any]]


def event(name: str, data: object) -> bytes:
    """One event with a name. JSON has no line breaks, so that `data` is one line."""
    return f"event: {name}\n".encode() + data_line(data)


def data_line(data: object) -> bytes:
    """One event without a name."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    text = text.translate(_LINE_ENDS)
    return f"data: {text}\n\n".encode("utf-8", "replace")


class Feed(Generic[T]):
    """What a run tells while it goes on, in order; `result` when it has ended."""

    def __init__(self, in_flight: InFlight, work: Callable[[Emit], Coroutine[Any, Any, T]]) -> None:
        self._told: asyncio.Queue[Told | None] = asyncio.Queue()
        self._first: list[Told | None] = []
        self._task = in_flight.start(work(lambda name, data: self._told.put_nowait((name, data))))
        self._task.add_done_callback(lambda _: self._told.put_nowait(None))

    async def begun(self, request: Request) -> None:
        """Returns when there is something to tell. Raises what the run raises before, and `ClientDisconnect`."""
        first = asyncio.create_task(self._told.get())
        leaving = asyncio.create_task(gone(request.receive))
        try:
            await asyncio.wait({first, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not first.done():
                raise ClientDisconnect
            self._first.append(first.result())
            if first.result() is None:
                result_of(self._task)
        except BaseException:
            await self.close()
            raise
        finally:
            await ended(first, leaving)

    async def told(self) -> AsyncIterator[Told | None]:
        """Each event; None after a silence of `HEARTBEAT_S`."""
        for already in self._first:
            if already is None:
                return
            yield already
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    told = await self._told.get()
            except TimeoutError:
                yield None
                continue
            if told is None:
                return
            yield told

    def result(self) -> T:
        """What the run gave, after the last event. Raises what it raised, and `Stopping`."""
        return result_of(self._task)

    async def close(self) -> None:
        """End the run if it still goes on."""
        await ended(self._task)


def failure_of(feed: Feed[Any]) -> dict[str, Any] | None:
    """The body that tells how the run failed; None when it did not. A bug is logged, and told as one."""
    try:
        feed.result()
    except DtragError as error:
        return error_body(str(error), type(error).__name__)
    except Exception as error:  # noqa: BLE001 - the seam: the response has begun, an event is all that can be said
        _LOG.error("a stream failed unexpectedly", exc_info=error)
        return error_body(f"Internal error; the request id is {logs.request_id.get()}", "InternalError")
    return None


class EventStream(Response):
    """Sends the pieces as they come. When the client leaves, or sending fails, the feed is closed at once."""

    media_type = "text/event-stream"

    def __init__(self, pieces: AsyncIterator[bytes], close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._pieces = pieces
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(gone(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        except OSError as error:
            raise ClientDisconnect from error
        finally:
            await ended(sending, leaving)
            await self._close()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with aclosing(self._pieces) as pieces:  # type: ignore[type-var]  # every source of ours is a generator
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
