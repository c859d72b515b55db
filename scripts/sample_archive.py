"""Writes a zip archive that is the same every time: fixed order, fixed time stamps, nothing specific to the machine."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time a zip entry can have; word processors that leave the time out write the same."""


def write_archive(path: Path, entries: Iterable[tuple[str, bytes]], stored: frozenset[str] = frozenset()) -> None:
    """Writes `entries` (name, content) in order; those named in `stored` are not compressed."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries:
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.create_system = 0  # the default depends on the operating system
            entry.compress_type = zipfile.ZIP_STORED if name in stored else zipfile.ZIP_DEFLATED
            archive.writestr(entry, content, compresslevel=9)
