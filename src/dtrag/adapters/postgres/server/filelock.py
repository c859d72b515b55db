"""A lock on a file, shared or exclusive, released when its process ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from dtrag.adapters.postgres.server.failures import StartFailure

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
            raise StartFailure(f"{self._path} is locked by a process that is not dtrag.")

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
