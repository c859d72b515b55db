"""Files that searches map into memory: derived from the rows of one database, and never the only copy of anything.

A file is written under a temporary name, renamed and never changed afterwards; all processes of a machine map it
read-only. It is not flushed to the disk: what a crash of the machine cuts or empties fails its checksum, is removed and
made again from the rows. So is a file of another format, database or name. A folder or file of another user, and a
link, are not used. The folder of a database is named by the cluster's system identifier and the database's oid, which
copies of a database do not share.

A file: prelude (`_PRELUDE`: magic, format, bytes of the header, bytes of the file, CRC-32 of both and of everything
after the prelude), header (JSON: database, name, facts; type, shape and offset of each array), arrays, each at a
multiple of `ALIGNMENT`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import mmap
import os
import secrets
import shutil
import stat
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtrag.adapters.postgres.disk import Disk
from dtrag.errors import StorageFull

FOLDER = "search"
"""In the data folder; holds one folder for each database."""
ALIGNMENT = 64
FORMAT = 1
_MAGIC = b"dtragmap"
_PRELUDE = struct.Struct("<8sIIQI")
_TEMPORARY = ".writing-"
_CACHE_TAG = (
    b"Signature: 8a477f597d28d172789f06886806bc55\n# Derived from the database of dtrag: backups may leave it out.\n"
)
"""The content of a CACHEDIR.TAG (bford.info/cachedir), by which backup programs know folders of derived data."""
_LOG = logging.getLogger(__name__)


class _Unusable(Exception):
    """Why a file is not what it should be."""


class _State(NamedTuple):
    """By which a file that was written to or cut differs from what it was."""

    inode: int
    size: int
    written_ns: int


def _state(status: os.stat_result) -> _State:
    return _State(status.st_ino, status.st_size, status.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class MappedFile:
    """An open file: read-only arrays over one mapping, which stays valid when the file is removed, and its facts."""

    arrays: Mapping[str, NDArray[Any]]
    facts: Mapping[str, Any]


class SearchFiles:
    """The files of one database, in `<folder>/<identity>`. All methods block: call them in a thread.

    What the disk refuses (full, read-only, no rights) is logged once; searches use the database and memory instead.
    """

    def __init__(self, folder: Path, identity: str, disk: Disk | None = None) -> None:
        self._parent = folder
        self._identity = identity
        self._disk = disk
        self._refused = False
        self._verified: dict[str, _State] = {}

    def write(self, name: str, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> None:
        """Write or replace a file. The facts are JSON; arrays may hold structures, but no Python objects."""
        blocks = [_bytes_of(array) for array in arrays.values()]
        header = _header(self._identity, name, arrays, facts)
        with self._refusals(), self._opened(make=True) as folder:
            if self._disk is not None:
                self._disk.require(len(header) + sum(block.nbytes for block in blocks))
            self._remove_leftovers(folder)
            _publish(folder, name, header, blocks)
            self._refused = False

    def open(self, name: str) -> MappedFile | None:
        """Map a file. None when it is missing, or when it is unusable: then it is removed."""
        mapped = None
        with self._refusals(), self._opened() as folder:
            try:
                mapped, self._verified[name] = _mapped(folder, name, self._identity)
            except _Unusable as error:
                _LOG.warning("the search file %s is removed, and made again from the database: %s", name, error)
                _unlink(folder, name)
        return mapped

    def changed(self) -> set[str]:
        """The mapped files that something has written to or cut since they were verified; quick, for every search.

        One that is gone, or replaced by another file, has left its mapping as it was.
        """
        folder, names = f"{self._parent / self._identity}/", set()
        for name, verified in list(self._verified.items()):
            try:
                state = _state(os.stat(folder + name, follow_symlinks=False))  # noqa: PTH116 - for every search
            except OSError:
                continue
            if state != verified and state.inode == verified.inode:
                names.add(name)
        return names

    def names(self) -> set[str]:
        """The names of all files."""
        names: set[str] = set()
        with self._refusals(), self._opened() as folder:
            names.update(name for name in _names(folder) if not name.startswith(_TEMPORARY))
        return names

    def remove(self, names: Collection[str]) -> None:
        """Remove files; processes that have mapped one keep its content."""
        with self._refusals(), self._opened() as folder:
            for name in names:
                self._verified.pop(name, None)
                _unlink(folder, name)

    def others(self) -> set[str]:
        """The identities of the other databases of the same cluster that have a folder here."""
        cluster = self._identity.rpartition("-")[0]
        names: set[str] = set()
        with self._refusals(), ExitStack() as stack:
            _private_folder(stack, self._parent, None, make=False)
            names = {path.name for path in self._parent.iterdir() if path.name.rpartition("-")[0] == cluster}
        return names - {self._identity}

    def forget(self, identities: Collection[str]) -> None:
        """Remove the folders of databases that were dropped."""
        for identity in identities:
            shutil.rmtree(self._parent / identity, ignore_errors=True)

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Errors of the disk end the block and are logged, once until something is written again."""
        try:
            yield
        except FileNotFoundError:
            pass
        except (OSError, StorageFull) as error:
            log = _LOG.debug if self._refused else _LOG.warning
            log(
                "no search files in %s; searches use the database and memory instead: %s",
                self._parent / self._identity,
                error,
            )
            self._refused = True

    @contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[int]:
        """A descriptor of the folder. Raises `OSError`."""
        if make:
            self._parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with ExitStack() as stack:
            parent = _private_folder(stack, self._parent, None, make=make)
            folder = _private_folder(stack, Path(self._identity), parent, make=make)
            with contextlib.suppress(FileExistsError), ExitStack() as tagging:
                tag = os.open("CACHEDIR.TAG", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=parent)
                tagging.callback(os.close, tag)
                os.write(tag, _CACHE_TAG)
            yield folder

    def _remove_leftovers(self, folder: int) -> None:
        """Remove what killed processes were writing: their locks ended with them."""
        for name in _names(folder):
            if name.startswith(_TEMPORARY):
                with contextlib.suppress(OSError), ExitStack() as stack:
                    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
                    stack.callback(os.close, descriptor)
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(name, dir_fd=folder)


def _private_folder(stack: ExitStack, path: Path, parent: int | None, *, make: bool) -> int:
    """A descriptor of a folder of this user, closed with the stack; restricted to this user where needed."""
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700, dir_fd=parent)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    stack.callback(os.close, descriptor)
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid():
        raise PermissionError(f"the folder {path} belongs to user id {status.st_uid}")
    if stat.S_IMODE(status.st_mode) != 0o700:
        os.fchmod(descriptor, 0o700)
    return descriptor


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _unlink(folder: int, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _header(identity: str, name: str, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> bytes:
    """The header, padded so that the first array is aligned."""
    places, offset = {}, 0
    for key, array in arrays.items():
        places[key] = {"type": np.lib.format.dtype_to_descr(array.dtype), "shape": array.shape, "offset": offset}
        offset += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    text = json.dumps({"database": identity, "name": name, "facts": facts, "arrays": places}).encode()
    return text + b" " * (-(_PRELUDE.size + len(text)) % ALIGNMENT)


def _publish(folder: int, name: str, header: bytes, blocks: Collection[NDArray[np.uint8]]) -> None:
    """Write under a temporary name, then rename."""
    temporary = f"{_TEMPORARY}{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=folder), "wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            size = _PRELUDE.size + len(header) + sum(block.nbytes + -block.nbytes % ALIGNMENT for block in blocks)
            prelude = (_MAGIC, FORMAT, len(header), size)
            file.write(_PRELUDE.pack(*prelude, 0))
            checksum = _first_checksum(*prelude)
            for part in (
                header,
                *(part for block in blocks for part in (block.data, bytes(-block.nbytes % ALIGNMENT))),
            ):
                checksum = zlib.crc32(part, checksum)
                file.write(part)
            file.seek(0)
            file.write(_PRELUDE.pack(*prelude, checksum))
            file.flush()
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            _unlink(folder, temporary)
            raise


def _first_checksum(*prelude: Any) -> int:
    return zlib.crc32(_PRELUDE.pack(*prelude, 0))


def _mapped(folder: int, name: str, identity: str) -> tuple[MappedFile, _State]:
    """Map a file and verify all of it; and its state before. Raises `_Unusable`, and `OSError`."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError as error:
        if not stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise
        raise _Unusable("it is a link") from error
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise _Unusable("it is not a file of this user alone")
        start = file.read(_PRELUDE.size)
        if len(start) < _PRELUDE.size:
            raise _Unusable("it is cut")
        magic, version, header_bytes, size, checksum = _PRELUDE.unpack(start)
        if (magic, version) != (_MAGIC, FORMAT):
            raise _Unusable("it has another format")
        if size != status.st_size or size < _PRELUDE.size + header_bytes:
            raise _Unusable("it is cut")
        mapping = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
    first = _PRELUDE.size + header_bytes
    with memoryview(mapping) as whole, whole[_PRELUDE.size :] as content:
        if zlib.crc32(content, _first_checksum(magic, version, header_bytes, size)) != checksum:
            raise _Unusable("its checksum is wrong")
    header = json.loads(mapping[_PRELUDE.size : first])
    if (header["database"], header["name"]) != (identity, name):
        raise _Unusable("it is that of another database or another name")
    arrays = {
        key: np.frombuffer(
            mapping, _dtype(place["type"]), int(np.prod(place["shape"], dtype=np.int64)), first + place["offset"]
        ).reshape(place["shape"])
        for key, place in header["arrays"].items()
    }
    return MappedFile(arrays, header["facts"]), _state(status)


def _dtype(description: str | list[list[Any]]) -> np.dtype[Any]:
    """The type that `dtype_to_descr` described, after JSON made its tuples lists."""
    if isinstance(description, str):
        return np.dtype(description)
    return np.dtype([(name, kind, *map(tuple, shape)) for name, kind, *shape in description])
