"""Deletes interactions with the case memory after a number of days; votes and decisions stay."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from dtrag.core.retention import TidyTimer, kept_since
from dtrag.ports import CaseStore


class LogExpiry:
    """Expires the interactions of one store. `days` 0: none expires."""

    def __init__(
        self,
        store: CaseStore,
        days: int,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._days = days
        self._now = now
        self._timer = TidyTimer(now, monotonic)

    async def tidy(self) -> int:
        """Delete what is expired, about once an hour; returns its number."""
        if not self._days or not self._timer.due():
            return 0
        return await self._store.forget_logs(kept_since(self._now(), self._days))
