"""The clock by which limits are measured, moved by a test: what takes seconds in production takes none in it.

Limits are measured by the event loop (`dtrag.concurrency.limit_clock`, `asyncio.timeout`, `asyncio.wait`). Real time
goes on as well, so threads, files and databases work as ever.
"""

from __future__ import annotations

import asyncio

import pytest_asyncio


class Clock:
    """The clock of the running event loop: real time, and the seconds that the test has added to it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._real = loop.time
        self._added = 0.0

    def time(self) -> float:
        """Seconds, as `loop.time()` gives them."""
        return self._real() + self._added

    def advance(self, seconds: float) -> None:
        """Let so many seconds pass at once; timers that are due then run when the caller awaits."""
        self._added += seconds

    async def sleep(self, seconds: float) -> None:
        """As `asyncio.sleep`, without the wait. Tasks that sleep at the same time sleep side by side."""
        end = self.time() + seconds
        await asyncio.sleep(0)  # the others begin their sleep
        self.advance(max(0.0, end - self.time()))
        for _ in range(10):  # a limit that has passed meanwhile cancels this task here, after a few turns of the loop
            await asyncio.sleep(0)


@pytest_asyncio.fixture
async def clock() -> Clock:
    """The clock of the running event loop, to be moved by the test. It stays moved: a clock never goes back."""
    loop = asyncio.get_running_loop()
    moved = getattr(loop.time, "__self__", None)
    if not isinstance(moved, Clock):
        moved = Clock(loop)
        setattr(loop, "time", moved.time)  # noqa: B010 - a type checker knows it as a method
    return moved
