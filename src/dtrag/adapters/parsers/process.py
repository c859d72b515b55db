"""The parser process, our side: files in, documents out, and nothing a file does can reach further than its own child.

One child is started when the first file comes and serves one file after the other. It is ended and replaced when it
was silent for too long, died, gave up on a file in an unclear state, was interrupted, or has served enough files.
"""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncGenerator
from pathlib import Path

from dtrag.adapters.parsers import wire
from dtrag.adapters.parsers.child_process import Child, ChildDied, ChildSilent
from dtrag.adapters.parsers.formats import format_of, knows
from dtrag.core.documents import ParsedDocument
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

FILES_PER_CHILD = 200
"""A fresh process every so often keeps slow leaks of the libraries from adding up."""
CPU_SECONDS_PER_MIB = 10
"""Dense PDFs, the slowest we read, take 2-5 s a MiB; the budget grows with the file, the longest silence does not."""


class ParserProcess:
    """Implements `dtrag.ports.Parser`. One file at a time; concurrent callers wait for each other.

    `memory_mb`: MiB that a file may need. `seconds`: longest silence about a file. `max_file_mb`: larger files are
    refused unopened, except those of formats that are streamed (CSV, JSON lines), which limit the line instead.
    """

    def __init__(self, *, memory_mb: int = 1_024, seconds: float = 120, max_file_mb: int = 512) -> None:
        self._memory_mb = memory_mb
        self._seconds = seconds
        self._max_file_bytes = max_file_mb << 20
        self._lock = asyncio.Lock()
        self._child: Child | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the child, or None when none is running."""
        return self._child.pid if self._child is not None and self._child.alive else None

    def knows(self, name: str) -> bool:
        """Whether a file of this name is of a format that can be read (or at least answered with advice)."""
        return knows(name)

    async def parse(self, path: Path, name: str) -> AsyncGenerator[ParsedDocument, None]:
        """The documents in the file, one at a time. Raises `ParseFailed`, at once or after those that could be read.

        Leaving the iteration early (`aclose`, cancellation) ends the child.
        """
        request = self._admit(path, name)
        async with self._lock:
            child = await self._running_child()
            reusable = False
            try:
                await child.send(request)
                while True:
                    message = await child.receive(self._seconds)
                    if "documents" in message:
                        for row in message["documents"]:
                            yield wire.from_row(row)
                        continue
                    reusable = not message.get("spent", False)
                    if "failed" in message:
                        raise ParseFailed(wire.reason_of(message))
                    return
            except ChildSilent as error:
                raise ParseFailed(
                    stated(
                        "parser_slow", "it took longer than {seconds} s without a result", seconds=f"{self._seconds:g}"
                    )
                ) from error
            except ChildDied as error:
                raise ParseFailed(error.reason(self._memory_mb)) from error
            except (TypeError, ValueError, KeyError) as error:
                raise ParseFailed(stated("parser_nonsense", "the parser gave an answer that makes no sense")) from error
            finally:
                if not reusable or child.files >= FILES_PER_CHILD:
                    await self._end(child)

    async def close(self) -> None:
        """End the process. A file that is being parsed fails."""
        if self._child is not None:
            await self._end(self._child)

    def _admit(self, path: Path, name: str) -> wire.ParserRequest:
        """The request to the child. Raises `ParseFailed` for what is not worth a process: too big, no file, unknown."""
        chosen = format_of(name)
        try:
            status = path.stat()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ParseFailed(stated("file_unreadable", "the file cannot be read: {reason}", reason=reason)) from error
        if not stat.S_ISREG(status.st_mode):
            raise ParseFailed(stated("file_not_regular", "it is not a regular file"))
        if not chosen.streams and status.st_size > self._max_file_bytes:
            text = "the file is larger than {limit} MiB; split it"
            raise ParseFailed(stated("file_large", text, limit=self._max_file_bytes >> 20))
        budget = max(1, round(self._seconds)) + CPU_SECONDS_PER_MIB * (status.st_size >> 20)
        return {"path": str(path.absolute()), "name": name, "cpu_seconds": budget}

    async def _running_child(self) -> Child:
        if self._child is not None and not self._child.alive:
            await self._end(self._child)  # it died between two files, for instance by the system's out-of-memory killer
        if self._child is None:
            self._child = await Child.start(self._memory_mb)
        self._child.files += 1
        return self._child

    async def _end(self, child: Child) -> None:
        if self._child is child:
            self._child = None
        await child.end()
