"""A running parser process: started with a minimal environment, reached by frames, and always ended."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from pathlib import Path
from typing import Self, cast

from dtrag.adapters.parsers import wire
from dtrag.core.statements import stated
from dtrag.errors import DtragError
from dtrag.settings import passed_on

START_SECONDS = 60
"""A start takes 0.1 s; a cold disk on a busy machine has been seen to take 20."""
STDERR_BYTES = 4_096
READ_AHEAD_BYTES = 1 << 20
PASSED_ON = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT")
"""The only environment variables of ours that the child gets: none can be a secret."""


class ParserUnavailable(DtragError):
    """The parser process did not start: {reason} Reinstall with: make setup"""


class ChildSilent(Exception):
    """The child sent nothing within the limit."""


class ChildDied(Exception):
    """The child ended in the middle of a file; `returncode` as in asyncio: negative = by that signal."""

    def __init__(self, returncode: int, *, by_us: bool = False) -> None:
        super().__init__(f"returncode {returncode}")
        self.returncode = returncode
        self.by_us = by_us

    def reason(self, memory_mb: int) -> str:
        """The reason that is reported for the file."""
        if self.by_us:
            return stated("parser_closed", "the parser was closed before the end of the file")
        number = -self.returncode
        if number == signal.SIGXCPU:
            return stated("parser_cpu", "it exceeded its limit of processor time")
        if number in (signal.SIGKILL, signal.SIGABRT):
            return stated("parser_memory", "the file needs more than {limit} MiB of memory", limit=memory_mb)
        if number > 0:
            return stated("parser_crashed", "the parser crashed (signal {number})", number=number)
        return stated("parser_stopped", "the parser stopped (exit code {number})", number=self.returncode)


class Child:
    """Owns the process, its pipes and the task that reads its stderr."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._stderr = bytearray()
        self._listener = asyncio.create_task(self._listen())
        self._receiving = False
        self._ended = False
        self.files = 0

    @classmethod
    async def start(cls, memory_mb: int) -> Self:
        """Start a process and wait until it has restricted itself. Raises `ParserUnavailable`."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-s", "-B", "-m", "dtrag.adapters.parsers.worker", str(memory_mb)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment(),
            limit=READ_AHEAD_BYTES,
        )
        child = cls(process)
        try:
            await child.receive(START_SECONDS)
        except (ChildSilent, ChildDied) as error:
            await child.end()
            last = bytes(child._stderr).decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise ParserUnavailable(reason=(last or str(error)) + ".") from error
        except BaseException:
            await child.end()
            raise
        return child

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.returncode is None

    async def send(self, message: wire.ParserRequest) -> None:
        """Write a request. Raises `ChildDied`."""
        assert self._process.stdin is not None  # noqa: S101 - piped in `start`
        try:
            self._process.stdin.write(wire.pack(message))
            await self._process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise await self._death() from error

    async def receive(self, seconds: float) -> wire.ParserReply:
        """The next reply. Raises `ChildSilent` after `seconds`, `ChildDied`, and `ValueError` for an invalid frame."""
        assert self._process.stdout is not None  # noqa: S101
        self._receiving = True
        try:
            async with asyncio.timeout(seconds):
                header = await self._process.stdout.readexactly(wire.LENGTH.size)
                (length,) = wire.LENGTH.unpack(header)
                if length > wire.MAX_FRAME_BYTES:
                    raise ValueError("a frame is too long")
                body = await self._process.stdout.readexactly(length)
        except TimeoutError as error:
            raise ChildSilent from error
        except asyncio.IncompleteReadError as error:
            raise await self._death() from error
        finally:
            self._receiving = False
        return cast("wire.ParserReply", wire.unpack(body))

    async def end(self) -> None:
        """Kill the process if it still runs, and collect it: no zombie, no open pipe. Idempotent."""
        self._ended = True
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._process.stdout is not None and not self._receiving:
            # A paused pipe would never see its end, and `wait` waits for the pipes too (Python < 3.13).
            while await self._process.stdout.read(READ_AHEAD_BYTES):
                pass
        await self._process.wait()
        await self._listener

    async def _death(self) -> ChildDied:
        ended = self._ended
        return ChildDied(await self._process.wait(), by_us=ended)

    async def _listen(self) -> None:
        """Keep the last few KiB of stderr: a full pipe would block the child. Shown only if it cannot start."""
        assert self._process.stderr is not None  # noqa: S101
        while piece := await self._process.stderr.read(STDERR_BYTES):
            self._stderr += piece
            del self._stderr[:-STDERR_BYTES]


def environment() -> dict[str, str]:
    """What the child's environment is made of: `PASSED_ON`, UTF-8, and where this very package was imported from."""
    passed = passed_on(PASSED_ON)
    return {
        **passed,
        "PYTHONPATH": str(Path(__file__).parents[3]),
        "PYTHONUTF8": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
