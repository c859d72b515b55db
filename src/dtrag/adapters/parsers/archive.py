"""Zip containers and the XML in them, read without trusting either (office files are zips of XML).

An archive is refused as a whole when anything about it is odd: nothing that office programs write comes near these
limits, and an archive that does is an attack or is damaged.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from lxml import etree

from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

MAX_ENTRIES = 10_000
MAX_DIRECTORY_BYTES = 4 << 20
"""The central directory is parsed into objects before anything can be counted; 4 MiB bounds that to 0.3 s."""
MAX_TOTAL_BYTES = 400 << 20
MAX_RATIO = 300
RATIO_FROM_BYTES = 8 << 20
"""Unpacked : packed may reach 1,032 : 1 in deflate; real documents stay below 100 : 1. Small entries do no harm."""

_END = struct.Struct("<4s4H2LH")
_END_MAGIC = b"PK\x05\x06"
_ZIP64_LOCATOR_MAGIC = b"PK\x06\x07"
_ZIP64_LOCATOR_BYTES = 20
_LOCAL_HEADER_BYTES = 30
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1


def _unsafe(what: str) -> ParseFailed:
    return ParseFailed(stated("archive_unsafe", "unsafe archive: {what}", what=what))


class SafeArchive:
    """A checked zip file, open for reading. Use as a context manager; made by `open_archive`."""

    def __init__(self, archive: zipfile.ZipFile, file: IO[bytes]) -> None:
        self._archive = archive
        self._file = file
        self._entries = {entry.filename: entry for entry in archive.infolist() if not entry.is_dir()}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._archive.close()
        self._file.close()

    def names(self) -> tuple[str, ...]:
        """Names of the files in it (no folders), in the order of the archive's directory."""
        return tuple(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def size(self, name: str) -> int:
        """Unpacked bytes of an entry; `open` and `read` never give more."""
        return self._entry(name).file_size

    def open(self, name: str) -> IO[bytes]:
        """A stream of the entry's bytes that ends with `ParseFailed` when they are damaged or more than declared."""
        return io.BufferedReader(_EntryStream(self._archive, self._entry(name)), 1 << 16)

    def read(self, name: str, limit: int | None = None) -> bytes:
        """The entry's bytes. Raises `ParseFailed` when there is no such entry, or more than `limit` bytes in it."""
        entry = self._entry(name)
        if limit is not None and entry.file_size > limit:
            raise ParseFailed(
                stated(
                    "archive_entry_large",
                    "{name} in the archive is larger than {limit} MiB",
                    name=_shown(name),
                    limit=limit >> 20,
                )
            )
        with self.open(name) as stream:
            return stream.read()

    def _entry(self, name: str) -> zipfile.ZipInfo:
        if name not in self._entries:
            raise ParseFailed(stated("archive_entry_missing", "the archive has no {name}", name=_shown(name)))
        return self._entries[name]


class _EntryStream(io.RawIOBase):
    """Counts what comes out, and turns the decompressor's errors into `ParseFailed`."""

    def __init__(self, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
        self._entry = entry
        self._left = entry.file_size
        try:
            self._stream = archive.open(entry)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, struct.error) as error:
            raise _damaged(entry) from error

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        try:
            data = self._stream.read(len(view))
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise _damaged(self._entry) from error
        self._left -= len(data)
        if self._left < 0:
            raise _unsafe("an entry is larger than it says")
        if not data and self._left > 0 and view:
            raise _damaged(self._entry)
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if hasattr(self, "_stream"):
            self._stream.close()
        super().close()


def _damaged(entry: zipfile.ZipInfo) -> ParseFailed:
    return _broken(f"{_shown(entry.filename)} cannot be unpacked")


def _broken(what: str) -> ParseFailed:
    return ParseFailed(stated("archive_damaged", "the archive is damaged: {what}", what=what))


def _shown(name: str) -> str:
    return ascii(name[:80]) if not name.isprintable() else name[:80]


def open_archive(path: Path) -> SafeArchive:
    """Open and check a zip file. Raises `ParseFailed` ("unsafe archive: …" or "the archive is damaged …")."""
    _check_directory(path)
    file = path.open("rb")
    try:
        try:
            archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
            raise _broken("its directory cannot be read") from error
        _check_entries(archive)
    except BaseException:
        file.close()
        raise
    return SafeArchive(archive, file)


def _check_directory(path: Path) -> None:
    """Refuse huge directories before zipfile makes an object of every entry in them."""
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - 0xFFFF - _END.size - _ZIP64_LOCATOR_BYTES))
        tail = file.read()
    at = len(tail) - _END.size
    if at < 0 or tail[at : at + 4] != _END_MAGIC:
        at = tail.rfind(_END_MAGIC)
    if at < 0 or at + _END.size > len(tail):
        raise _broken("its directory is missing (the file may be cut off)")
    locator = at - _ZIP64_LOCATOR_BYTES
    if locator >= 0 and tail[locator : locator + 4] == _ZIP64_LOCATOR_MAGIC:
        raise _unsafe("it is of the ZIP64 kind, which no document needs")
    _, _, _, _, entries, directory_bytes, _, _ = _END.unpack_from(tail, at)
    if entries > MAX_ENTRIES or directory_bytes > MAX_DIRECTORY_BYTES:
        raise _unsafe(f"more than {MAX_ENTRIES:,} entries")


def _check_entries(archive: zipfile.ZipFile) -> None:
    entries = archive.infolist()
    if len(entries) > MAX_ENTRIES:
        raise _unsafe(f"more than {MAX_ENTRIES:,} entries")
    if len({entry.filename for entry in entries}) != len(entries):
        raise _unsafe("two entries have the same name")
    if sum(entry.file_size for entry in entries) > MAX_TOTAL_BYTES:
        raise _unsafe(f"more than {MAX_TOTAL_BYTES >> 20} MiB unpacked")
    for entry in entries:
        _check_entry(entry)
    _check_overlap(archive, entries)


def _check_entry(entry: zipfile.ZipInfo) -> None:
    name = entry.orig_filename.replace("\\", "/")
    if name.startswith("/") or name[1:2] == ":":
        raise _unsafe("an entry has an absolute name")
    if ".." in name.split("/"):
        raise _unsafe("an entry's name leads out of the archive")
    if "\x00" in name:
        raise _unsafe("an entry's name has a NUL in it")
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise _unsafe("an entry is a symbolic link")
    if entry.flag_bits & _ENCRYPTED:
        raise ParseFailed(stated("file_encrypted", "it is encrypted; save it without a password"))
    if entry.compress_type not in _METHODS:
        raise _unsafe("an entry is packed by an unusual method")
    if entry.file_size > RATIO_FROM_BYTES and entry.file_size > MAX_RATIO * max(1, entry.compress_size):
        raise _unsafe(f"an entry unpacks to more than {MAX_RATIO} times its size")


def _check_overlap(archive: zipfile.ZipFile, entries: list[zipfile.ZipInfo]) -> None:
    """Entries that share bytes multiply a small file (D. Fifield, "A better zip bomb", WOOT 2019)."""
    ordered = sorted(entries, key=lambda entry: entry.header_offset)
    ends = [entry.header_offset for entry in ordered[1:]] + [archive.start_dir]
    for entry, end in zip(ordered, ends, strict=True):
        if entry.header_offset + _LOCAL_HEADER_BYTES + entry.compress_size > end:
            raise _unsafe("entries overlap")


def safe_parser(*, huge_tree: bool = False) -> etree.XMLParser:
    """A parser that expands nothing, loads nothing and reaches nothing.

    `huge_tree` lifts libxml2's limits on text nodes (10 MB) and depth (256); only for input whose size is bounded.
    """
    return etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False, huge_tree=huge_tree
    )


def refuse_doctype(data: bytes) -> None:
    """Raise `ParseFailed` when there is a document type declaration: entity bombs and external entities need one."""
    marks = (b"<!DOCTYPE", "<!DOCTYPE".encode("utf-16-le"), "<!DOCTYPE".encode("utf-16-be"))
    if any(mark in data for mark in marks):
        raise _doctype()


def parse_xml(data: bytes, *, huge_tree: bool = False) -> etree._Element:
    """The root element. Raises `ParseFailed` when it is not well-formed or has a document type declaration."""
    refuse_doctype(data)
    try:
        root = etree.fromstring(data, safe_parser(huge_tree=huge_tree))
    except etree.XMLSyntaxError as error:
        raise _malformed(error) from error
    _refuse_declared(root)
    return root


def _refuse_declared(element: etree._Element) -> None:
    info: Any = element.getroottree().docinfo
    if info.doctype or info.internalDTD is not None:
        raise _doctype()


def _malformed(error: etree.XMLSyntaxError) -> ParseFailed:
    text = "its XML is damaged: line {line} is not well-formed"
    return ParseFailed(stated("xml_damaged", text, line=error.lineno or 0))


def _doctype() -> ParseFailed:
    return ParseFailed(stated("xml_doctype", "the XML has a document type declaration, which is refused"))
