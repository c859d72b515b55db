"""A background task that writes queued items in batches: for the lines of the audit log, and for traces;
and when expired data is deleted.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Generic, TypeVar

from dtrag.errors import DtragError

Item = TypeVar("Item")
Written = TypeVar("Written")


async def _nothing() -> None:
    return


class BatchWriter(Generic[Item]):
    """Writes items in the order in which they were added, `batch_size` at a time, at most `delay` seconds later.

    `write` stores one batch, or raises. Items of a failed batch and those after it stay queued and are tried again,
    unless `on_failure`, which gets them and the error, returns fewer. `prepare` runs before each flush. While
    `retry_after` is set, a flush runs again after so many seconds, also when nothing is queued. `subject` names the
    items in logs ("traces").
    """

    def __init__(
        self,
        subject: str,
        write: Callable[[list[Item]], Awaitable[object]],
        *,
        batch_size: int,
        delay: float,
        log: logging.Logger,
        prepare: Callable[[], Awaitable[None]] = _nothing,
        on_failure: Callable[[list[Item], Exception], Iterable[Item]] = lambda items, error: items,
    ) -> None:
        self._subject = subject
        self._write = write
        self._batch_size = batch_size
        self._delay = delay
        self._log = log
        self._prepare = prepare
        self._on_failure = on_failure
        self._queue: deque[Item] = deque()
        self._task: asyncio.Task[None] | None = None
        self._urgent = asyncio.Event()
        self.retry_after: float | None = None
        self.writing = asyncio.Lock()
        """Held during a flush: one writer at a time."""

    def __len__(self) -> int:
        """Number of queued items."""
        return len(self._queue)

    def add(self, item: Item, *, urgent: bool = False) -> None:
        """Queue an item; an urgent one does not wait for `delay`."""
        self._queue.append(item)
        if urgent:
            self._urgent.set()
        self.start()

    def drop_oldest(self) -> Item:
        """Remove the oldest item from the queue."""
        return self._queue.popleft()

    def start(self) -> None:
        """Start the background task, unless it is running."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name=f"dtrag-{self._subject}")

    async def flush(self) -> None:
        """Write everything that is queued now. Raises what `write` raises."""
        async with self.writing:
            items, self._queue = self._queue, deque()
            try:
                await self._prepare()
                while batch := list(islice(items, self._batch_size)):
                    await self._write(batch)
                    for _ in batch:
                        items.popleft()
            except Exception as error:
                items = deque(self._on_failure(list(items), error))
                raise
            finally:
                self._queue.extendleft(reversed(items))

    async def with_queued(self, write: Callable[[Sequence[Item]], Awaitable[Written]]) -> Written:
        """What `write` returns, which stores the next queued items together with something of the caller's.

        It gets none during a flush. If it raises, they stay queued.
        """
        if self.writing.locked():
            return await write(())
        async with self.writing:
            items = [self._queue.popleft() for _ in range(min(self._batch_size, len(self._queue)))]
            try:
                return await write(items)
            except BaseException:
                self._queue.extendleft(reversed(items))
                raise

    async def stop(self) -> None:
        """End the background task. Queued items stay: `flush` writes them."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _run(self) -> None:
        """Flush until the queue is empty and there is nothing to retry. Logs the first failure of a series."""
        failing = False
        while self._queue or self.retry_after is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._urgent.wait(), self._delay if self._queue else self.retry_after)
            self._urgent.clear()
            try:
                await asyncio.shield(self.flush())
            except DtragError as error:
                if not failing:
                    self._log.warning("%s cannot be written; trying again", self._subject, exc_info=error)
                failing = True
                await asyncio.sleep(self._delay)
            else:
                failing = False


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
