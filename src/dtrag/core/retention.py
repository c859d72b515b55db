"""Retention: which data is expired, and when to delete it: about every hour, and never right after a clock jump."""

from __future__ import annotations

import datetime
import logging
import math
import time
from collections.abc import Callable

EVERY_S = 3_600.0
JUMP_S = 86_400.0
"""A larger difference between the clock and the time that has really passed is a jump, not drift: retention is in
days."""
HOLD_S = 86_400.0
"""Seconds after a jump in which nothing is deleted, so that a wrong clock can be noticed and corrected."""
BEGINNING = datetime.datetime.min.replace(tzinfo=datetime.UTC)
_LOG = logging.getLogger(__name__)


def kept_since(now: datetime.datetime, days: int) -> datetime.datetime:
    """Start of the retention period: data from before it is expired. 0 days: nothing expires."""
    return now - datetime.timedelta(days=days) if days else BEGINNING


class TidyTimer:
    """Tells when to delete expired data. `now` is the clock, which can jump; `monotonic` counts seconds."""

    def __init__(self, now: Callable[[], datetime.datetime], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._monotonic = monotonic
        self._last: tuple[datetime.datetime, float] | None = None
        self._next = -math.inf

    def due(self) -> bool:
        """Whether to delete now; after True it is False for an hour."""
        now, passed = self._now(), self._monotonic()
        if self._last is not None:
            jump = (now - self._last[0]).total_seconds() - (passed - self._last[1])
            if abs(jump) > JUMP_S:
                _LOG.warning("the clock jumped by %.0f hours; no expired data is deleted for a day", jump / 3_600)
                self._next = passed + HOLD_S
        self._last = (now, passed)
        if passed < self._next:
            return False
        self._next = passed + EVERY_S
        return True
