"""The parser process, child side: `python -m dtrag.adapters.parsers.worker MEMORY_MB`.

Reads requests from stdin, writes replies to what was stdout when it started; `wire` defines their form. Output of
libraries goes to stderr. The pipe is the back-pressure: while the service does not read, `_Replies.flush` blocks.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import warnings
from pathlib import Path
from typing import BinaryIO, cast

from dtrag.adapters.parsers import wire
from dtrag.adapters.parsers.formats import Format, check_content, format_of
from dtrag.adapters.parsers.sandbox import allow_cpu, restrict
from dtrag.core.documents import ParsedDocument
from dtrag.core.statements import rows_of, stated, text_of_error
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

    def send(self, message: wire.Reply) -> None:
        frame = wire.pack(message)
        try:
            self._pipe.write(frame)
            self._pipe.flush()
        except OSError as error:
            raise _ParentGone from error


def serve(request: wire.Request, replies: _Replies, memory_mb: int) -> bool:
    """Parse one file and send its documents. Returns whether the process may be reused."""
    allow_cpu(int(request["cpu_seconds"]))
    name = str(request["name"])
    reason = ""
    spent = False
    chosen: Format | None = None
    try:
        chosen = format_of(name)
        _parse(Path(request["path"]), name, chosen, replies)
    except ParseFailed as error:
        reason = text_of_error(error)
    except Exception as error:  # noqa: BLE001 - the boundary: any error of a hostile file fails this file only
        reason = reason_for(error, chosen, memory_mb)
        spent = True
    replies.flush()
    replies.send({"failed": reason, "statements": rows_of([reason]), "spent": spent} if reason else {"done": True})
    return not spent


def _parse(path: Path, name: str, chosen: Format, replies: _Replies) -> None:
    check_content(path, chosen)
    has_text = False
    for document in chosen.load()(path, name):
        has_text = has_text or not document.text.isspace()
        replies.document(document)
    if not has_text:
        raise ParseFailed(stated("no_text", "no text in it"))


def reason_for(error: BaseException, chosen: Format | None, memory_mb: int) -> str:
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
            request = cast("wire.Request", wire.unpack(requests.read(wire.LENGTH.unpack(header)[0])))
            if not serve(request, replies, memory_mb):
                break
    except _ParentGone:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
