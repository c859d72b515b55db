"""Writes compound files (the container of XLS and HWP 5) and small XLS and HWP files in them, for tests."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from tests.office_files import Cell, Part

SECTOR, MINI, CUTOFF = 512, 64, 4096
END, FREE, FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD


def ole(streams: Mapping[str, bytes]) -> bytes:
    """A compound file with these streams; `storage/stream` names a stream in a storage."""
    names = sorted({name.split("/")[0] for name in streams} | set(streams), key=lambda name: (name.count("/"), name))
    sectors: list[bytes] = []
    fat: list[int] = []
    mini, mini_fat = b"", list[int]()

    def chain(data: bytes) -> int:
        first = len(sectors)
        count = -(-len(data) // SECTOR)
        sectors.extend(data[k * SECTOR : (k + 1) * SECTOR].ljust(SECTOR, b"\0") for k in range(count))
        fat.extend([*range(first + 1, first + count), END] if count else [])
        return first if count else END

    starts: dict[str, int] = {}
    for name, data in streams.items():
        if len(data) >= CUTOFF:
            starts[name] = chain(data)
            continue
        count = -(-len(data) // MINI)
        starts[name] = len(mini_fat) if count else END
        mini += data.ljust(count * MINI, b"\0")
        mini_fat += [*range(len(mini_fat) + 1, len(mini_fat) + count), END] if count else []
    mini_start = chain(mini)
    mini_fat_data = struct.pack(f"<{len(mini_fat)}I", *mini_fat)
    mini_fat_data += b"\xff" * (-len(mini_fat_data) % SECTOR)
    mini_fat_start = chain(mini_fat_data)

    def siblings(parent: str) -> list[str]:
        own = [name for name in names if name.rpartition("/")[0] == parent]
        return sorted(own, key=lambda name: (len(name), name.upper()))

    numbers = {name: number for number, name in enumerate(names, 1)}
    following = {one: other for parent in ("", *names) for one, other in pairwise(siblings(parent))}

    def entry(name: str, kind: int, child: str | None, start: int, size: int) -> bytes:
        shown = name.rpartition("/")[2].encode("utf-16-le")
        right = numbers[following[name]] if name in following else FREE
        below = numbers[child] if child else FREE
        head = shown.ljust(64, b"\0") + struct.pack("<HBBIII", len(shown) + 2, kind, 1, FREE, right, below)
        return head + bytes(36) + struct.pack("<IQ", start, size)

    entries = [entry("Root Entry", 5, siblings("")[0], mini_start, len(mini))]
    for name in names:
        if name in streams:
            entries.append(entry(name, 2, None, starts[name], len(streams[name])))
        else:
            entries.append(entry(name, 1, siblings(name)[0], 0, 0))
    unused = bytes(68) + struct.pack("<III", FREE, FREE, FREE) + bytes(48)
    directory = chain(b"".join(entries) + unused * (-len(entries) % 4))
    fat_sectors = 1
    while fat_sectors * 128 < len(fat) + fat_sectors:
        fat_sectors += 1
    first_fat = len(sectors)
    table = [*fat, *[FAT] * fat_sectors]
    packed = struct.pack(f"<{len(table)}I", *table).ljust(fat_sectors * SECTOR, b"\xff")
    header = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16)
    header += struct.pack("<HHHHH6xIII", 0x3E, 3, 0xFFFE, 9, 6, 0, fat_sectors, directory)
    mini_fat_sectors = len(mini_fat_data) // SECTOR
    header += struct.pack("<IIIIII", 0, CUTOFF, mini_fat_start, mini_fat_sectors, END, 0)
    header += b"".join(struct.pack("<I", first_fat + k if k < fat_sectors else FREE) for k in range(109))
    return header + b"".join(sectors) + packed


def xls(
    sheets: Mapping[str, Sequence[Sequence[str | float]]], hidden: Iterable[str] = (), merges: bytes = b""
) -> bytes:
    """A BIFF8 workbook of texts and numbers; `merges` is the body of a MERGEDCELLS record."""

    def record(kind: int, body: bytes) -> bytes:
        return struct.pack("<HH", kind, len(body)) + body

    def text(value: str) -> bytes:
        return struct.pack("<HB", len(value), 1) + value.encode("utf-16-le")

    bodies = []
    for rows in sheets.values():
        body = record(0x809, struct.pack("<HHHHII", 0x600, 0x10, 0, 0, 0, 0))
        for number, row in enumerate(rows):
            for column, cell in enumerate(row):
                place = struct.pack("<HHH", number, column, 0)
                if isinstance(cell, str):
                    body += record(0x204, place + text(cell)) if cell else b""
                else:
                    body += record(0x203, place + struct.pack("<d", cell))
        bodies.append(body + (record(0xE5, merges) if merges else b"") + record(0x0A, b""))
    start = record(0x809, struct.pack("<HHHHII", 0x600, 5, 0, 0, 0, 0))
    shown = [(name.encode("utf-16-le"), int(name in hidden)) for name in sheets]
    length = len(start) + sum(4 + 8 + len(name) for name, _ in shown) + 4
    for (name, state), body in zip(shown, bodies, strict=True):
        start += record(0x85, struct.pack("<IBBBB", length, state, 0, len(name) // 2, 1) + name)
        length += len(body)
    return ole({"Workbook": start + record(0x0A, b"") + b"".join(bodies)})


STYLES = ("바탕글", "개요 1", "개요 2")
"""Style 0 is that of the text, the others are headings of their levels."""


def hwp(parts: Iterable[Part], *, flags: int = 1) -> bytes:
    """A HWP 5 document. `flags`: 1 compressed, 2 with a password, 4 for distribution.

    For distribution, Hangul encrypts the text in a stream of its own, and `parts` are what old programs show.
    """

    def record(tag: int, level: int, body: bytes) -> bytes:
        size = min(len(body), 0xFFF)
        head = struct.pack("<I", tag | level << 10 | size << 20)
        return head + (struct.pack("<I", len(body)) if size == 0xFFF else b"") + body

    def text(value: str) -> bytes:
        return struct.pack("<H", len(value)) + value.encode("utf-16-le")

    def paragraph(value: str, level: int, style: int = 0, control: bytes = b"", last: bool = False) -> bytes:
        units = (control + value.encode("utf-16-le")) + b"\r\0"
        count = len(units) // 2 | (1 << 31 if last else 0)
        head = struct.pack("<IIHBBHHHIH", count, 1 << 11 if control else 0, style, style, 0, 1, 0, 0, 0, 0)
        return record(66, level, head) + record(67, level + 1, units) + record(68, level + 1, struct.pack("<II", 0, 0))

    def table(cells: Sequence[Cell]) -> bytes:
        rows = max(row + spanned for row, _, spanned, _, _ in cells)
        columns = max(column + spanned for _, column, _, spanned, _ in cells)
        mark = struct.pack("<H", 11) + b" lbt" + bytes(8) + struct.pack("<H", 11)
        out = paragraph("", 0, control=mark) + record(71, 1, b" lbt" + bytes(42))
        sizes = [sum(cell[0] == row for cell in cells) for row in range(rows)]
        body = struct.pack("<IHHHHHHH", 4, rows, columns, 0, 0, 0, 0, 0) + struct.pack(f"<{rows}H", *sizes)
        out += record(77, 2, body + struct.pack("<HH", 1, 0))
        for row, column, spanned_rows, spanned_columns, value in cells:
            place = struct.pack("<HHHHiiHHHHH", column, row, spanned_columns, spanned_rows, 9, 9, 0, 0, 0, 0, 1)
            out += record(72, 2, struct.pack("<HHI", 1, 0, 0) + place + bytes(13))
            out += paragraph(value, 2, last=True)
        return out

    body = b""
    for part in parts:
        if isinstance(part, str):
            body += paragraph(part, 0)
        else:
            body += table(part) if isinstance(part, list) else paragraph(part[0], 0, part[1])
    counts = [0] * 18
    counts[13], counts[14] = len(STYLES), len(STYLES)
    info = record(16, 0, struct.pack("<H", 1) + bytes(24)) + record(17, 0, struct.pack("<18i", *counts))
    for level in range(len(STYLES)):
        attributes = (1 << 23 | (level - 1) << 25) if level else 0
        info += record(25, 1, struct.pack("<I", attributes) + bytes(50))
    for number, name in enumerate(STYLES):
        info += record(26, 1, text(name) + text("") + struct.pack("<BBhHHH", 0, number, 1042, number, 0, 0))
    header = b"HWP Document File".ljust(32, b"\0") + struct.pack("<II", 0x05000300, flags)

    def compressed(data: bytes) -> bytes:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        return packer.compress(data) + packer.flush() if flags & 1 else data

    return ole(
        {
            "FileHeader": header.ljust(256, b"\0"),
            "DocInfo": compressed(info),
            "BodyText/Section0": compressed(body),
            **({"ViewText/Section0": bytes(range(256)) * 2} if flags & 4 else {}),
        }
    )
