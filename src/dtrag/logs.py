"""Structured logging on stderr, for the command line and the service alike: JSON lines, or text on a terminal.

Log lines contain facts about the work (route, status, times, ids), never questions or text of documents. An exception
is logged as its class and its stack, because its message may quote a value, a row or a document.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType

from dtrag.core.text.patterns import explained
from dtrag.errors import InvalidInput

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
FORMATS = ("auto", "json", "text")
FRAMES = 30
"""Innermost frames of a stack that are logged; an endless recursion has a thousand."""

request_id: ContextVar[str | None] = ContextVar("dtrag_request_id", default=None)
"""The id of the current request; it is part of every log line."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}
_SECRETS = (
    (
        explained(
            r"(?i)([?&;][\w.-]{0,60}(?:key|sig|signature|token|secret|password|passwd|pwd|auth|credential|code)=)[^\s&#\"'<>]+",
            finds="?api_key=abc",
            refuses="?keyboard=us",
        ),
        r"\1***",
    ),
    (re.compile(r"(?<=://)\S{1,2000}@"), "***@"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]+"), r"\1 ***"),
    (
        explained(
            r"(?i)\b((?:\w*_)?(?:password|passwd|pwd|secret|token|api[_-]?key))(\W{0,2}[=:]\s*)('[^']*'|[^\s,;&]+)",
            finds="password: abc",
            refuses="passwords: none",
        ),
        r"\1\2***",
    ),
)
LINES = 10
WINDOW_S = 10.0
"""At most `LINES` of one kind are written within so many seconds."""
MOST_KINDS = 500
"""Most kinds of lines that are counted; beyond, all counts are reset."""


def configure(level: str, log_format: str = "auto", mask: Callable[[str], str] = str) -> None:
    """Log from `level` up (DEBUG, INFO, WARNING, ERROR) on stderr, one line a record. Raises `InvalidInput`.

    `log_format` is json, text, or auto: text on a terminal, JSON everywhere else. `mask` removes personal data.
    """
    level_name = level.strip().upper()
    if level_name not in LEVELS:
        raise InvalidInput(f"Unknown log level {level[:20]!r}. Levels: {', '.join(LEVELS)}.")
    form = log_format.strip().lower()
    if form not in FORMATS:
        raise InvalidInput(f"Unknown log format {log_format[:20]!r}. Formats: {', '.join(FORMATS)}.")
    if form == "auto":
        form = "text" if sys.stderr.isatty() else "json"
    handler = _Stderr()
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    handler.addFilter(RepeatLimit())
    handler.addFilter(lambda record: redact_record(record, mask))
    root = logging.getLogger()
    for old in list(root.handlers):
        if isinstance(old, _Stderr):
            root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level_name)


def redact(text: str) -> str:
    """The text without what may be a secret: user information and keys in addresses, bearer tokens, `password=...`."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def redact_record(record: logging.LogRecord, mask: Callable[[str], str] = str) -> bool:
    """A filter that lets every record pass, without the secrets in its message and in its extra fields."""
    record.msg, record.args = mask(redact(record.getMessage())), None
    for name, value in _extra(record).items():
        if isinstance(value, str):
            setattr(record, name, mask(redact(value)))
    return True


class _Stderr(logging.Handler):
    """Writes to the current stderr, which a progress bar may have replaced."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line at once, so that lines of several threads do not mix."""
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except (OSError, ValueError, TypeError):
            self.handleError(record)


class JsonLines(logging.Formatter):
    """A record as one line: ts (UTC), level, logger, message, request_id, extra fields, exception."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        current = request_id.get()
        if current is not None:
            line["request_id"] = current
        line.update(_extra(record))
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = record.exc_info[0].__name__
            line["stack"] = _stack(record.exc_info[2])
        return json.dumps(line, ensure_ascii=True, default=str)


class TextLines(logging.Formatter):
    """A record as one short line for people: `dtrag: warning: <message> (<facts>)`."""

    def format(self, record: logging.LogRecord) -> str:
        facts = [f"{name}={value}" for name, value in _extra(record).items()]
        if record.exc_info and record.exc_info[0] is not None:
            facts.append(record.exc_info[0].__name__)
        text = f"{record.getMessage()} ({', '.join(facts)})" if facts else record.getMessage()
        shown = "".join(character if character.isprintable() else " " for character in text)
        return f"dtrag: {record.levelname.lower()}: {shown}"


def _extra(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


def _stack(trace: TracebackType | None) -> list[str]:
    frames = traceback.extract_tb(trace)[-FRAMES:]
    return [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]


class RepeatLimit(logging.Filter):
    """Lets warnings and errors of one kind pass `LINES` times in `WINDOW_S`; the next line of it has `left_out`.

    A kind is the logger, the level, the first line of the message before its arguments are filled in, and the place
    where an exception was raised. Lines below WARNING are facts about work, one for each, and all pass.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._kinds: dict[tuple[object, ...], tuple[float, int]] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is written."""
        if record.levelno < logging.WARNING:
            return True
        kind = _kind(record)
        now = self._monotonic()
        with self._lock:
            since, lines = self._kinds.get(kind, (now, 0))
            if now - since >= WINDOW_S:
                if lines > LINES:
                    record.left_out = lines - LINES
                since, lines = now, 0
            if kind not in self._kinds and len(self._kinds) >= MOST_KINDS:
                self._kinds.clear()
            self._kinds[kind] = (since, lines + 1)
        return lines < LINES


def _kind(record: logging.LogRecord) -> tuple[object, ...]:
    first_line = str(record.msg).partition("\n")[0]
    place: tuple[object, ...] = ()
    if record.exc_info and record.exc_info[0] is not None:
        trace = record.exc_info[2]
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = (record.exc_info[0], trace.tb_frame.f_code if trace else None, trace.tb_lineno if trace else 0)
    return (record.name, record.levelno, first_line, *place)
