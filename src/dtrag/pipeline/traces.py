"""Traces: what happened in the runs of the pipeline, kept so that an answer can be looked into later.

They are written in the background, in batches: an answer never waits for its trace. Nothing of that is promised to be
durable. What has not been written yet when the process is killed is lost, and so are traces that come faster than the
database takes them; `close()` writes what waits.
"""

from __future__ import annotations

import datetime
import logging
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace

from dtrag.batch_writer import BatchWriter
from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.retention import BEGINNING, TidyTimer, kept_since
from dtrag.core.trace import Trace
from dtrag.errors import DatabaseUnavailable, InvalidInput, NotFound, StorageFull
from dtrag.pipeline.run import Recording
from dtrag.ports import DocumentVisibility, Index, TraceStore
from dtrag.settings import Settings

LEVELS = ("all", "errors", "off")
WRITE_S = 0.2
"""Longest time between an answer and its trace in the database, in seconds, while the database keeps up."""
MOST_WAITING = 2_000
"""Traces that wait to be written; then the oldest of them are dropped."""
BATCH = 100
"""Traces of one statement."""
MAX_LISTED = 1_000
TOLD_EVERY = datetime.timedelta(minutes=1)
"""The service's log says at most so often that the disk is full."""
LEAST_PAGE = 100
"""Traces read at once for a list: with many that are not shown, each page costs a look at the database."""
_LOG = logging.getLogger(__name__)


class Traces:
    """The traces of one app.

    `level`: all, errors (only runs in which something failed, timed out or was degraded) or off. Those older than
    `days` are not there any more; 0 keeps all. With `text` questions, answers, prompts and replies are kept, too.
    """

    def __init__(
        self,
        store: TraceStore,
        sight: DocumentVisibility,
        index: Index,
        *,
        level: str = "all",
        days: int = 30,
        text: bool = False,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ):
        if level not in LEVELS:
            raise InvalidInput(f"There is no trace level {level[:20]!r}. Levels: {', '.join(LEVELS)}.")
        self._store = store
        self._sight = sight
        self._index = index
        self._level = level
        self._days = days
        self._text = text
        self._now = now
        self._dropped = 0
        self._full_told = BEGINNING
        self._writer: BatchWriter[Trace] = BatchWriter(
            "traces", self._write_batch, batch_size=BATCH, delay=WRITE_S, log=_LOG, prepare=self._before_writing
        )
        self._tidy_timer = TidyTimer(now, monotonic)

    @classmethod
    def of(cls, settings: Settings, store: TraceStore, sight: DocumentVisibility, index: Index) -> Traces:
        """As the settings want them."""
        if settings.trace_text not in {"on", "off"}:
            raise InvalidInput(f"DTRAG_TRACE_TEXT is {settings.trace_text[:20]!r}, but must be on or off.")
        text = settings.trace_text == "on"
        return cls(store, sight, index, level=settings.traces, days=settings.trace_days, text=text)

    @property
    def level(self) -> str:
        """Which runs are kept."""
        return self._level

    def recording(self) -> Recording:
        """What a new run notes itself in."""
        return Recording(keeps_text=self._text)

    async def keep(self, trace: Trace) -> None:
        """Have the trace written soon; returns at once. What the settings do not want kept is not."""
        if self._level == "off" or (self._level == "errors" and not trace.troubled):
            return
        if len(self._writer) >= MOST_WAITING:
            self._writer.drop_oldest()
            self._dropped += 1
        self._writer.add(trace if self._text else trace.without_text())

    async def get(self, trace_id: str | uuid.UUID, *, caller: Caller = LOCAL) -> Trace:
        """A trace that the caller may see. Raises `NotFound`, for a foreign one as for one that there is not.

        Of others' runs administrators of the whole tree may see the traces. Who may not see a document any more that
        had a part in the answer may not see the trace; of documents that are gone nobody is shown what was said.
        """
        try:
            wanted = uuid.UUID(str(trace_id))
        except ValueError as error:
            raise _not_found(trace_id) from error
        await self._flush()
        found = await self._store.get(wanted, self._since())
        if found is not None and (_sees_all(caller) or found.owner == caller.owner):
            for shown in await self._seen([found], caller):
                return shown
        raise _not_found(trace_id)

    async def newest(self, limit: int = 20, *, caller: Caller = LOCAL) -> list[Trace]:
        """The newest traces that the caller may see, the newest first."""
        if not 1 <= limit <= MAX_LISTED:
            raise InvalidInput(f"limit must be from 1 to {MAX_LISTED:,}.")
        await self._flush()
        owner = None if _sees_all(caller) else caller.owner
        shown: list[Trace] = []
        last: Trace | None = None
        wanted = max(limit, LEAST_PAGE)
        while len(shown) < limit:
            page = await self._store.newest(wanted, owner, self._since(), last)
            shown += await self._seen(page, caller)
            if len(page) < wanted:
                break
            last = page[-1]
        return shown[:limit]

    async def tidy(self) -> int:
        """Delete what is older than the settings say; returns how many."""
        return await self._store.forget(self._since()) if self._days else 0

    async def close(self) -> None:
        """Write what waits. What cannot be written any more is lost, and the service's log says so."""
        await self._writer.stop()
        await self._flush()
        if len(self._writer):
            _LOG.error("%d traces could not be written", len(self._writer))

    async def _flush(self) -> None:
        """Write everything that is queued; what the database does not take stays queued."""
        try:
            await self._writer.flush()
        except DatabaseUnavailable as error:
            _LOG.warning("traces cannot be written; trying again", exc_info=error)

    async def _before_writing(self) -> None:
        if self._dropped:
            _LOG.warning("%d traces came faster than they could be written and were dropped", self._dropped)
            self._dropped = 0
        if self._days and self._level != "off" and self._tidy_timer.due():
            await self.tidy()

    async def _write_batch(self, batch: list[Trace]) -> None:
        try:
            await self._store.add(batch)
        except DatabaseUnavailable:
            raise
        except StorageFull:
            # What remains of the disk is for the database and the audit log.
            if self._now() - self._full_told >= TOLD_EVERY:
                self._full_told = self._now()
                _LOG.warning("traces are not kept while the disk is full")
        except Exception:  # noqa: BLE001 - boundary: a trace that cannot be stored must not block the others
            _LOG.error("%d traces could not be stored and are dropped", len(batch), exc_info=True)

    def _since(self) -> datetime.datetime:
        return kept_since(self._now(), self._days)

    async def _seen(self, traces: Sequence[Trace], caller: Caller) -> list[Trace]:
        used = {uuid.UUID(document_id) for trace in traces for document_id in trace.document_ids if document_id}
        if not used:
            return list(traces)
        scope = caller.access.resolved((await self._index.snapshot()).taxonomy)
        visible = {str(document_id) for document_id in await self._sight.visible(used, scope)}
        shown = []
        for trace in traces:
            if visible.issuperset(filter(None, trace.document_ids)):
                shown.append(trace)
            elif scope.nodes is None:  # only deleted documents are not visible in the whole tree
                shown.append(_withheld(trace))
        return shown


def _sees_all(caller: Caller) -> bool:
    return caller.may("admin") and not caller.access.grants


def _withheld(trace: Trace) -> Trace:
    """Without what was said but the question; a query that a model wrote out may hold what the history told it."""
    steps = (
        replace(step, facts={name: fact for name, fact in step.facts.items() if name != "search_query"})
        for step in trace.steps
    )
    return replace(trace.without_text(), question=trace.question, steps=tuple(steps))


def _not_found(trace_id: object) -> NotFound:
    found = "`dtrag trace --list 20`, or GET /traces, shows the newest."
    return NotFound(f"There is no trace {str(trace_id)[:60]!r} that you may see. {found}")
