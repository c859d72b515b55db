"""The parser process, our side: files in, documents out, and nothing a file does can reach further than its own child.

One child is started when the first file comes and serves one file after the other. It is ended and replaced when it
was silent for too long, died, gave up on a file in an unclear state, was interrupted, or has served enough files.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import importlib.util
import signal
import stat
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self, TypeVar, cast

from dtrag.adapters.parsers import wire
from dtrag.adapters.parsers.formats import format_of, is_picture, knows
from dtrag.adapters.parsers.ocr import is_usable
from dtrag.core.documents import ParsedDocument
from dtrag.core.originals import Box, SoughtText
from dtrag.core.statements import Statement, stated, statement_in
from dtrag.errors import DtragError, MissingExtra, ParseFailed
from dtrag.settings import passed_on

Answer = TypeVar("Answer")
FILES_PER_CHILD = 200
"""A fresh process every so often keeps slow leaks of the libraries from adding up."""
ASKED_SECONDS = 20
"""For what is asked of a PDF: a page of a drawing with a million lines takes 3 s."""
CPU_SECONDS_PER_MIB = 10
"""Dense PDFs, the slowest we read, take 2-5 s a MiB; the budget grows with the file, the longest silence does not."""


class ParserProcess:
    """Implements `dtrag.ports.Parser` and `OriginalReader`. One file at a time; concurrent callers wait for each other.

    `memory_mb`: MiB that a file may need. `seconds`: longest silence about a file. `max_file_mb`: larger files are
    refused unopened, except those of formats that are streamed (CSV, JSON lines), which limit the line instead.
    `ocr`: auto, off, or the languages of text recognition.
    """

    def __init__(
        self, *, memory_mb: int = 1_024, seconds: float = 120, max_file_mb: int = 512, ocr: str = "auto"
    ) -> None:
        self._memory_mb = memory_mb
        self._seconds = seconds
        self._max_file_bytes = max_file_mb << 20
        self._ocr = ocr
        self._lock = asyncio.Lock()
        self._child: Child | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the child, or None when none is running."""
        return self._child.pid if self._child is not None and self._child.alive else None

    def knows(self, name: str) -> bool:
        """Whether a file of this name is of a format that can be read (or at least answered with advice).

        Folders are full of pictures without text: without OCR they are skipped there, and one that is named fails.
        """
        if is_picture(name):
            return self._ocr != "off" and is_usable()
        return knows(name)

    async def parse(self, path: Path, name: str) -> AsyncGenerator[ParsedDocument, None]:
        """The documents in the file, one at a time. Raises `ParseFailed`, at once or after those that could be read.

        Leaving the iteration early (`aclose`, cancellation) ends the child.
        """
        request = self._admit(path, name)
        async with contextlib.aclosing(self._served(request, self._seconds, _documents)) as documents:
            async for document in documents:
                yield document

    async def picture(self, pdf: bytes, page: int) -> bytes:
        """See `dtrag.ports.OriginalReader`."""
        return await self._asked(pdf, {"picture": page}, lambda reply: base64.b64decode(reply["picture"]))

    async def places(self, pdf: bytes, sought: Sequence[SoughtText]) -> tuple[int, list[list[Box]]]:
        """See `dtrag.ports.OriginalReader`."""
        return await self._asked(pdf, {"sought": sought}, _places)

    async def _asked(
        self, pdf: bytes, question: wire.ParserRequest, read: Callable[[wire.ParserReply], Answer]
    ) -> Answer:
        if not all(map(importlib.util.find_spec, ("PIL", "pypdfium2"))):
            raise MissingExtra(feature="Showing pages of original files", extra="originals")
        encoded = (await asyncio.to_thread(base64.b64encode, pdf)).decode()
        request: wire.ParserRequest = {**question, "pdf": encoded, "cpu_seconds": ASKED_SECONDS}
        async with contextlib.aclosing(self._served(request, ASKED_SECONDS, lambda reply: [read(reply)])) as answers:
            return await anext(answers)

    async def _served(
        self, request: wire.ParserRequest, seconds: float, read: Callable[[wire.ParserReply], Iterable[Answer]]
    ) -> AsyncGenerator[Answer, None]:
        """What `read` makes of the replies to a request. Raises `ParseFailed`."""
        async with self._lock:
            child = await self._running_child()
            reusable = False
            try:
                await child.send(request)
                while True:
                    message = await child.receive(seconds)
                    if "documents" not in message:
                        reusable = not message.get("spent", False)
                    if "failed" in message:
                        raise ParseFailed(statement_in(message["failed"]))
                    for answer in read(message):
                        yield answer
                    if "documents" not in message:
                        return
            except ChildSilent as error:
                raise ParseFailed(
                    stated("parser_slow", "it took longer than {seconds} s without a result", seconds=f"{seconds:g}")
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
            self._child = await Child.start(self._memory_mb, self._ocr)
        self._child.files += 1
        return self._child

    async def _end(self, child: Child) -> None:
        if self._child is child:
            self._child = None
        await child.end()


def _documents(reply: wire.ParserReply) -> Iterator[ParsedDocument]:
    return map(wire.from_row, reply.get("documents", ()))


def _places(reply: wire.ParserReply) -> tuple[int, list[list[Box]]]:
    boxes = [[(left, top, right, bottom) for left, top, right, bottom in each] for each in reply["boxes"]]
    return int(reply["pages"]), boxes


START_SECONDS = 60
"""A start takes 0.1 s; a cold disk on a busy machine has been seen to take 20."""
STDERR_BYTES = 4_096
READ_AHEAD_BYTES = 1 << 20
PASSED_ON = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT", "TESSDATA_PREFIX")
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

    def reason(self, memory_mb: int) -> Statement:
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
    async def start(cls, memory_mb: int, ocr: str) -> Self:
        """Start a process and wait until it has restricted itself. Raises `ParserUnavailable`."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-s", "-B", "-m", "dtrag.adapters.parsers.worker", str(memory_mb), ocr),
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
        "OMP_THREAD_LIMIT": "1",  # tesseract is slower with several threads
        "OPENBLAS_NUM_THREADS": "1",  # each thread of NumPy's maps memory
        "OPENBLAS_MAIN_FREE": "1",  # NumPy would set it
    }
