"""Server-sent events of an answer while it is generated; the stream always ends with a final event.

The response starts after the first event: a failure before that is answered with its HTTP status, as on every other
route.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from typing import Any, Generic, TypeVar

from fastapi import Request
from fastapi.sse import EventSourceResponse, format_sse_event
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from dtrag import logs
from dtrag.delivery.api.errors import detail_of, error_body
from dtrag.delivery.api.request_tasks import InFlight, cancelled, client_gone, result_of
from dtrag.errors import DtragError
from dtrag.pipeline.run_context import Emit

_LOG = logging.getLogger(__name__)
T = TypeVar("T")
EVENT_STREAM = "text/event-stream"
HEARTBEAT_S = 10.0
"""Seconds without an event after which a comment is sent: proxies close silent connections, most after 30 or 60 s."""
_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
"""Characters that JSON leaves as they are, and that clients which follow Unicode treat as line breaks."""
RunEvent = tuple[str, Mapping[str, Any]]
"""Name and data of an event that a run emits."""


def event(data: object, name: str | None = None) -> bytes:
    """One event; `data` is sent as JSON on one line, a string as it is."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    valid = text.translate(_LINE_ENDS).encode("utf-8", "replace").decode("utf-8")
    return format_sse_event(data_str=valid, event=name)


class EventFeed(Generic[T]):
    """The events of a run in order, then its result."""

    def __init__(self, in_flight: InFlight, work: Callable[[Emit], Coroutine[Any, Any, T]]) -> None:
        self._events: asyncio.Queue[RunEvent | None] = asyncio.Queue()
        self._first: list[RunEvent | None] = []
        self._task = in_flight.start(work(lambda name, data: self._events.put_nowait((name, data))))
        self._task.add_done_callback(lambda _: self._events.put_nowait(None))

    async def wait_for_first(self, request: Request) -> None:
        """Return when the first event is there or the run has ended.

        Raises `ClientDisconnect`, and what the run raises before its first event.
        """
        first = asyncio.create_task(self._events.get())
        leaving = asyncio.create_task(client_gone(request.receive))
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
            await cancelled(first, leaving)

    async def events(self) -> AsyncIterator[RunEvent | None]:
        """Each event; None after `HEARTBEAT_S` without one."""
        for first in self._first:
            if first is None:
                return
            yield first
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    following = await self._events.get()
            except TimeoutError:
                yield None
                continue
            if following is None:
                return
            yield following

    def result(self) -> T:
        """The result of the run, after the last event. Raises what the run raised, and `Stopping`."""
        return result_of(self._task)

    async def close(self) -> None:
        """Cancel the run unless it has ended."""
        await cancelled(self._task)


def failure_of(feed: EventFeed[Any]) -> dict[str, Any] | None:
    """The error body of a failed run, None for one that succeeded. Unexpected errors are logged."""
    try:
        feed.result()
    except DtragError as error:
        return error_body(detail_of(error), type(error).__name__)
    except Exception as error:  # noqa: BLE001 - the response has started: the only way to report it is an event
        _LOG.error("a stream failed unexpectedly", exc_info=error)
        return error_body(f"Internal error; the request id is {logs.request_id.get()}", "InternalError")
    return None


class EventStream(EventSourceResponse):
    """Sends the chunks as they come. When the client disconnects or sending fails, `close` is called at once."""

    def __init__(self, chunks: AsyncGenerator[bytes, None], close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        super().__init__(chunks, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._chunks = chunks
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        sending = asyncio.create_task(self.stream_response(send))
        leaving = asyncio.create_task(client_gone(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        except OSError as error:
            raise ClientDisconnect from error
        finally:
            await cancelled(sending, leaving)
            await self._chunks.aclose()
            await self._close()
