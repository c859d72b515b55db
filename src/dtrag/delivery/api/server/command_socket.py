"""The service's side of the socket in the data folder, which commands of the folder's owner use.

A process that can open the socket belongs to the owner of the data folder, who can read everything in it. Its requests
have the rights of the local owner over the whole tree, and appear so in the audit log.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import socket
import struct
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypedDict

from dtrag import __version__
from dtrag.core.access.api_key import LOCAL
from dtrag.core.access.scope import scope_rows
from dtrag.delivery.api.dependencies import Service
from dtrag.delivery.api.request_tasks import cancelled, result_of
from dtrag.delivery.local.operations import OPERATIONS
from dtrag.delivery.local.results import ReadingResult, document_ids, to_json
from dtrag.delivery.local.socket import FOLDER, PROTOCOL, REQUEST_BYTES, SOCKET, socket_address
from dtrag.errors import DtragError, InvalidInput
from dtrag.settings import answer_settings

HELLO_S = 5.0
"""Maximum wait for each of the client's two messages, in seconds."""
CONNECTIONS = 32
"""Concurrent connections: further ones are closed at once, and their commands work in their own process."""

_LOG = logging.getLogger(__name__)


class Hello(TypedDict):
    """The client's first message."""

    protocol: int
    version: str
    settings: dict[str, str]


class Request(TypedDict):
    """The client's second message."""

    operation: str
    arguments: dict[str, object]


@asynccontextmanager
async def local_socket(service: Service) -> AsyncIterator[None]:
    """Serve commands while the block runs; without the socket if another service holds it or it fails."""
    handler = _Handler(service)
    async with contextlib.AsyncExitStack() as stack:
        try:
            listener = stack.enter_context(_listening(service.settings.data_dir))
            server = await asyncio.start_unix_server(handler.connected, sock=listener, limit=REQUEST_BYTES)
        except BlockingIOError:
            _LOG.info("another service of this data folder answers commands")
        except OSError as error:
            _LOG.warning("commands cannot use this service: its local socket failed", exc_info=error)
        else:
            stack.callback(server.close)
        try:
            yield
        finally:
            await handler.close()


@contextlib.contextmanager
def _listening(data_dir: Path) -> Iterator[socket.socket]:
    """The listening socket, protected by a lock file: one service at a time; a killed service's socket is replaced.

    Raises `OSError`, `BlockingIOError` while another service listens.
    """
    folder = data_dir / FOLDER
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)  # a database elsewhere makes none
    folder.mkdir(mode=0o700, exist_ok=True)
    _make_private(folder)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            (folder / SOCKET).unlink(missing_ok=True)
            with socket_address(data_dir) as address:
                listener.bind(address)  # no other user can enter the folder between this and the next line
            (folder / SOCKET).chmod(0o600)
            listener.listen(CONNECTIONS)
            listener.setblocking(False)
            try:
                yield listener
            finally:
                with contextlib.suppress(OSError):  # on a disk that became read-only the next service replaces it
                    (folder / SOCKET).unlink(missing_ok=True)
    finally:
        os.close(lock)


def _make_private(folder: Path) -> None:
    """Make the folder private. Raises `OSError` if it belongs to another user or is a link."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(f"{folder} belongs to another user")
        os.fchmod(descriptor, 0o700)
    finally:
        os.close(descriptor)


class _Handler:
    """Serves connections, one operation each."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._connections: set[asyncio.Task[Any]] = set()
        self._working: set[asyncio.Task[Any]] = set()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - asyncio runs this as a task
        self._connections.add(task)
        try:
            if len(self._connections) <= CONNECTIONS and _is_owner(writer):
                await self._serve(task, reader, writer)
        except (OSError, ValueError, KeyError, TypeError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            _LOG.debug("a local connection ended early")  # the client left, or is not a dtrag
        except asyncio.CancelledError:
            pass  # by `close`
        finally:
            self._connections.discard(task)
            self._working.discard(task)
            writer.close()

    async def close(self) -> None:
        """Close idle connections at once, the others when their operation has ended."""
        idle = self._connections - self._working
        for task in idle:
            task.cancel()
        if self._working:
            await asyncio.wait(self._working, timeout=self._service.settings.stop_seconds)
        await cancelled(*self._connections)

    async def _serve(self, task: asyncio.Task[Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello: Hello = await _message(reader)
        reason = self._refusal(hello)
        if reason:
            await _send(writer, {"refused": reason})
            return
        await _send(writer, {"ready": True})
        request: Request = await _message(reader)
        self._working.add(task)
        reply = await self._reply(reader, request["operation"], request["arguments"])
        if reply is not None:
            await _send(writer, reply)

    def _refusal(self, hello: Hello) -> str:
        """Why the client cannot use this service; "" if it can."""
        if self._service.stopping or self._service.opened is None:
            return "it is stopping"
        if hello["protocol"] != PROTOCOL or hello["version"] != __version__:
            return f"it is dtrag {__version__}"
        ours, theirs = answer_settings(self._service.settings), hello["settings"]
        different = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
        return f"it has other settings ({', '.join(different)})" if different else ""

    async def _reply(
        self, reader: asyncio.StreamReader, name: str, arguments: Mapping[str, object]
    ) -> Mapping[str, object] | None:
        """The result or the error; None when the client has disconnected."""
        started = time.perf_counter()
        work = self._service.in_flight.start(self._admitted(name, arguments))
        leaving = asyncio.create_task(reader.read(1))
        try:
            await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                return None
            result = result_of(work)
            await self._service.app.audit.note(
                LOCAL.name,
                f"cli {name}",
                scope=scope_rows(LOCAL.access),
                subjects=document_ids(result),
                decision="allowed",
                details={"local_socket": True},
            )
        except DtragError as error:
            return {"error": {"type": type(error).__name__, "message": str(error)}}
        finally:
            await cancelled(work, leaving)
            _LOG.info("local command", extra={"operation": name, "ms": round((time.perf_counter() - started) * 1e3, 1)})
        return {"result": to_json(result)}

    async def _admitted(self, name: str, arguments: Mapping[str, object]) -> ReadingResult:
        """The result of an operation, under the same limits as HTTP requests. Raises `Overloaded`."""
        app = self._service.app
        if name == "search":  # the pipeline limits questions itself
            async with app.run.admission.search():
                return await OPERATIONS[name](app, **arguments)
        return await OPERATIONS[name](app, **arguments)


def _is_owner(writer: asyncio.StreamWriter) -> bool:
    """Whether the client's process belongs to our user or to root. Without SO_PEERCRED file modes decide alone."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    peer = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", peer)[1] in {os.geteuid(), 0}


async def _message(reader: asyncio.StreamReader) -> Any:
    """The next message. Raises `OSError` (also after a time-out), `ValueError` and `IncompleteReadError`."""
    async with asyncio.timeout(HELLO_S):
        line = await reader.readuntil()
    message = json.loads(line)
    if not isinstance(message, dict):
        raise InvalidInput("A message is a JSON object.")
    return message


async def _send(writer: asyncio.StreamWriter, message: Mapping[str, object]) -> None:
    writer.write(json.dumps(message, default=str).encode() + b"\n")
    async with asyncio.timeout(HELLO_S):
        await writer.drain()
