"""When data past its retention is deleted: about every hour, and never right after the clock has jumped."""

from __future__ import annotations

import datetime
import logging
import math
import time
from collections.abc import Callable

EVERY_S = 3_600.0
JUMP_S = 86_400.0
"""A difference between the clock and the time that has really passed which is no drift: retention counts days."""
HOLD_S = 86_400.0
"""Seconds after a jump in which nothing is deleted: time to notice and put right a wrong clock."""
_LOG = logging.getLogger(__name__)


class TidyTimer:
    """Says when it is time to delete. `now` is the clock that can jump, `monotonic` the seconds that have passed."""

    def __init__(self, now: Callable[[], datetime.datetime], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._monotonic = monotonic
        self._last: tuple[datetime.datetime, float] | None = None
        self._next = -math.inf

    def due(self) -> bool:
        """Whether it is time; the next time is an hour later."""
        now, passed = self._now(), self._monotonic()
        if self._last is not None:
            jump = (now - self._last[0]).total_seconds() - (passed - self._last[1])
            if abs(jump) > JUMP_S:
                _LOG.warning("the clock jumped by %.0f hours; nothing old is deleted for a day", jump / 3_600)
                self._next = passed + HOLD_S
        self._last = (now, passed)
        if passed < self._next:
            return False
        self._next = passed + EVERY_S
        return True
