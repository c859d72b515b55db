"""The sockets of a service: TCP for clients, and one in the data folder for its owner. No engine is imported here."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import ipaddress
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from dtrag.delivery.local_socket import FOLDER, SOCKET, socket_address
from dtrag.errors import CannotListen

BACKLOG = 4_096
"""Clients that may wait to be accepted: more than `connections_at_once`, as the system resets connections beyond it."""
_LOG = logging.getLogger(__name__)


def listen(host: str, port: int) -> socket.socket:
    """A listening TCP socket; port 0 means any free one. Raises `CannotListen`.

    It listens before the database is opened: a port in use is detected at once, and early clients wait in the queue.
    """
    try:
        if not 0 <= port <= 65_535:
            raise OverflowError("a port is a number up to 65535")  # the resolver would take it modulo 65536
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except BaseException:
            listener.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        reason = (
            "it is not a valid host name"
            if isinstance(error, UnicodeError)
            else getattr(error, "strerror", "") or error
        )
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            reason = "another program listens there (perhaps another dtrag)"
        other = port + 1 if 1024 <= port < 65535 else 8001
        raise CannotListen(host=host, port=port, reason=reason, other=other) from error
    listener.setblocking(False)
    return listener


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def address_of(listener: socket.socket) -> str:
    """The address of a TCP socket, such as `http://127.0.0.1:8001`."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextlib.contextmanager
def owner_listener(data_dir: Path) -> Iterator[socket.socket | None]:
    """The socket of the owner, which refuses connections until `listen`; None if another service has it or it fails."""
    with contextlib.ExitStack() as stack:
        listener = None
        try:
            listener = stack.enter_context(_bound(data_dir))
        except BlockingIOError:
            _LOG.info("another service of this data folder answers commands")
        except OSError as error:
            _LOG.warning("commands cannot use this service: its local socket failed", exc_info=error)
        yield listener


@contextlib.contextmanager
def _bound(data_dir: Path) -> Iterator[socket.socket]:
    """The bound socket, protected by a lock file: one service at a time; a killed service's socket is replaced.

    Raises `OSError`, `BlockingIOError` while another service has it.
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
