"""The audit log: who asked or did what, over which scope, about which ids, with which decision; never a text.

`record` is for changes and refusals: the line is on disk when it returns. `note` is for reads: its line is written with
others at most `NOTE_S` later. One task writes both in batches, so that many callers share a flush to disk.

What the database cannot take (it is away, its disk is full) goes to a spool file, durable as well, and from there into
the log as soon as the database is back, in this process or in the next one. Entries are compared with what the log
holds already, so that nothing is in it twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from dtrag.core.access.audit_chain import START, Decision, Entry, Head, Row, Verdict, content, settled, verify
from dtrag.errors import DatabaseUnavailable, DtragError, InvalidInput
from dtrag.ports import AuditSpoolStore, AuditStore

LEVELS = ("all", "changes", "off")
NOTE_S = 0.2
"""Longest time between a read and its line in the log, in seconds: a crash loses no more than that."""
MOST_WAITING = 5_000
"""Reads whose lines wait to be written; then the next read waits, too."""
BATCH = 1_000
"""Lines of one transaction."""
SPOOLED_S = 1.0
"""Between attempts to move spooled lines into the log, in seconds."""
LEFT_OUT = "audit.left_out"
"""The action of the line that tells how many lines of reads could be written nowhere."""
PAGE = 2_000
"""Lines that `verify` reads at a time."""
MAX_LISTED = 10_000

_LOG = logging.getLogger(__name__)


class Audit:
    """The audit log of one app. `level`: all, changes (with refusals, without reads) or off."""

    def __init__(
        self,
        store: AuditStore,
        level: str = "all",
        *,
        spool: AuditSpoolStore | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ):
        if level not in LEVELS:
            raise InvalidInput(f"There is no audit level {level[:20]!r}. Levels: {', '.join(LEVELS)}.")
        self._store = store
        self._level = level
        self._now = now
        self._spool = spool
        self._spooled = False
        self._left_out = 0
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
            try:
                await self._flush()
            except DtragError:
                if self._spool is None:
                    raise
                self._waiting.pop(0)  # the disk is full: reads go on, and the log will say how many lines it lacks
                self._left_out += 1
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

    async def recover(self) -> int:
        """Move what earlier processes had to spool into the log; returns the number of lines."""
        if self._spool is None or self._level == "off":
            return 0
        async with self._writing:
            return await self._unspool()

    async def close(self) -> None:
        """Write what waits, to the spool where the database is away."""
        if self._writer is not None:
            self._writer.cancel()
            with suppress(asyncio.CancelledError):
                await self._writer
            self._writer = None
        try:
            await self._flush()
        except DtragError as error:
            _LOG.error("%d lines of the audit log could not be written", len(self._waiting), exc_info=error)
        if self._spool is not None:
            self._spool.close()

    def _start(self) -> None:
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write(), name="dtrag-audit")

    async def _write(self) -> None:
        """Writes until nothing waits and nothing is spooled."""
        failed = False
        while self._waiting or self._spooled:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._urgent.wait(), NOTE_S if self._waiting else SPOOLED_S)
            self._urgent.clear()
            try:
                await asyncio.shield(self._flush())
            except DtragError as error:
                if not failed:
                    _LOG.warning("the audit log cannot be written; trying again", exc_info=error)
                failed = True
                await asyncio.sleep(NOTE_S)
            else:
                failed = False

    async def _flush(self) -> None:
        """Write everything that waits by now, to the log or to the spool.

        Raises `DatabaseUnavailable` when neither takes it; the lines of reads wait on then.
        """
        async with self._writing:
            waiting, self._waiting = self._waiting, []
            try:
                if self._spooled or self._left_out:
                    await self._unspool_if_possible()
                while waiting:
                    await self._append([entry for entry, _ in waiting[:BATCH]])
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

    async def _append(self, entries: list[Entry]) -> None:
        """Write the entries to the log, or to the spool while earlier ones are there or the log cannot be written."""
        refused: DtragError | None = None
        if not self._spooled:
            try:
                await self._store.append(entries)
            except DtragError as error:
                if self._spool is None:
                    raise
                refused = error
            else:
                return
        if self._spool is not None:
            try:
                await asyncio.to_thread(self._spool.add, entries)
            except OSError as error:
                raise DatabaseUnavailable(reason="lines of the audit log cannot be written anywhere.") from error
            if not self._spooled:
                _LOG.warning("lines of the audit log are spooled until the database takes them", exc_info=refused)
            self._spooled = True

    async def _unspool_if_possible(self) -> None:
        with suppress(DtragError):
            await self._unspool()

    async def _unspool(self) -> int:
        """Move the spooled lines into the log; returns how many were not in it yet. Raises `DatabaseUnavailable`."""
        spool, moved = self._spool, 0
        if spool is None:
            return 0
        for path in await asyncio.to_thread(spool.left):
            entries = await asyncio.to_thread(spool.read, path)
            missing = await self._missing(entries)
            for start in range(0, len(missing), BATCH):
                await self._store.append(missing[start : start + BATCH])
            await asyncio.to_thread(spool.remove, path)
            moved += len(missing)
        self._spooled = False
        if left_out := self._left_out:
            await self._store.append([Entry(self._now(), "dtrag", LEFT_OUT, None, (), "done", {"lines": left_out})])
            self._left_out -= left_out
        if moved:
            _LOG.warning("%d spooled lines of the audit log were written", moved)
        return moved

    async def _missing(self, entries: Sequence[Entry]) -> list[Entry]:
        """Those that the log does not hold: an append whose confirmation was lost may have succeeded."""
        if not entries:
            return []
        since, before = min(entry.at for entry in entries), None
        held: set[bytes] = set()
        while rows := await self._store.newest(PAGE, before, since, None):
            held.update(content(0, row.entry) for row in rows)
            before = rows[-1].number
        return [entry for entry in entries if content(0, settled(entry)) not in held]
