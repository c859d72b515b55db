"""The audit log: who did what, in which scope, on which ids, with which decision; never the text of a document.

`record` is for changes and refusals: the line is durable when it returns. `note` is for reads: its line is written at
most `NOTE_S` later, with others. One task writes both in batches, so that many callers share a flush to disk.

Lines that the database cannot take (it is down, its disk is full) go to a spool file, which is durable too, and from
there to the log when the database is back, in this process or the next. Spooled entries are compared with the log
first, so that none is written twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Unpack

from dtrag.batch_writer import BatchWriter
from dtrag.core.access.audit_chain import (
    MAX_SUBJECTS,
    START,
    AuditEntry,
    AuditFilter,
    AuditOptions,
    AuditRow,
    ChainHead,
    ChainVerdict,
    Decision,
    content,
    settled,
    verify,
)
from dtrag.core.text.personal_data_policy import OFF, PersonalDataPolicy
from dtrag.errors import DatabaseUnavailable, DtragError, InvalidInput
from dtrag.ports import AuditSpoolStore, AuditStore

LEVELS = ("all", "changes", "off")
NOTE_S = 0.2
"""Longest time between a read and its line in the log, in seconds: a crash loses no more than that."""
MOST_WAITING = 5_000
"""Longest queue of lines; further reads wait until it is written."""
BATCH = 1_000
"""Lines per transaction."""
SPOOLED_S = 1.0
"""Time between attempts to move spooled lines to the log, in seconds."""
LEFT_OUT = "audit.left_out"
"""Action of the line that gives the number of reads whose lines were lost."""
PAGE = 2_000
"""Lines that `verify` reads at a time."""
MAX_LISTED = 10_000

Queued = tuple[AuditEntry, asyncio.Future[None] | None]
"""A line to be written, and for `record` what its caller awaits."""
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
        personal_data: PersonalDataPolicy = OFF,
    ):
        self._personal_data = personal_data
        if level not in LEVELS:
            raise InvalidInput(f"Unknown audit level {level[:20]!r}. Levels: {', '.join(LEVELS)}.")
        self._store = store
        self._level = level
        self._now = now
        self._spool = spool
        self._spooled = False
        self._left_out = 0
        self._writer: BatchWriter[Queued] = BatchWriter(
            "the audit log",
            self._write,
            batch_size=BATCH,
            delay=NOTE_S,
            log=_LOG,
            prepare=self._unspool_if_possible,
            on_failure=_reject_records,
        )

    @property
    def level(self) -> str:
        """What is logged: all, changes or off."""
        return self._level

    async def record(self, actor: str, action: str, **options: Unpack[AuditOptions]) -> None:
        """Write a line; it is durable when this returns. Raises `DatabaseUnavailable` when it could not be written.

        More subjects than a line may have are divided among several lines: a deletion must name all documents.
        """
        if self._level == "off":
            return
        subjects, now = options["subjects"], self._now()
        for start in range(0, len(subjects) or 1, MAX_SUBJECTS):
            written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            some: AuditOptions = {**options, "subjects": subjects[start : start + MAX_SUBJECTS]}
            self._writer.add((self._entry(now, actor, action, some), written), urgent=True)
            await written

    async def note(self, actor: str, action: str, **options: Unpack[AuditOptions]) -> None:
        """Write a line soon. Returns at once, unless `MOST_WAITING` lines are queued: then after they are written.

        Raises `DatabaseUnavailable` when the queue is full and cannot be written.
        """
        if self._level != "all":
            return
        while len(self._writer) >= MOST_WAITING:
            try:
                await self._writer.flush()
            except DtragError as error:
                if self._spool is None:
                    raise
                # The disk is full, too: reads continue, and a later line says how many lines were lost.
                _reject_records([self._writer.drop_oldest()], error)
                self._left_out += 1
        self._writer.add((self._entry(self._now(), actor, action, options), None))

    def _entry(self, at: datetime, actor: str, action: str, options: AuditOptions) -> AuditEntry:
        """The line, masked before its hash is computed."""
        mask = self._personal_data.masked_value
        if self._personal_data.masks:
            options = {
                **options,
                "scope": mask(options["scope"]),
                "subjects": mask(list(options["subjects"])),
                "details": mask(options["details"]),
            }
        return AuditEntry(at, self._personal_data.masked(actor), action, **options)

    async def newest(
        self,
        *,
        limit: int = 100,
        before: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        actor: str | None = None,
        action: str | None = None,
        decision: Decision | None = None,
        subject: str | None = None,
    ) -> list[AuditRow]:
        """The newest lines with a number below `before`, a time from `since` on and before `until`, by `actor`.

        Of actions that contain `action` in any case, with this decision, about the object with the id `subject`.
        Raises `InvalidInput` for a limit out of range, and when `until` is not later than `since`.
        """
        if not 1 <= limit <= MAX_LISTED:
            raise InvalidInput(f"limit must be from 1 to {MAX_LISTED:,}.")
        if since is not None and until is not None and since >= until:
            raise InvalidInput(
                f"No line can lie since {since.isoformat()} and before {until.isoformat()}: `until` must be later than "
                "`since`. Exchange them."
            )
        await self._writer.flush()
        filters = AuditFilter(before, since, until, actor, action, decision, subject)
        return await self._store.newest(limit, filters)

    async def lines(self, page: int = PAGE) -> AsyncIterator[AuditRow]:
        """All lines, oldest first."""
        await self._writer.flush()
        number = START.number
        while rows := await self._store.page(number, page):
            for row in rows:
                yield row
            number = rows[-1].number

    async def verify(
        self, expected: ChainHead | None = None, on_progress: Callable[[int], None] | None = None
    ) -> ChainVerdict:
        """Check the hash chain, and that the log still contains the line `expected`.

        Without `expected`, the removal of the newest lines cannot be detected: store the returned head elsewhere.
        """
        await self._writer.flush()
        head = START
        while True:
            rows = await self._store.page(head.number, PAGE)
            verdict = verify(rows, head)
            if not verdict.ok:
                return verdict
            for row in rows:
                if expected is not None and row.number == expected.number and row.hash != expected.hash:
                    return ChainVerdict(False, head, row.number, f"line {row.number} differs from the expected one")
            head = verdict.head
            if on_progress is not None:
                on_progress(head.number)
            if len(rows) < PAGE:
                break
        if expected is not None and expected.number > head.number:
            reason = f"the log ends with line {head.number}, before the expected line {expected.number}"
            return ChainVerdict(False, head, head.number + 1, reason)
        return ChainVerdict(True, head)

    async def recover(self) -> int:
        """Move the lines that earlier processes spooled to the log; returns their number."""
        if self._spool is None or self._level == "off":
            return 0
        async with self._writer.writing:
            return await self._unspool()

    async def close(self) -> None:
        """Write all queued lines: to the log, or to the spool when the database is down."""
        await self._writer.stop()
        try:
            await self._writer.flush()
        except DtragError as error:
            _LOG.error("%d lines of the audit log could not be written", len(self._writer), exc_info=error)
        if self._spool is not None:
            self._spool.close()

    async def _write(self, batch: list[Queued]) -> None:
        await self._append([entry for entry, _ in batch])
        for _, written in batch:
            if written is not None and not written.done():
                written.set_result(None)

    async def _append(self, entries: list[AuditEntry]) -> None:
        """Write to the log, or to the spool when the log fails or the spool holds earlier entries."""
        failure: DtragError | None = None
        if not self._spooled:
            try:
                await self._store.append(entries)
            except DtragError as error:
                if self._spool is None:
                    raise
                failure = error
            else:
                return
        if self._spool is not None:
            try:
                await asyncio.to_thread(self._spool.add, entries)
            except OSError as error:
                reason = f"lines of the audit log cannot be written anywhere ({error.strerror})."
                raise DatabaseUnavailable(reason=reason) from error
            if not self._spooled:
                _LOG.warning("lines of the audit log are spooled until the database takes them", exc_info=failure)
            self._set_spooled(True)

    def _set_spooled(self, spooled: bool) -> None:
        self._spooled = spooled
        self._writer.retry_after = SPOOLED_S if spooled else None

    async def _unspool_if_possible(self) -> None:
        if self._spooled or self._left_out:
            with suppress(DtragError):
                await self._unspool()

    async def _unspool(self) -> int:
        """Move the spooled lines to the log; returns how many it lacked. Raises `DatabaseUnavailable`."""
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
        self._set_spooled(False)
        if left_out := self._left_out:
            await self._store.append(
                [AuditEntry(self._now(), "dtrag", LEFT_OUT, None, (), "done", {"lines": left_out})]
            )
            self._left_out -= left_out
        if moved:
            _LOG.warning("%d spooled lines of the audit log were written", moved)
        return moved

    async def _missing(self, entries: Sequence[AuditEntry]) -> list[AuditEntry]:
        """Entries that the log lacks: an append whose confirmation was lost may have succeeded."""
        if not entries:
            return []
        since, before = min(entry.at for entry in entries), None
        logged: set[bytes] = set()
        while rows := await self._store.newest(PAGE, AuditFilter(before, since)):
            logged.update(content(0, row.entry) for row in rows)
            before = rows[-1].number
        return [entry for entry in entries if content(0, settled(entry)) not in logged]


def _reject_records(queued: list[Queued], error: Exception) -> list[Queued]:
    """Pass the error to the callers of `record`; the lines of `note`, which stay queued."""
    for _, written in queued:
        if written is not None and not written.done():
            written.set_exception(error)
    return [(entry, written) for entry, written in queued if written is None]
