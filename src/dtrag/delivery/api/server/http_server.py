"""Uvicorn with its own acceptor: connections are accepted only while the limit allows it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Callable, Iterator

import uvicorn

from dtrag.delivery.api.connections import Connections
from dtrag.delivery.api.server.http_protocol import HttpProtocol
from dtrag.delivery.api.server.owner_socket import OwnerSocket, is_owner

_LOG = logging.getLogger(__name__)

ACCEPTED_AT_ONCE = 32
"""Connections accepted in one pass of the event loop: a thousand at once must not block other requests."""
FULL_S = 0.05
"""Seconds without accepting when the limit is reached."""
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

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections and finish the current responses."""
        for acceptor in self._acceptors:
            acceptor.stop()
        await super().shutdown(sockets)
        for watch in self._watches:
            watch.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)

    def _accept(self, listener: socket.socket, connections: Connections, owner: OwnerSocket | None = None) -> None:
        def protocol() -> HttpProtocol:
            connection = HttpProtocol(self.config, self.server_state, self.lifespan.state, connections)
            if owner is not None:
                connection.app = owner.application(connection.app)
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

    def start(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listener, self._accept)

    def stop(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listener)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            if not self._connections.may_accept():
                self._rest(FULL_S)
                return
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
