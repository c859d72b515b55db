"""The socket in the data folder: the routes of the service for the owner of the folder, who can read everything in it.

Its requests have the rights of the local owner over the whole tree, and appear so in the audit log, unless they carry a
key. The commands of the owner use it.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dtrag import __version__
from dtrag.delivery.api.connections import OWNER, ConnectionLimits, Connections
from dtrag.delivery.api.dependencies import Service
from dtrag.delivery.listening import owner_listener
from dtrag.delivery.local_socket import SETTINGS_HEADER, VERSION_HEADER
from dtrag.settings import answer_settings

CONNECTIONS = 32
"""Concurrent connections, beside those of other clients: commands work while a flood of requests is refused."""


@dataclass(frozen=True, slots=True)
class OwnerSocket:
    """The listening socket with the limits of its connections."""

    service: Service
    listener: socket.socket
    connections: Connections

    def application(self, app: ASGIApp) -> ASGIApp:
        """The application for the owner. A request of a command that this service cannot answer gets a 409."""

        owned = of_owner(app)

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and (reason := _refusal(self.service, Headers(scope=scope))):
                await JSONResponse({"detail": reason, "type": "Refused"}, 409)(scope, receive, send)
                return
            await owned(scope, receive, send)

        return serve


def of_owner(app: ASGIApp) -> ASGIApp:
    """The application for requests of the owner of the data folder."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope.setdefault("state", {})["from_owner"] = True
        await app(scope, receive, send)

    return serve


@contextlib.contextmanager
def owner_socket(service: Service) -> Iterator[OwnerSocket | None]:
    """The socket; None if another service holds it or it fails."""
    with owner_listener(service.settings.data_dir) as listener:
        yield owner_socket_on(service, listener)


def owner_socket_on(service: Service, listener: socket.socket | None) -> OwnerSocket | None:
    """The socket of the owner, from now on with clients; None without a listener."""
    if listener is None:
        return None
    listener.listen(CONNECTIONS)
    limits = ConnectionLimits(most=CONNECTIONS, idle=service.settings.idle_seconds)
    return OwnerSocket(service, listener, Connections(limits, service.counts, OWNER))


def is_owner(accepted: socket.socket) -> bool:
    """Whether the client's process belongs to our user or to root. Without SO_PEERCRED file modes decide alone."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    peer = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", peer)[1] in {os.geteuid(), 0}


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
