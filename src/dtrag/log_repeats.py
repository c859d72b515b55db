"""Log lines that say the same again and again: a few of them are written, the others are counted."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

LINES = 10
WINDOW_S = 10.0
"""At most `LINES` of one kind are written within so many seconds."""
MOST_KINDS = 500
"""Kinds of lines that are remembered; beyond, all start anew."""


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
