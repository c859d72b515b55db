"""The audit log: who asked or did what, over which scope, about which ids, with which decision; never a text.

`record` is for changes and refusals: the line is on disk when it returns. `note` is for reads: its line is written with
others at most `NOTE_S` later. One task writes both in batches, so that many callers share a flush to disk.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Protocol

from dtrag.core.chain import START, Decision, Entry, Head, Row, Verdict, verify
from dtrag.errors import DtragError, InvalidInput
from dtrag.ports import AuditStore

LEVELS = ("all", "changes", "off")
NOTE_S = 0.2
"""Longest time between a read and its line in the log, in seconds: a crash loses no more than that."""
MOST_WAITING = 5_000
"""Reads whose lines wait to be written; then the next read waits, too."""
BATCH = 1_000
"""Lines of one transaction."""
PAGE = 2_000
"""Lines that `verify` reads at a time."""
MAX_LISTED = 10_000

_LOG = logging.getLogger(__name__)


class Recorder(Protocol):
    """Writes a line of the audit log; `Audit.record` is one."""

    async def __call__(
        self,
        actor: str,
        action: str,
        *,
        scope: list[Any] | None,
        subjects: Sequence[str],
        decision: Any,
        details: Mapping[str, Any],
    ) -> object: ...


async def unrecorded(actor: str, action: str, **line: object) -> None:
    """Where there is no audit log."""


class Audit:
    """The audit log of one app. `level`: all, changes (with refusals, without reads) or off."""

    def __init__(
        self, store: AuditStore, level: str = "all", *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ):
        if level not in LEVELS:
            raise InvalidInput(f"There is no audit level {level[:20]!r}. Levels: {', '.join(LEVELS)}.")
        self._store = store
        self._level = level
        self._now = now
        self._waiting: list[tuple[Entry, asyncio.Future[None] | None]] = []
        self._writer: asyncio.Task[None] | None = None
        self._urgent = asyncio.Event()
        self._writing = asyncio.Lock()

    @property
    def level(self) -> str:
        """What is logged."""
        return self._level

    async def record(
        self,
        actor: str,
        action: str,
        *,
        scope: list[Any] | None,
        subjects: Sequence[str],
        decision: Decision,
        details: Mapping[str, Any],
    ) -> None:
        """Write a line; it is durable when this returns. Raises `DatabaseUnavailable` when it could not be written."""
        if self._level == "off":
            return
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((Entry(self._now(), actor, action, scope, subjects, decision, details), written))
        self._start()
        self._urgent.set()
        await written

    async def note(
        self,
        actor: str,
        action: str,
        *,
        scope: list[Any] | None,
        subjects: Sequence[str],
        decision: Decision,
        details: Mapping[str, Any],
    ) -> None:
        """Write a line soon. Returns at once, unless too many wait: then when there is room again.

        Raises `DatabaseUnavailable` when there is no room and none can be made.
        """
        if self._level != "all":
            return
        while len(self._waiting) >= MOST_WAITING:
            await self._flush()
        self._waiting.append((Entry(self._now(), actor, action, scope, subjects, decision, details), None))
        self._start()

    async def newest(
        self, *, limit: int = 100, before: int | None = None, since: datetime | None = None, actor: str | None = None
    ) -> list[Row]:
        """Lines, the newest first: those with numbers below `before`, not older than `since`, of `actor`."""
        if not 1 <= limit <= MAX_LISTED:
            raise InvalidInput(f"limit must be from 1 to {MAX_LISTED:,}.")
        await self._flush()
        return await self._store.newest(limit, before, since, actor)

    async def verify(self, expected: Head | None = None, on_progress: Callable[[int], None] | None = None) -> Verdict:
        """Whether the log is what was written, and still holds the line that `expected` names.

        Without `expected` a log whose newest lines were cut off looks whole: keep the head that this returns elsewhere.
        """
        await self._flush()
        head = START
        while True:
            rows = await self._store.page(head.number, PAGE)
            verdict = verify(rows, head)
            if not verdict.ok:
                return verdict
            for row in rows:
                if expected is not None and row.number == expected.number and row.hash != expected.hash:
                    return Verdict(False, head, row.number, f"line {row.number} is another than the expected one")
            head = verdict.head
            if on_progress is not None:
                on_progress(head.number)
            if len(rows) < PAGE:
                break
        if expected is not None and expected.number > head.number:
            reason = f"the log ends with line {head.number}, before the expected line {expected.number}"
            return Verdict(False, head, head.number + 1, reason)
        return Verdict(True, head)

    async def close(self) -> None:
        """Write what waits. What cannot be written any more is told in the service's log."""
        if self._writer is not None:
            self._writer.cancel()
            with suppress(asyncio.CancelledError):
                await self._writer
            self._writer = None
        try:
            await self._flush()
        except DtragError as error:
            _LOG.error("%d lines of the audit log could not be written", len(self._waiting), exc_info=error)

    def _start(self) -> None:
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write(), name="dtrag-audit")

    async def _write(self) -> None:
        """Writes until nothing waits."""
        while self._waiting:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._urgent.wait(), NOTE_S)
            self._urgent.clear()
            try:
                await asyncio.shield(self._flush())
            except DtragError as error:
                _LOG.warning("the audit log cannot be written; trying again", exc_info=error)
                await asyncio.sleep(NOTE_S)

    async def _flush(self) -> None:
        """Write everything that waits by now. Raises `DatabaseUnavailable`; the lines of reads wait on then."""
        async with self._writing:
            waiting, self._waiting = self._waiting, []
            try:
                while waiting:
                    await self._store.append([entry for entry, _ in waiting[:BATCH]])
                    for _, written in waiting[:BATCH]:
                        if written is not None and not written.done():
                            written.set_result(None)
                    del waiting[:BATCH]
            except Exception as error:
                for _, written in waiting:
                    if written is not None and not written.done():
                        written.set_exception(error)
                raise
            finally:
                self._waiting[:0] = [(entry, written) for entry, written in waiting if written is None]
