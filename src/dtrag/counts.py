"""Numbers by name that one process counts alone, or several processes count together in a file that all have mapped.

Each process has a seat: its own cells of each row, which it alone writes, so that counting takes no lock. A sum reads
the cells of all seats, also those of processes that have ended. Common cells are the same for all processes, which
read and write them under `lock`.
"""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
import struct
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType

CURRENT = "~"
"""Rows with this prefix hold what a process does now: they are cleared when it ends."""
SEPARATOR = "\x1f"
_BYTES, _BYTES_PER_SEAT = 5 << 19, 1 << 19
"""Size of the file, of which only used pages take memory: the tables of three rate limits are 1.5 MiB, a report 256 kB,
the metrics of a service about 100 kB, and 150 kB more for each seat."""
_HEAD = struct.Struct("=q16s")
_ROW = struct.Struct("=II")
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of one name: `own` are those of this process, `seats` those of each."""

    own: memoryview[float]
    seats: Sequence[memoryview[float]]

    def total(self, cell: int = 0) -> float:
        """The sum of one cell over all seats."""
        return float(sum(cells[cell] for cells in self.seats))

    def totals(self) -> list[float]:
        """The sum of each cell over all seats."""
        return [float(sum(column)) for column in zip(*self.seats, strict=True)]


class CountsLock:
    """Excludes other threads, and other processes that have mapped the file. A killed process releases it."""

    def __init__(self, file: int | None) -> None:
        self._file = file
        self._threads = threading.Lock()

    def __enter__(self) -> None:
        self._threads.acquire()
        if self._file is not None:
            fcntl.lockf(self._file, fcntl.LOCK_EX)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            fcntl.lockf(self._file, fcntl.LOCK_UN)
        self._threads.release()


class Counts:
    """Cells by name, all 0 at first. `file`: the descriptor of a file that `seats` processes share; None: private."""

    def __init__(self, file: int | None = None, *, seats: int = 1, seat: int = 0) -> None:
        size = _BYTES + seats * _BYTES_PER_SEAT
        if file is not None and os.fstat(file).st_size < size:
            os.ftruncate(file, size)
        self._map = mmap.mmap(-1 if file is None else file, size)
        self._seats, self._seat = seats, seat
        self.lock = CountsLock(file)
        self._cells: dict[str, memoryview[float]] = {}
        self._rows: dict[tuple[str, int], Row] = {}
        self._full = False
        self._read_to = _aligned(_HEAD.size)
        with self.lock:
            used, self.secret = _HEAD.unpack_from(self._map)
            if not used:
                self.secret = os.urandom(16)
                _HEAD.pack_into(self._map, 0, self._read_to, self.secret)

    @property
    def shared(self) -> bool:
        """Whether other processes may have seats."""
        return self._seats > 1

    def row(self, *names: str, width: int = 1) -> Row:
        """The row with these names and this width, which is added if it is new."""
        name = SEPARATOR.join(names)
        row = self._rows.get((name, width))
        if row is None:
            row = self._rows[name, width] = self._row_of(self.common(name, width=width * self._seats))
        return row

    def common(self, name: str, *, width: int) -> memoryview[float]:
        """The common cells of this name and width (float64), which are added if they are new."""
        name = f"{name}{SEPARATOR}{width}"  # a worker of another version may use the name for more or fewer
        cells = self._cells.get(name)
        if cells is None:
            with self.lock:
                self._read()
                if name not in self._cells:
                    self._add(name, width)
                cells = self._cells[name]
        return cells

    def rows(self, first: str, *, width: int = 1) -> Iterator[tuple[list[str], Row]]:
        """The rows of this first name and width, with their other names; also those that other processes have added."""
        with self.lock:
            self._read()
        for name in list(self._cells):
            head, *others, cells = name.split(SEPARATOR)
            if head == first and int(cells) == width * self._seats:
                yield others, self._row_of(self._cells[name])

    def vacate(self, seat: int) -> None:
        """Clear what the ended process of this seat was doing."""
        with self.lock:
            self._read()
        for name, cells in self._cells.items():
            if name.startswith(CURRENT):
                own = self._row_of(cells).seats[seat]
                own[:] = memoryview(bytes(own.nbytes)).cast("d")

    def _row_of(self, cells: memoryview[float]) -> Row:
        width = len(cells) // self._seats
        seats = [cells[seat * width : (seat + 1) * width] for seat in range(self._seats)]
        return Row(seats[self._seat], seats)

    def _add(self, name: str, width: int) -> None:
        """Add the cells; when the file is full, cells that no other process sees."""
        key = name.encode()
        begin = self._read_to + _ROW.size
        end = begin + _aligned(len(key)) + 8 * width
        if end > len(self._map):
            if not self._full:
                _LOG.warning("the table of counts is full: %r and perhaps others count for this process alone", name)
            self._full = True
            self._cells[name] = memoryview(bytearray(8 * width)).cast("d")
            return
        self._map[begin : min(end, begin + mmap.PAGESIZE)] = bytes(min(end - begin, mmap.PAGESIZE))  # see the last line
        _ROW.pack_into(self._map, self._read_to, len(key), width)
        self._map[begin : begin + len(key)] = key
        _HEAD.pack_into(
            self._map, 0, end, self.secret
        )  # last: a process that is killed before it leaves a name to overwrite
        self._read()

    def _read(self) -> None:
        """Note the cells that were added since the last time."""
        used = _HEAD.unpack_from(self._map)[0]
        while self._read_to < used:
            length, width = _ROW.unpack_from(self._map, self._read_to)
            begin = self._read_to + _ROW.size
            name = self._map[begin : begin + length].decode()
            begin += _aligned(length)
            self._read_to = begin + 8 * width
            self._cells[name] = memoryview(self._map)[begin : self._read_to].cast("d")


def _aligned(size: int) -> int:
    return (size + 7) // 8 * 8
