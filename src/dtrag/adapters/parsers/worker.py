"""The parser process, child side: `python -m dtrag.adapters.parsers.worker MEMORY_MB OCR`.

Reads requests from stdin, writes replies to what was stdout when it started; `wire` defines their form. Output of
libraries goes to stderr. The pipe is the back-pressure: while the service does not read, `_Replies.flush` blocks.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import functools
import importlib.util
import logging
import os
import resource
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any, BinaryIO, cast

from dtrag.adapters.parsers import ocr, originals, wire
from dtrag.adapters.parsers.formats import Format, check_content, format_of
from dtrag.core.documents import ParsedDocument
from dtrag.core.originals import SoughtText
from dtrag.core.response import plain
from dtrag.core.statements import Statement, stated, statement_of
from dtrag.errors import ParseFailed

BATCH_CHARACTERS = 1 << 18
BATCH_SECONDS = 0.2
"""Small documents travel together, up to 256 K characters or the time after which a reader would notice the wait."""

REASONS = {
    "pypdf": "the PDF is damaged",
    "lxml": "its markup is damaged",
    "zipfile": "the archive is damaged",
    "zlib": "the archive is damaged",
    "docx": "it is not a complete DOCX file",
    "python_calamine": "it is not a complete spreadsheet",
    "PIL": "the picture is damaged",
    "pypdfium2": "the PDF is damaged",
    "csv": "its rows cannot be read as CSV",
}
"""The reason that the owner of the file is shown, by the package of the exception."""


class _ParentGone(BaseException):
    """The service closed the pipe: the process ends."""


class _Replies:
    """Sends documents in batches, in order."""

    def __init__(self, pipe: BinaryIO) -> None:
        self._pipe = pipe
        self._rows: list[wire.Row] = []
        self._characters = 0
        self._since = time.monotonic()

    def document(self, document: ParsedDocument) -> None:
        if len(document.text) > wire.MAX_TEXT:
            raise ParseFailed(
                stated(
                    "file_text_long",
                    "its text is longer than {limit} characters; split the file",
                    limit=f"{wire.MAX_TEXT:,}",
                )
            )
        self._rows.append(wire.to_row(document))
        self._characters += len(document.text) + len(document.title)
        if self._characters >= BATCH_CHARACTERS or time.monotonic() - self._since >= BATCH_SECONDS:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            rows, self._rows, self._characters = self._rows, [], 0
            self.send({"documents": rows})
        self._since = time.monotonic()

    def send(self, message: wire.ParserReply) -> None:
        frame = wire.pack(message)
        try:
            self._pipe.write(frame)
            self._pipe.flush()
        except OSError as error:
            raise _ParentGone from error


def serve(request: wire.ParserRequest, replies: _Replies, memory_mb: int, ocr_setting: str = "auto") -> bool:
    """Parse one file and send its documents, or what is asked of a PDF. Returns whether the process may be reused."""
    seconds = int(request["cpu_seconds"])
    allow_cpu(seconds)

    def page_done() -> None:
        """A page was recognised: report that, and allow the next one its time."""
        replies.send({"documents": []})
        allow_cpu(seconds)

    ocr.configure(ocr_setting, page_done)
    reason: Statement | None = None
    spent = False
    chosen: Format | None = None
    done: wire.ParserReply = {"done": True}
    try:
        if "pdf" in request:
            done |= _asked(request)
        else:
            name = str(request["name"])
            chosen = format_of(name)
            _parse(Path(request["path"]), name, chosen, replies)
    except ParseFailed as error:
        reason = statement_of(error)
    except Exception as error:  # noqa: BLE001 - the boundary: any error of a hostile file fails this file only
        reason = reason_for(error, chosen, memory_mb)
        spent = True
    replies.flush()
    replies.send({"failed": plain(reason), "spent": spent} if reason is not None else done)
    return not spent


def _asked(request: wire.ParserRequest) -> wire.ParserReply:
    pdf = base64.b64decode(request["pdf"])
    if "picture" in request:
        return {"picture": base64.b64encode(originals.picture(pdf, request["picture"])).decode()}
    pages, boxes = originals.places(pdf, [SoughtText(*text) for text in request["sought"]])
    return {"pages": pages, "boxes": boxes}


def _parse(path: Path, name: str, chosen: Format, replies: _Replies) -> None:
    check_content(path, chosen)
    has_text = False
    for document in chosen.load()(path, name):
        has_text = has_text or not document.text.isspace()
        replies.document(document)
    if not has_text:
        raise ParseFailed(stated("no_text", "no text in it"))


def reason_for(error: BaseException, chosen: Format | None, memory_mb: int) -> Statement:
    """A short sentence about an exception that is not a `ParseFailed`; without traceback and document text."""
    if isinstance(error, MemoryError) or "memory allocation failed" in str(error).lower():
        return stated("parser_memory", "the file needs more than {limit} MiB of memory", limit=memory_mb)
    if isinstance(error, RecursionError):
        return stated("file_nesting", "it is nested too deeply")
    package = type(error).__module__.partition(".")[0]
    package = "csv" if package == "_csv" else package
    if type(error).__name__ == "LimitReachedError":
        return stated("file_unpacks_large", "something in it unpacks to more than is allowed")
    if package in REASONS:
        what = f"{REASONS[package]} ({type(error).__name__})"
        return stated("file_damaged", "{what}", what=what)
    if isinstance(error, OSError):
        return stated("file_unreadable", "the file cannot be read: {reason}", reason=error.strerror or error)
    label = chosen.label if chosen else "known"
    text = "it is damaged, or not a {label} file ({error})"
    return stated("file_damaged_or_other", text, label=label, error=type(error).__name__)


def main() -> int:
    """Serve requests until stdin ends or a file left the process in an unclear state."""
    memory_mb = int(sys.argv[1])
    requests = os.fdopen(os.dup(0), "rb")
    replies = _Replies(os.fdopen(os.dup(1), "wb"))
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a descriptor is all we want
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    restrict(memory_mb)
    try:
        replies.send({"ready": True})
        while header := requests.read(wire.LENGTH.size):
            request = cast("wire.ParserRequest", wire.unpack(requests.read(wire.LENGTH.unpack(header)[0])))
            if not serve(request, replies, memory_mb, sys.argv[2]):
                break
    except _ParentGone:
        return 1
    return 0


REFUSED = frozenset(
    {
        "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "pty.spawn",
        "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod",
        "os.chown", "os.utime", "os.setxattr", "os.removexattr", "os.putenv", "os.kill", "os.killpg",
        "signal.pthread_kill", "syslog.openlog", "pickle.find_class", "sqlite3.connect",
        "webbrowser.open", "shutil.rmtree", "shutil.copyfile", "shutil.move", "tempfile.mkstemp", "tempfile.mkdtemp",
        "urllib.Request",
    }
)  # fmt: skip
REFUSED_FAMILIES = ("socket.", "ftplib.", "http.client.", "imaplib.", "poplib.", "smtplib.", "telnetlib.", "nntplib.")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_UNKNOWN_BASELINE = 512 << 20


def restrict(memory_mb: int) -> None:
    """Give up everything that parsing does not need, for good. `memory_mb` comes on top of what is mapped now."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; our parent decides what happens
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 0)  # regular files only: the pipes are not concerned
    _lower(resource.RLIMIT_NOFILE, 64)
    _lower(resource.RLIMIT_AS, _mapped_bytes() + (memory_mb << 20))
    sys.addaudithook(_refuse)


def allow_cpu(seconds: int) -> None:
    """Let the process use this many more seconds of processor time; then the kernel ends it with SIGXCPU."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime) + 1 + seconds
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, hard))


@functools.cache
def _native_folders() -> tuple[str, ...]:
    """The folders of the libraries that readers load by ctypes, where they are installed."""
    specs = map(importlib.util.find_spec, ("unhwp", "pypdfium2_raw"))
    return tuple(f"{Path(spec.origin).parent}{os.sep}" for spec in specs if spec is not None and spec.origin)


def _lower(what: int, value: int) -> None:
    hard = resource.getrlimit(what)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    with contextlib.suppress(ValueError, OSError):  # macOS knows RLIMIT_AS but refuses to set it
        resource.setrlimit(what, (value, value))


def _mapped_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        return _UNKNOWN_BASELINE
    return pages * resource.getpagesize()


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        file, mode, flags = arguments
        if isinstance(file, int):  # a pipe that is open already
            return
        if (isinstance(mode, str) and set(mode) & set("wax+")) or (isinstance(flags, int) and flags & WRITING):
            raise PermissionError("the parser process may not write files")
    elif event in ("ctypes.dlopen", "subprocess.Popen"):
        name = str(arguments[0])
        if not (name.startswith(_native_folders()) if event == "ctypes.dlopen" else name == ocr.tesseract()):
            raise PermissionError(f"the parser process may not do this: {event}")
    elif event in REFUSED or event.startswith(REFUSED_FAMILIES):
        raise PermissionError(f"the parser process may not do this: {event}")


if __name__ == "__main__":
    sys.exit(main())
