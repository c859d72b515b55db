"""Uvicorn with sockets of our own: connections are taken only while there is a place for them."""

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

_LOG = logging.getLogger(__name__)

ACCEPTED_AT_ONCE = 32
"""Connections taken from a socket before anything else is done: a thousand at once must not hold up the others."""
FULL_S = 0.05
"""So long no connection is taken when there is no place."""
EXHAUSTED_S = 1.0
"""So long no connection is taken when the system has no descriptors or no memory for it."""
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class HttpServer(uvicorn.Server):
    """Serves listening sockets until `should_exit`, within the limits of `connections`.

    It leaves signals alone: uvicorn's handling ends the process with the signal instead of a status.
    """

    def __init__(self, config: uvicorn.Config, connections: Connections, on_listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._connections = connections
        self._on_listening = on_listening
        self._acceptors: list[_Acceptor] = []
        self._watch: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are ours."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to answer, then say so."""
        await super().startup([])
        self._watch = asyncio.create_task(self._connections.watch())
        for listener in sockets or []:
            acceptor = _Acceptor(listener, self._protocol, self._connections)
            acceptor.start()
            self._acceptors.append(acceptor)
        self._on_listening()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, and finish what is being answered."""
        for acceptor in self._acceptors:
            acceptor.stop()
        await super().shutdown(sockets)
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)

    def _protocol(self) -> HttpProtocol:
        return HttpProtocol(self.config, self.server_state, self.lifespan.state, self._connections)


class _Acceptor:
    """Takes connections from one listening socket.

    asyncio's own server takes up to its whole backlog in one go, whatever is open already, and writes a line for each
    that fails, for ever, once the descriptors are used up.
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
                _LOG.error("no connection can be taken: %s", error.strerror)
                self._rest(EXHAUSTED_S)
                return
            self._connections.opening(1)
            task = self._loop.create_task(self._open(accepted))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    def _rest(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._pause = self._loop.call_later(seconds, self.start)

    async def _open(self, accepted: socket.socket) -> None:
        """Hand the connection to a protocol of its own."""
        try:
            accepted.setblocking(False)
            await self._loop.connect_accepted_socket(self._protocol, accepted)
        except OSError as error:
            accepted.close()
            _LOG.warning("a connection failed before it was used: %s", error.strerror)
        finally:
            self._connections.opening(-1)
