"""Why the embedded server did not start, and what to do about it."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from dtrag.core.text.patterns import explained

_FULL = {errno.ENOSPC, errno.EDQUOT}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}
_SEVERITY = explained(
    r"\b(?:FATAL|PANIC|ERROR):\s+(?P<text>.+)|\b(?:initdb|postgres): error: (?P<plain>.+)",
    finds=("FATAL:  lock file exists", "initdb: error: no space"),
    refuses="WARNING:  no space",
)
_LITTLE = 1_048_576
_DISK_FULL = "the disk is full; free some space and run the command again."


class StartFailure(Exception):
    """One sentence with the reason and, where there is one, the way out; `server.py` adds the folder."""


def explain_os_error(error: OSError, data_dir: Path) -> str:
    """The reason behind an error of the file system, as one sentence for the person who chose the folder."""
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(data_dir)
    if error.errno in _FULL:
        return _DISK_FULL
    if error.errno in _REFUSED:
        return (
            f"{where} is not writable for user id {os.geteuid()} ({error.strerror}); "
            "run dtrag as the owner of the folder, or choose another folder with DTRAG_DATA_DIR."
        )
    return f"{where}: {error.strerror or error}; choose another folder with DTRAG_DATA_DIR."


def explain_output(lines: Sequence[str], log: Path | None = None) -> str:
    """The reason in what PostgreSQL printed: its last error, else its last line, and where to read the rest."""
    if any("No space left on device" in line or "Disk quota exceeded" in line for line in lines):
        return _DISK_FULL
    messages = [match["text"] or match["plain"] for line in lines if (match := _SEVERITY.search(line))]
    if not messages and log is not None and os.statvfs(log.parent).f_bavail * os.statvfs(log.parent).f_frsize < _LITTLE:
        return _DISK_FULL  # the log could not be written either
    reason = (
        messages[-1]
        if messages
        else next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
    )
    return f"PostgreSQL said: {reason.rstrip('.')}." + (f" The log is {log}." if log is not None else "")
