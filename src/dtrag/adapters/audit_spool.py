"""Lines of the audit log that the database cannot take at the moment, in a file that survives the process.

Each process writes a file of its own below `<data_dir>/audit-spool/` and holds a lock on it; what a dead process left
is taken over by the next one that opens the same database. A line is the JSON of an entry without number and hash:
it becomes part of the chain when the database takes it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from dtrag.core.access.audit_chain import AuditEntry, content, settled
from dtrag.settings import Settings


@dataclass(slots=True)
class AuditSpool:
    """The spool files of one database. `database` tells apart the databases that share a data folder."""

    folder: Path
    database: str
    _descriptor: int | None = field(default=None, init=False)
    _path: Path | None = field(default=None, init=False)

    @classmethod
    def of(cls, settings: Settings) -> AuditSpool:
        """The spool of the database that the settings name."""
        name = settings.database_url or settings.database_name
        return cls(settings.data_dir / "audit-spool", hashlib.sha256(name.encode()).hexdigest()[:16])

    def add(self, entries: Sequence[AuditEntry]) -> None:
        """Append the entries; they are on disk when this returns. Raises `OSError`, and then none of them is kept."""
        descriptor = self._descriptor if self._descriptor is not None else self._create()
        end = os.fstat(descriptor).st_size
        data = b"".join(content(0, settled(entry)) + b"\n" for entry in entries)
        try:
            while data:
                data = data[os.write(descriptor, data) :]
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, end)
            raise

    def left(self) -> list[Path]:
        """The files with lines of this database that no other process holds; this process's own is among them."""
        if not self.folder.is_dir():
            return []
        return [path for path in sorted(self.folder.glob(f"{self.database}-*.jsonl")) if self._is_ours(path)]

    def read(self, path: Path) -> list[AuditEntry]:
        """The entries of a file. The last line may be torn: its writer was killed before it was acknowledged."""
        lines = path.read_bytes().split(b"\n")
        return [_entry(line) for line in lines[:-1] if line.strip()]

    def remove(self, path: Path) -> None:
        """Forget a file whose lines are in the log."""
        path.unlink(missing_ok=True)
        if path == self._path:
            self.close()

    def close(self) -> None:
        """Give up the lock on our file, so that the next process takes its lines over."""
        descriptor, self._descriptor = self._descriptor, None
        path, self._path = self._path, None
        if descriptor is None or path is None:
            return
        if os.fstat(descriptor).st_size == 0:  # made on a full disk, which then took no line
            path.unlink(missing_ok=True)
        os.close(descriptor)

    def _create(self) -> int:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.folder / f"{self.database}-{uuid.uuid4().hex}.jsonl"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._descriptor, self._path = descriptor, path
        return descriptor

    def _is_ours(self, path: Path) -> bool:
        """Whether the file is this process's, or that of a process that has ended."""
        if path == self._path:
            return True
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(descriptor)
        return True


def _entry(line: bytes) -> AuditEntry:
    row = json.loads(line)
    at = datetime.fromisoformat(row["at"])
    return AuditEntry(at, row["actor"], row["action"], row["scope"], row["subjects"], row["decision"], row["details"])
