"""A private folder per service for the files of uploads while they are indexed, on the disk of the database.

The service locks its folder; the lock ends with the process. The next start removes folders without a lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


class UploadFolder:
    """`path` is private to this service until `close`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def open(cls, data_dir: Path) -> UploadFolder:
        """A new folder in `<data_dir>/uploads`; folders there that no running service has locked are removed."""
        parent = data_dir / "uploads"
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(parent):  # a new folder is not locked at first
            for entry in parent.iterdir():
                _remove_unless_locked(entry)
            path = Path(tempfile.mkdtemp(prefix="service-", dir=parent))
            descriptor = os.open(path, os.O_RDONLY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        return cls(path, descriptor)

    def close(self) -> None:
        """Remove the folder and release its lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._descriptor)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _remove_unless_locked(entry: Path) -> None:
    if entry.is_symlink() or not entry.is_dir():
        entry.unlink(missing_ok=True)
        return
    descriptor = os.open(entry, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    else:
        shutil.rmtree(entry, ignore_errors=True)
    finally:
        os.close(descriptor)
