"""The socket in the data folder: the routes of the service for the owner of the folder, who can read everything in it.

Its requests have the rights of the local owner over the whole tree, and appear so in the audit log. The commands of the
owner use it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dtrag import __version__
from dtrag.delivery.api.connections import ConnectionLimits, Connections
from dtrag.delivery.api.dependencies import Service
from dtrag.delivery.local_socket import FOLDER, SETTINGS_HEADER, SOCKET, VERSION_HEADER, socket_address
from dtrag.settings import answer_settings

CONNECTIONS = 32
"""Concurrent connections, beside those of other clients: commands work while a flood of requests is refused."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OwnerSocket:
    """The listening socket with the limits of its connections."""

    service: Service
    listener: socket.socket
    connections: Connections

    def application(self, app: ASGIApp) -> ASGIApp:
        """The application for the owner. A request of a command that this service cannot answer gets a 409."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                if reason := _refusal(self.service, Headers(scope=scope)):
                    await JSONResponse({"detail": reason, "type": "Refused"}, 409)(scope, receive, send)
                    return
                scope.setdefault("state", {})["from_owner"] = True
            await app(scope, receive, send)

        return serve


@contextlib.contextmanager
def owner_socket(service: Service) -> Iterator[OwnerSocket | None]:
    """The socket; None if another service holds it or it fails."""
    with contextlib.ExitStack() as stack:
        try:
            listener = stack.enter_context(_listening(service.settings.data_dir))
        except BlockingIOError:
            _LOG.info("another service of this data folder answers commands")
            yield None
            return
        except OSError as error:
            _LOG.warning("commands cannot use this service: its local socket failed", exc_info=error)
            yield None
            return
        limits = ConnectionLimits(most=CONNECTIONS, idle=service.settings.idle_seconds)
        yield OwnerSocket(service, listener, Connections(limits))


def is_owner(accepted: socket.socket) -> bool:
    """Whether the client's process belongs to our user or to root. Without SO_PEERCRED file modes decide alone."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    peer = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", peer)[1] in {os.geteuid(), 0}


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


def _refusal(service: Service, headers: Headers) -> str:
    """Why the service would not answer as the process of the command; "" if it would, or no command asks."""
    if service.stopping or service.opened is None:
        return "it is stopping"
    if headers.get(VERSION_HEADER, __version__) != __version__:
        return f"it is dtrag {__version__}"
    sent = headers.get(SETTINGS_HEADER)
    if sent is None:
        return ""
    try:
        ours, theirs = answer_settings(service.settings), dict(json.loads(sent))
    except (ValueError, TypeError):
        return "it cannot read the settings"
    different = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    return f"it has other settings ({', '.join(different)})" if different else ""
