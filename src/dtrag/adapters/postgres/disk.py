"""Space on the disk of the embedded database: whether more may be written, and a reserve for when it may not.

PostgreSQL ends with a panic when it cannot write its log, and cannot even recover then. So documents are refused while
there is still space (the watermark), and a reserve file is given up when something else fills the disk: the server
writes its log and its checkpoints into that space, and reads go on. The reserve is made again, and writes are taken
again, as soon as there is space.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from pathlib import Path

from dtrag.errors import StorageFull

MIB = 1 << 20
RESERVE_BYTES = 32 * MIB
"""Eight segments of PostgreSQL's log."""
WATERMARK_SHARE = 5
RESERVE_SHARE = 10
"""On a small disk the watermark is at most a fifth of it, and the reserve a tenth."""
_LOG = logging.getLogger(__name__)


class Disk:
    """The disk of one data folder. `min_free_mb` 0 refuses nothing and keeps no reserve."""

    def __init__(self, data_dir: Path, min_free_mb: int) -> None:
        self._data_dir = data_dir
        self._min_free = min_free_mb * MIB
        self._refusing = False

    def look(self) -> None:
        """Give up the reserve or make it again, as the space demands; call it often."""
        if not self._min_free:
            return
        release_reserve(self._data_dir)
        free, total = _space(self._data_dir)
        size = _reserve_size(total)
        reserve = _reserve(self._data_dir)
        if not reserve.exists() and free >= self._watermark(total) + size:
            _make_reserve(reserve, size)
        refusing = self._refusal(0) is not None
        if refusing != self._refusing:
            self._refusing = refusing
            if refusing:
                _LOG.error("the disk is too full: nothing is added until there is space")
            else:
                _LOG.warning("there is space on the disk again: documents are taken")

    def require(self, adding: int = 0) -> None:
        """Raises `StorageFull` when `adding` bytes would leave less space than there must be."""
        refusal = self._refusal(adding)
        if refusal is not None:
            raise refusal

    def require_any(self) -> None:
        """Raises `StorageFull` when not even a line may be written: the server needs the rest for itself."""
        if not self._min_free:
            return
        free, total = _space(self._data_dir)
        if not _reserve(self._data_dir).exists() and free < 2 * _reserve_size(total):
            raise _full(free, self._watermark(total))

    def _refusal(self, adding: int) -> StorageFull | None:
        if not self._min_free:
            return None
        free, total = _space(self._data_dir)
        needed = self._watermark(total) + adding
        if not _reserve(self._data_dir).exists():
            needed += _reserve_size(total)  # it is made first
        return _full(free, needed) if free < needed else None

    def _watermark(self, total: int) -> int:
        return min(self._min_free, total // WATERMARK_SHARE)


def release_reserve(data_dir: Path) -> None:
    """Give up the reserve when the space without it is less than it takes."""
    reserve = _reserve(data_dir)
    free, total = _space(data_dir)
    if free < _reserve_size(total) and reserve.exists():
        reserve.unlink(missing_ok=True)
        _LOG.error("the disk is full: the reserve of %d MiB was given up for the database", _reserve_size(total) // MIB)


def total_bytes(folder: Path) -> int:
    """The size of the folder's disk."""
    return _space(folder)[1]


def _reserve(data_dir: Path) -> Path:
    return data_dir / "reserve"


def _reserve_size(total: int) -> int:
    return min(RESERVE_BYTES, total // RESERVE_SHARE)


def _space(folder: Path) -> tuple[int, int]:
    """Bytes that an ordinary user may still write, and the size of the disk."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize


def _make_reserve(reserve: Path, size: int) -> None:
    """Allocate the file, under another name until it is whole; several processes may do so at once."""
    descriptor, name = tempfile.mkstemp(prefix=".reserve-", dir=reserve.parent)
    try:
        _allocate(descriptor, size)
        Path(name).rename(reserve)
    except OSError as error:
        _LOG.warning("the reserve could not be made", exc_info=error)
    finally:
        os.close(descriptor)
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()


def _allocate(descriptor: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    for _ in range(0, size, MIB):  # macOS; a hole would reserve nothing
        os.write(descriptor, os.urandom(MIB))


def _full(free: int, needed: int) -> StorageFull:
    return StorageFull(free=f"{free // MIB:,} MiB", needed=f"{-(-needed // MIB):,} MiB")
