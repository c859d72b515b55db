"""Middleware of every request: pacing, id and log line, host and origin checks, body limits. Pure ASGI, unbuffered.

From the outside in: `Pacing`, `RequestLog` (which also turns unexpected exceptions into a 500), `Guard`, `BodyLimit`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import socket
import time
import uuid
from collections import deque
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dtrag import logs
from dtrag.delivery.api.connections import ALWAYS_ANSWERED, ConnectionLimits
from dtrag.delivery.api.errors import error_response, protocol_of
from dtrag.delivery.api.origins import PageOrigins, authority_of
from dtrag.delivery.api.prometheus import RequestTelemetry
from dtrag.governance.api_keys import Keys

_LOG = logging.getLogger("dtrag.access")
_PLAIN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
STARTED_PER_PASS = 1
"""Requests started per pass of the event loop. With 8, a thousand concurrent searches start so fast that started ones
hardly progress: only a fifth as many are answered in time."""
_WRITING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_WILDCARDS = frozenset({"0.0.0.0", "::", ""})  # nosec B104  # noqa: S104 - recognised, not bound


class RequestLog:
    """Adds ids and headers to every request, writes its log line and counts it in the metrics.

    `X-Request-ID` identifies the request, `X-Correlation-ID` the operation of the caller. Valid ids of the caller are
    used; otherwise the request id is generated, and is also the default of the correlation id.
    """

    def __init__(self, app: ASGIApp, telemetry: RequestTelemetry) -> None:
        self._app = app
        self._telemetry = telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _plain(scope, "x-request-id") or uuid.uuid4().hex
        correlation_id = _plain(scope, "x-correlation-id") or request_id
        scope.setdefault("state", {})["correlation_id"] = correlation_id
        token = logs.request_id.set(request_id)
        started = time.perf_counter()
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = request_id
                headers["X-Correlation-ID"] = correlation_id
                headers["X-Content-Type-Options"] = "nosniff"
                headers.setdefault("Cache-Control", "no-store")
                headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
            await send(message)

        try:
            with protocol_of(scope):
                await self._app(scope, receive, send_with_headers)
        except ClientDisconnect:
            status = 499  # the client has disconnected
        except Exception as error:
            self._telemetry.unexpected()
            _LOG.error("a request failed unexpectedly", exc_info=error)
            if status:
                raise  # the response has started: closing the connection is the only signal left
            with protocol_of(scope):
                response = error_response(500, f"Internal error; the request id is {request_id}", "InternalError")
            await response(scope, receive, send_with_headers)
        finally:
            seconds = time.perf_counter() - started
            route = getattr(scope.get("route"), "path_format", "(none)")
            self._telemetry.record(scope["method"], route, status, seconds)
            line = {"method": scope["method"], "route": route, "status": status, "ms": round(seconds * 1000, 1)}
            if correlation_id != request_id:
                line["correlation_id"] = correlation_id
            _LOG.info("request", extra=line)
            logs.request_id.reset(token)


def _plain(scope: Scope, header: str) -> str:
    """The id in a header; "" if it is missing or invalid."""
    value = Headers(scope=scope).get(header, "")
    return value if _PLAIN_ID.fullmatch(value) else ""


class Guard:
    """Accepts only this machine's host names, and changes only from pages that `origins` allows.

    A web page can resolve its own host name to 127.0.0.1 (DNS rebinding) or post a form here; both are detected by
    headers that pages cannot set. Programs that send no `Origin` are not affected.
    """

    def __init__(self, app: ASGIApp, host: str, origins: PageOrigins, keys: Callable[[], Keys]) -> None:
        self._app = app
        self._origins = origins
        self._keys = keys
        self._names = set(_LOOPBACK_NAMES) | {host.strip("[]").lower()}
        self._names.update(name for origin in origins.public if (name := host_name(authority_of(origin))) is not None)
        self._any_address = host in _WILDCARDS
        if self._any_address:
            self._names.add(socket.gethostname().lower())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            host = headers.get("host", "")
            if not self._known(host):
                await error_response(400, "The Host header is not a name of this service")(scope, receive, send)
                return
            if scope["method"] in _WRITING and not await self._may_write(scope, headers):
                refusal = "Pages of other origins may not send requests that change or query data"
                await error_response(403, refusal)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _may_write(self, scope: Scope, headers: Headers) -> bool:
        return self._origins.may_write(headers) or await self._origins.is_of_public_key(scope, self._keys)

    def _known(self, host: str) -> bool:
        name = host_name(host)
        if name is None:
            return False
        if name in self._names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or self._any_address


def host_name(host: str) -> str | None:
    """The name in a `Host` header, in lower case, without port and brackets; None if invalid."""
    match = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+))(?::\d{1,5})?", host)
    return (match[1] or match[2]).lower() if match else None


class BodyLimit:
    """Refuses too large bodies with 413, by their declared and by their actual size.

    Too slow bodies are refused with 408. Only the time is counted in which the service waits for the client.
    """

    def __init__(
        self, app: ASGIApp, limit: Callable[[Scope], int], pace: ConnectionLimits = ConnectionLimits()
    ) -> None:
        self._app = app
        self._limit = limit
        self._pace = pace

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limit(scope)
        too_large = f"The body is larger than {limit:,} bytes"
        declared = Headers(scope=scope).get("content-length", "0")
        if not declared.isdecimal():
            await error_response(400, "The Content-Length is not a number")(scope, receive, send)
            return
        if len(declared) > 18 or int(declared) > limit:
            await error_response(413, too_large, headers={"Connection": "close"})(scope, receive, send)
            return
        body = _TimedBody(receive, self._pace)

        async def counted() -> Message:
            message = await body.receive()
            if body.received > limit:
                raise HTTPException(413, too_large, headers={"Connection": "close"})
            return message

        await self._app(scope, counted, send)


class _TimedBody:
    """A body that must arrive as fast as `pace` requires for its size."""

    def __init__(self, receive: Receive, pace: ConnectionLimits) -> None:
        self._receive = receive
        self._pace = pace
        self._waited = 0.0
        self._complete = False
        self.received = 0

    async def receive(self) -> Message:
        """The next message. Raises `HTTPException` if the client is too slow."""
        if self._complete:
            return await self._receive()
        started = time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, self._pace.patience(self.received) - self._waited)):
                message = await self._receive()
        except TimeoutError as error:
            too_slow = f"The body arrives too slowly: {self.received:,} bytes in {self._waited + _since(started):.0f} s"
            raise HTTPException(408, too_slow, headers={"Connection": "close"}) from error
        self._waited += _since(started)
        self.received += len(message.get("body", b""))
        self._complete = message["type"] != "http.request" or not message.get("more_body", False)
        return message


def _since(started: float) -> float:
    return time.monotonic() - started


class Pacing:
    """Starts requests in order of arrival, `STARTED_PER_PASS` in each pass of the event loop.

    Requests that arrive together would start in the same pass of the event loop, and a pass with a thousand requests
    takes seconds in which nothing else is read or answered, not even a liveness check.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._started = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] == "http" and scope["path"] != ALWAYS_ANSWERED:
            await self._turn()
        await self._app(scope, receive, send)

    async def _turn(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._started:
            loop.call_soon(self._next_pass)
        if self._started < STARTED_PER_PASS and not self._waiting:
            self._started += 1
            return
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next_pass(self) -> None:
        self._started = 0
        while self._waiting and self._started < STARTED_PER_PASS:
            turn = self._waiting.popleft()
            if not turn.done():  # its request may have been cancelled
                turn.set_result(None)
                self._started += 1
        if self._started:
            asyncio.get_running_loop().call_soon(self._next_pass)
