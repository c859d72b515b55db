"""The embedded PostgreSQL of a data folder: started by the first who attaches, stopped by the last who leaves.

    <data_dir>/                  0700 when made here; the mode of a folder that was there stays as it is
      postgres/                  the cluster, 0700, owned by the user the server runs as; its socket lies inside
      server.log, server.log.1   the log of the server
      start.lock, users.lock     who may start or stop, who is attached

Both locks belong to open files, not to processes' good will: a killed process loses its own, the server goes on, and
the next one to open attaches. `users.lock` is held shared by every attachment; a process that
detaches and then gets the lock exclusively was the last. Starts and stops happen under `start.lock`, one at a time.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from dtrag.adapters.postgres.disk import release_reserve
from dtrag.adapters.postgres.server import cluster as clusters
from dtrag.adapters.postgres.server import process
from dtrag.adapters.postgres.server.programs import (
    Account,
    StartFailure,
    explain_os_error,
    server_account,
    system_user,
    usable_binaries,
)
from dtrag.errors import DatabaseStartFailed, InUse

_LOG = logging.getLogger(__name__)
# sockaddr_un holds 108 bytes on Linux and 104 elsewhere, the terminating zero included.
_SOCKET_BYTES = 107 if sys.platform.startswith("linux") else 103


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where the roles connect."""

    socket_dir: Path
    port: int
    data_dir: Path

    def conninfo(self, role: str, database: str) -> str:
        """A libpq keyword string: `host='...' port=5432 user='dtrag_owner' dbname='dtrag'`."""
        return f"host={_quoted(str(self.socket_dir))} port={self.port} user={_quoted(role)} dbname={_quoted(database)}"


@dataclass(frozen=True, slots=True)
class DataFolderStatus:
    """What `dtrag doctor` shows of a data folder; nothing is started or created to find out."""

    initialised: bool
    version: str | None
    """Major version that made the cluster."""
    pid: int | None
    """The running server's process."""
    socket_dir: Path | None
    size_bytes: int
    """Space the cluster takes on disk."""


class EmbeddedServer:
    """An attachment to the embedded server of one data folder; the last attachment to leave stops it."""

    address: ServerAddress

    def __init__(self, address: ServerAddress, start_lock: FileLock, users_lock: FileLock) -> None:
        self.address = address
        self._start_lock = start_lock
        self._users_lock: FileLock | None = users_lock
        self._watch = process.StuckWatch(address.data_dir / "postgres")

    @classmethod
    def open(cls, data_dir: Path) -> EmbeddedServer:
        """Makes the cluster if there is none, starts or attaches; blocks until it answers. `DatabaseStartFailed`."""
        data_dir = Path(os.path.abspath(data_dir))  # noqa: PTH100 - `resolve` would follow the caller's links
        try:
            account = server_account()
            _make_data_dir(account, data_dir)
            start_lock, users_lock = FileLock(data_dir / "start.lock"), FileLock(data_dir / "users.lock")
            with start_lock.held():
                try:
                    users_lock.share()
                    address = _start_or_attach(account, data_dir)
                except BaseException:
                    # Also on Ctrl-C: release the lock, and stop a server without users.
                    _leave(users_lock, data_dir / "postgres")
                    raise
        except StartFailure as failure:
            raise DatabaseStartFailed(data_dir=data_dir, reason=str(failure)) from failure
        except OSError as error:
            raise DatabaseStartFailed(data_dir=data_dir, reason=explain_os_error(error, data_dir)) from error
        return cls(address, start_lock, users_lock)

    def is_alive(self) -> bool:
        """Whether the server's process is there: a cheap look."""
        return process.looks_alive(self.address.data_dir / "postgres")

    def stuck_process(self) -> int | None:
        """The process of a server that lives but is stuck (`process.StuckWatch`); call it often."""
        return self._watch.look()

    def revive(self, stuck: int | None = None) -> bool:
        """Whether the server answers; launches it when it is dead. Returns soon: call it again while it is False.

        The server with the process `stuck` is ended first. Several processes may call it at the same time: one of them
        launches, under `start.lock`, and the others see its server. Raises `DatabaseStartFailed`.
        """
        data_dir = self.address.data_dir
        cluster = data_dir / "postgres"
        try:
            if process.is_ready(cluster):
                self.address = _address(cluster, data_dir)
                return True
            with self._start_lock.held_if_free() as held:
                if held and stuck is not None:
                    process.kill(cluster, stuck)
                if held and not process.looks_alive(cluster):
                    _restart(data_dir)
        except StartFailure as failure:
            raise DatabaseStartFailed(data_dir=data_dir, reason=str(failure)) from failure
        except OSError as error:
            raise DatabaseStartFailed(data_dir=data_dir, reason=explain_os_error(error, data_dir)) from error
        return False

    def claim(self) -> None:
        """Be the only attachment until `close`: others are refused. Raises `InUse` when there is another one."""
        if self._users_lock is None:
            return
        with self._start_lock.held():
            if not self._users_lock.try_exclusive():
                self._users_lock.share()  # a failed change of the lock has released it
                raise InUse(data_dir=self.address.data_dir)

    def close(self) -> None:
        """Detach; stop the server when no other process is attached. Idempotent."""
        users_lock, self._users_lock = self._users_lock, None
        if users_lock is None:
            return
        try:
            with self._start_lock.held():
                _leave(users_lock, self.address.data_dir / "postgres")
        finally:
            users_lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


UPGRADE = "upgrade"
"""The folder in a data folder, itself a data folder, where a cluster is made from that of an earlier PostgreSQL."""


@contextlib.contextmanager
def earlier_server(data_dir: Path, major: int) -> Iterator[ServerAddress]:
    """The server of a cluster that an earlier PostgreSQL made, run by its own programs while the block runs.

    Other processes wait until then. What an interrupted upgrade left is removed. Raises `DatabaseStartFailed`, `InUse`.
    """
    data_dir = Path(os.path.abspath(data_dir))  # noqa: PTH100 - as in `open`
    cluster, made = data_dir / "postgres", data_dir / UPGRADE
    start_lock, users_lock = FileLock(data_dir / "start.lock"), FileLock(data_dir / "users.lock")
    try:
        account = server_account()
        with start_lock.held():
            if not users_lock.try_exclusive():
                raise InUse(data_dir=data_dir)
            process.stop(made / "postgres")
            shutil.rmtree(made, ignore_errors=True)
            binaries = usable_binaries(account, data_dir, major)
            socket_dir = _make_socket_dir(account, cluster)
            try:
                process.start(binaries, account, cluster, socket_dir, data_dir / "server.log")
                yield _address(cluster, data_dir)
            finally:
                process.stop(cluster)
                process.remove_socket_dir(cluster, socket_dir)
    except StartFailure as failure:
        raise DatabaseStartFailed(data_dir=data_dir, reason=str(failure)) from failure
    except OSError as error:
        raise DatabaseStartFailed(data_dir=data_dir, reason=explain_os_error(error, data_dir)) from error
    finally:
        users_lock.release()


def exchange_upgraded(data_dir: Path, major: int) -> Path:
    """Put the new cluster in place of that of the earlier version; returns where the earlier one is now.

    A process that opens the folder between the two renames completes the second one.
    """
    earlier = data_dir / f"postgres-{major}"
    with FileLock(data_dir / "start.lock").held():
        (data_dir / UPGRADE / clusters.COMPLETE).touch()
        (data_dir / "postgres").rename(earlier)
        clusters.finish_upgrade(data_dir / UPGRADE, data_dir / "postgres")
    return earlier


def status(data_dir: Path) -> DataFolderStatus:
    """The state of the embedded server in `data_dir`. Raises `DatabaseStartFailed` if the folder cannot be read."""
    data_dir = Path(os.path.abspath(data_dir))  # noqa: PTH100 - as in `open`
    cluster = data_dir / "postgres"
    try:
        version = clusters.read_version(cluster)
        told = process.read_pid_file(cluster) if version is not None else None
        pid = process.running_pid(cluster) if version is not None else None
        return DataFolderStatus(
            initialised=version is not None,
            version=version,
            pid=pid,
            socket_dir=_socket_dir(cluster, told) if told is not None and pid is not None else None,
            size_bytes=_disk_usage(cluster) if version is not None else 0,
        )
    except OSError as error:
        raise DatabaseStartFailed(data_dir=data_dir, reason=explain_os_error(error, data_dir)) from error


def _start_or_attach(account: Account, data_dir: Path) -> ServerAddress:
    cluster, log = data_dir / "postgres", data_dir / "server.log"
    clusters.finish_upgrade(data_dir / UPGRADE, cluster)
    if cluster.exists():
        clusters.check(account, cluster)
        if process.wait_attachable(cluster, log):
            return _address(cluster, data_dir)
    release_reserve(data_dir)
    binaries = usable_binaries(account, data_dir)
    if not cluster.exists():
        clusters.initialise(binaries, account, data_dir, cluster)
    clusters.write_settings(account, cluster)
    socket_dir = _make_socket_dir(account, cluster)
    try:
        process.start(binaries, account, cluster, socket_dir, log)
    except BaseException:
        process.stop(cluster)
        process.remove_socket_dir(cluster, socket_dir)
        raise
    return _address(cluster, data_dir)


def _restart(data_dir: Path) -> None:
    cluster, account = data_dir / "postgres", server_account()
    clusters.check(account, cluster)
    release_reserve(data_dir)
    binaries = usable_binaries(account, data_dir)
    clusters.write_settings(account, cluster)
    process.clear_stale(cluster)
    process.restart(binaries, account, cluster, _make_socket_dir(account, cluster), data_dir / "server.log")


def _address(cluster: Path, data_dir: Path) -> ServerAddress:
    told = process.read_pid_file(cluster)
    if told is None:
        raise StartFailure("the server stopped as soon as it had started; run the command again.")
    return ServerAddress(socket_dir=_socket_dir(cluster, told), port=process.PORT, data_dir=data_dir)


def _socket_dir(cluster: Path, told: process.PidFile) -> Path:
    return cluster / told.socket_dir  # a relative one is relative to the cluster, an absolute one stands alone


def _leave(users_lock: FileLock, cluster: Path) -> None:
    """Release the share; under `start.lock`, so that no process starts or attaches between the check and the stop."""
    users_lock.release_share()
    try:
        if users_lock.try_exclusive() and cluster.exists() and not process.stop(cluster):
            _LOG.warning("the embedded server does not stop; it goes on until its work is done")
    finally:
        users_lock.release()


def _make_data_dir(account: Account, data_dir: Path) -> None:
    data_dir.parent.mkdir(parents=True, exist_ok=True)
    try:
        data_dir.mkdir(mode=0o700)
    except FileExistsError:
        if not data_dir.is_dir():
            raise StartFailure("it is a file, not a folder; choose another one with DTRAG_DATA_DIR.") from None
    owner = data_dir.stat().st_uid
    system = system_user() if account.switched else None
    if owner != os.geteuid() and (system is None or owner != system.pw_uid):
        raise StartFailure(
            f"the folder belongs to user id {owner}, but dtrag runs as user id {os.geteuid()}; "
            "run it as the owner, or choose another folder with DTRAG_DATA_DIR."
        )


def _make_socket_dir(account: Account, cluster: Path) -> str:
    """`.` (the cluster itself) where its path is short enough for a socket, else a private folder of its own."""
    path = os.fsencode(cluster / f".s.PGSQL.{process.PORT}")
    if len(path) <= _SOCKET_BYTES and b"," not in path:  # libpq reads a comma as the end of a host
        return "."
    # Not the configured folder for temporary files: that one may be long as well, or closed to the system user.
    folder = Path(tempfile.mkdtemp(prefix="dtrag-", dir="/tmp"))  # nosec B108
    account.give(folder)
    return str(folder)


def _disk_usage(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(parent) / name).lstat().st_blocks * 512
            except FileNotFoundError:  # removed by the running server meanwhile
                continue
    return total


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


_POLL_S = 0.01
# Covers another process's start with a long recovery, or stop with a long checkpoint.
_PATIENCE_S = 3_600.0


class FileLock:
    """`flock` on a file that is opened at need: two objects exclude each other in one process as well as in two.

    The descriptor is closed on exec (Python's default), so that no server and no child inherits the lock.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Holds the lock exclusively; waits for it, and can be interrupted while waiting."""
        deadline = time.monotonic() + _PATIENCE_S
        try:
            while not self._try(fcntl.LOCK_EX):
                if time.monotonic() > deadline:
                    raise StartFailure(f"another process has been starting or stopping it for too long ({self._path}).")
                time.sleep(_POLL_S)
            yield
        finally:
            self.release()

    @contextlib.contextmanager
    def held_if_free(self) -> Iterator[bool]:
        """Take the lock exclusively if it is free; whether it was."""
        try:
            yield self._try(fcntl.LOCK_EX)
        finally:
            self.release()

    def share(self) -> None:
        """Take a share. The caller ensures that no process holds the lock exclusively."""
        if not self._try(fcntl.LOCK_SH):
            raise StartFailure(
                f"another process restores a backup into it ({self._path} is locked); wait until it ends."
            )

    def try_exclusive(self) -> bool:
        """Take the lock exclusively if no other process has a share."""
        return self._try(fcntl.LOCK_EX)

    def release_share(self) -> None:
        """Gives the share back, also the one of a copy of the descriptor in a forked child."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def release(self) -> None:
        """Gives back whatever is held and closes the file."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def _try(self, operation: int) -> bool:
        if self._descriptor is None:
            # For reading only: an existing file is then locked on a read-only disk as well.
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._descriptor, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
