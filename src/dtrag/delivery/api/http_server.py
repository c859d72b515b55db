"""HTTP/1.1 with limits: connections are accepted only while their number allows it, and idle ones end in time."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import json
import logging
import math
import socket
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from dtrag.delivery.api.connections import (
    ALWAYS_ANSWERED,
    LEAST_IDLE_S,
    ConnectionLimits,
    Connections,
    refusal,
    too_many_connections,
)
from dtrag.delivery.api.owner_socket import OwnerSocket, is_owner


class HttpProtocol(H11Protocol):
    """One connection. It is idle until the head of a request has arrived, and after the response."""

    def __init__(
        self, config: uvicorn.Config, server_state: ServerState, app_state: dict[str, Any], connections: Connections
    ) -> None:
        super().__init__(config, server_state, app_state)
        self._connections = connections
        self._waiting_since = time.monotonic()
        self._head_begun = False
        self._refused = False
        self._has_answered = False
        self._retires = False
        self._sending_until: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        if not self._connections.admit(self):
            self._refused = True
            self.app = _refusing(self.app)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._connections.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        super().data_received(data)
        if self._retires:
            self._announce_close()
        if self.idle_since() is not None:
            self._note_head()

    def retire(self) -> None:
        """Close the connection with the next response that begins, and announce that in it."""
        self._retires = True
        self._announce_close()

    def _announce_close(self) -> None:
        """The response of the current request closes the connection, if it has not begun."""
        busy = self.cycle is not None and not self.cycle.response_started
        if busy and CLOSE_HEADER not in self.cycle.scope["headers"]:
            self.cycle.scope["headers"] = [*self.cycle.scope["headers"], CLOSE_HEADER]

    def shutdown(self) -> None:
        """Close the connection; one whose client has sent a request is closed by its response."""
        if self.idle_since() is not None and self.has_unread():
            self.retire()
        else:
            super().shutdown()

    def on_response_complete(self) -> None:
        """The response is complete; further data belongs to the next request."""
        self._head_begun, self._has_answered = False, True
        self._waiting_since = time.monotonic()
        super().on_response_complete()
        if self._refused:
            self.transport.close()
        elif self.idle_since() is not None:
            self._note_head()

    def _note_head(self) -> None:
        """Record when the head of the next request began to arrive."""
        begun = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
        if begun and not self._head_begun:
            self._waiting_since = time.monotonic()
        self._head_begun = begun

    def idle_since(self) -> float | None:
        """See `TrackedConnection`."""
        busy = self.cycle is not None and not self.cycle.response_complete
        return None if busy or self.transport.is_closing() else self._waiting_since

    def has_unread(self) -> bool:
        """See `TrackedConnection`."""
        return any(fcntl.ioctl(self.transport.get_extra_info("socket"), termios.FIONREAD, bytes(4)))

    def close_idle(self) -> None:
        """See `TrackedConnection`."""
        if self._has_answered:
            self.transport.close()
        else:  # its first request may be on its way
            detail, headers = refusal()
            self.send_failure(503, "Overloaded", detail, headers)

    def enforce(self, now: float, limits: ConnectionLimits) -> None:
        """See `TrackedConnection`."""
        if self.transport.is_closing() or self.flow.write_paused:
            self._enforce_reading(now, limits)
            return
        self._sending_until = None
        since = self.idle_since()
        if since is None or now - since <= self._patience(limits):
            return
        if self.conn.their_state is h11.IDLE and self.has_unread():
            return  # not the client is late, but this process
        if self._head_begun:
            self.send_failure(408, "RequestTimeout", "The head of the request did not come in time.")
        elif self.conn.their_state is h11.SEND_BODY:
            self.transport.abort()  # the response did not wait for the body, which the client still sends
        else:
            self.transport.close()

    def _patience(self, limits: ConnectionLimits) -> float:
        """Maximum seconds in the current state without a request."""
        if self._refused:
            return LEAST_IDLE_S
        between_requests = self.cycle is not None and self.conn.their_state is h11.IDLE and not self._head_begun
        return limits.idle if between_requests else limits.head

    def _enforce_reading(self, now: float, limits: ConnectionLimits) -> None:
        """Close the connection if its client does not read the response in time."""
        if self._sending_until is None:
            self._sending_until = now + limits.patience(self.transport.get_write_buffer_size())
        elif now > self._sending_until:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Respond to invalid HTTP."""
        self.send_failure(400, "BadRequest", msg)

    def send_failure(self, status: int, kind: str, detail: str, more: Mapping[str, str] | None = None) -> None:
        """Send an error outside of a request, therefore without an id, and close the connection."""
        body = json.dumps({"detail": detail, "type": kind, "request_id": None}).encode()
        headers = {"Content-Type": "application/json", "Connection": "close", "Content-Length": str(len(body))}
        headers |= more or {}
        try:
            for event in (
                h11.Response(status_code=status, headers=list(headers.items())),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:
            pass  # a response has begun already: only closing is possible
        self.transport.close()


def _refusing(app: ASGIApp) -> ASGIApp:
    """The application of a refused connection: only the liveness route is answered."""

    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        await (app if scope["path"] == ALWAYS_ANSWERED else too_many_connections)(scope, receive, send)

    return refuse


_LOG = logging.getLogger(__name__)

ACCEPTED_AT_ONCE = 32
"""Connections accepted in one pass of the event loop: a thousand at once must not block other requests."""
FULL_S = 0.05
"""Seconds without accepting when the limit is reached."""
YIELD_S = 0.005
"""Seconds in which another process with fewer connections may accept a new one first."""
EXHAUSTED_S = 1.0
"""Seconds without accepting when the system has no descriptors or no memory left."""
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class HttpServer(uvicorn.Server):
    """Serves listening sockets until `should_exit`, within the limits of `connections`, and the socket of the owner.

    It does not handle signals: uvicorn would end the process with the signal instead of an exit code.
    """

    def __init__(self, config: uvicorn.Config, connections: Connections, on_listening: Callable[[], None]) -> None:
        super().__init__(config)
        self.owner: OwnerSocket | None = None
        """The socket in the data folder, if it is set before `serve`."""
        self._connections = connections
        self._on_listening = on_listening
        self._retires = False
        self._acceptors: list[_Acceptor] = []
        self._watches: list[asyncio.Task[None]] = []

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do not install uvicorn's signal handlers."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections, then report it."""
        await super().startup([])
        for listener in sockets or []:
            self._accept(listener, self._connections)
        if self.owner is not None:
            self._accept(self.owner.listener, self.owner.connections, self.owner)
        self._on_listening()

    def retire(self) -> None:
        """Accept no more connections, and close each after its next response: other processes take new ones."""
        self._retires = True
        self._stop_accepting()
        for connection in list(self.server_state.connections):
            assert isinstance(connection, HttpProtocol)  # noqa: S101 - made below
            connection.retire()

    def _stop_accepting(self) -> None:
        for acceptor in self._acceptors:
            acceptor.stop()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections and finish the current responses."""
        self._stop_accepting()
        await super().shutdown(sockets)
        for watch in self._watches:
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)

    def _accept(self, listener: socket.socket, connections: Connections, owner: OwnerSocket | None = None) -> None:
        def protocol() -> HttpProtocol:
            connection = HttpProtocol(self.config, self.server_state, self.lifespan.state, connections)
            if owner is not None:
                connection.app = owner.application(connection.app)
            if self._retires:
                connection.retire()
            return connection

        acceptor = _Acceptor(listener, protocol, connections)
        acceptor.start()
        self._acceptors.append(acceptor)
        self._watches.append(asyncio.create_task(connections.watch()))


class _Acceptor:
    """Accepts connections from one listening socket.

    asyncio's own server accepts up to its whole backlog at once, without regard to open connections, and logs endless
    errors when the descriptors are used up.
    """

    def __init__(self, listener: socket.socket, protocol: Callable[[], HttpProtocol], connections: Connections) -> None:
        self._listener = listener
        self._protocol = protocol
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._opening: set[asyncio.Task[None]] = set()
        self._yielded_until = -math.inf

    def start(self) -> None:
        self._pause = None
        self._connections.accepts(True)
        self._loop.add_reader(self._listener, self._accept)

    def stop(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listener)
        self._connections.accepts(False)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            if not self._connections.may_accept():
                self._rest(FULL_S)
                return
            if self._connections.others_have_fewer() and time.monotonic() > self._yielded_until:
                self._yielded_until = time.monotonic() + 10 * YIELD_S
                self._rest(YIELD_S)
                return
            self._yielded_until = -math.inf  # the next connection is another process's again
            try:
                accepted, _address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                _LOG.error("no connection can be accepted: %s", error.strerror)
                self._rest(EXHAUSTED_S)
                return
            if accepted.family == socket.AF_UNIX and not is_owner(accepted):
                accepted.close()
                continue
            self._connections.opening(1)
            task = self._loop.create_task(self._open(accepted))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    def _rest(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._pause = self._loop.call_later(seconds, self.start)

    async def _open(self, accepted: socket.socket) -> None:
        """Create the protocol of the connection."""
        try:
            accepted.setblocking(False)
            await self._loop.connect_accepted_socket(self._protocol, accepted)
        except OSError as error:
            accepted.close()
            _LOG.warning("a connection failed before it was used: %s", error.strerror)
        finally:
            self._connections.opening(-1)
