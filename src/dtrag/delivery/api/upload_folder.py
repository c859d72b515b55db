"""Where the files of uploads lie while they are read: a folder of each service's own, on the disk of the database.

The service holds a lock on its folder, which goes with the process however that ends. So the next start knows what no
running service needs, and removes it.
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
        """A new folder in `<data_dir>/uploads`; folders there that no running service holds are removed."""
        parent = data_dir / "uploads"
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(parent):  # between its making and its locking a folder belongs to nobody
            for left in parent.iterdir():
                _remove_unless_held(left)
            path = Path(tempfile.mkdtemp(prefix="service-", dir=parent))
            descriptor = os.open(path, os.O_RDONLY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        return cls(path, descriptor)

    def close(self) -> None:
        """Remove the folder, and give it up."""
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


def _remove_unless_held(left: Path) -> None:
    if left.is_symlink() or not left.is_dir():
        left.unlink(missing_ok=True)
        return
    descriptor = os.open(left, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    else:
        shutil.rmtree(left, ignore_errors=True)
    finally:
        os.close(descriptor)
