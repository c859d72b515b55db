"""Traces: records of the pipeline's runs, by which an answer can be explained later.

They are written with the turn of a conversation, if there is one, else in the background, in batches, so that no answer
waits for its trace. They are not durable: traces that
have not been written when the process is killed are lost, and so are traces that arrive faster than the database stores
them; `close()` writes the queued ones.
"""

from __future__ import annotations

import datetime
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from dtrag.batch_writer import BEGINNING, BatchWriter, TidyTimer, Written, kept_since
from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.trace import Trace
from dtrag.errors import Advice, DatabaseUnavailable, DtragError, InvalidInput, NotFound, StorageFull
from dtrag.pipeline.run_context import Recording
from dtrag.ports import DocumentVisibility, Index, TraceStore
from dtrag.settings import Settings

LEVELS = ("all", "errors", "off")
WRITE_S = 0.2
"""Longest time between an answer and its trace in the database, in seconds, while the database keeps up."""
MOST_WAITING = 2_000
"""Maximum of queued traces; beyond it the oldest are dropped."""
BATCH = 100
"""Traces per statement."""
MAX_LISTED = 1_000
DISK_FULL_LOG_INTERVAL = datetime.timedelta(minutes=1)
"""A full disk is logged at most this often."""
MIN_PAGE = 100
"""Minimum of traces read at once for a list, some of which may not be shown."""
_OF_QUERY = frozenset({"search_query", "entities", "expansions"})
"""Facts that contain words of the query, which may be a rewritten one."""
_LOG = logging.getLogger(__name__)


class Traces:
    """The traces of one app.

    `level`: all, errors (only runs in which something failed, timed out or was degraded) or off. Traces older than
    `days()` are deleted; 0 keeps all. With `text`, questions, answers, prompts and replies are stored as well.
    """

    def __init__(
        self,
        store: TraceStore,
        sight: DocumentVisibility,
        index: Index,
        *,
        level: str = "all",
        days: Callable[[], int] = lambda: 30,
        text: bool = False,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ):
        if level not in LEVELS:
            raise InvalidInput(f"Unknown trace level {level[:20]!r}. Levels: {', '.join(LEVELS)}.")
        self._store = store
        self._sight = sight
        self._index = index
        self._level = level
        self._days = days
        self._text = text
        self._now = now
        self._dropped = 0
        self._disk_full_logged = BEGINNING
        self._writer: BatchWriter[Trace] = BatchWriter(
            "traces", self._write_batch, batch_size=BATCH, delay=WRITE_S, log=_LOG, prepare=self._before_writing
        )
        self._tidy_timer = TidyTimer(now, monotonic)

    @classmethod
    def of(
        cls, settings: Settings, store: TraceStore, sight: DocumentVisibility, index: Index, days: Callable[[], int]
    ) -> Traces:
        """The traces as configured. Raises `InvalidInput` for an invalid setting."""
        if settings.trace_text not in {"on", "off"}:
            raise InvalidInput(f"DTRAG_TRACE_TEXT is {settings.trace_text[:20]!r}, but must be on or off.")
        text = settings.trace_text == "on"
        return cls(store, sight, index, level=settings.traces, days=days, text=text)

    @property
    def level(self) -> str:
        """Which runs are stored."""
        return self._level

    def recording(self) -> Recording:
        """The recording for a new run."""
        return Recording(keeps_text=self._text)

    async def keep(self, trace: Trace) -> None:
        """Queue the trace, if its run is to be stored; returns at once."""
        if self._level == "off" or (self._level == "errors" and not trace.troubled):
            return
        if len(self._writer) >= MOST_WAITING:
            self._writer.drop_oldest()
            self._dropped += 1
        self._writer.add(trace if self._text else trace.without_text())

    async def with_queued(self, write: Callable[[Sequence[Trace]], Awaitable[Written]]) -> Written:
        """What `write` returns, which stores the queued traces with rows of its own in one transaction.

        If it fails, they stay queued; if not because of the database, it is called again without any.
        """
        try:
            return await self._writer.with_queued(write)
        except DtragError:
            raise
        except Exception:  # noqa: BLE001 - boundary: a trace that cannot be stored must not block what is stored with it
            return await write(())

    async def get(self, trace_id: str | uuid.UUID, *, caller: Caller = LOCAL) -> Trace:
        """A trace that the caller may see. Raises `NotFound`, for unknown and inaccessible ids alike.

        Unscoped administrators may read other users' traces. A trace is hidden from callers who may not see every
        document that its answer is based on; after a document was deleted, the trace's texts are withheld.
        """
        try:
            identifier = uuid.UUID(str(trace_id))
        except ValueError as error:
            raise _not_found(trace_id) from error
        await self._flush()
        trace = await self._store.get(identifier, self._since())
        if trace is not None and (_sees_all(caller) or trace.owner == caller.owner):
            for shown in await self._visible([trace], caller):
                return shown
        raise _not_found(trace_id)

    async def titles(self, traces: Sequence[Trace], *, caller: Caller = LOCAL) -> dict[str, str]:
        """Document id -> title of the documents of the traces that the caller may see, in the order of the traces.

        The order of the database depends on documents that the caller may not see.
        """
        document_ids = _documents(traces)
        if not document_ids:
            return {}
        scope = caller.access.resolved((await self._index.snapshot()).taxonomy)
        titles = await self._sight.titles(document_ids, scope)
        return {str(key): titles[key] for key in document_ids if key in titles}

    async def newest(self, limit: int = 20, *, caller: Caller = LOCAL) -> list[Trace]:
        """The newest traces that the caller may see, newest first."""
        if not 1 <= limit <= MAX_LISTED:
            raise InvalidInput(f"limit must be from 1 to {MAX_LISTED:,}.")
        await self._flush()
        owner = None if _sees_all(caller) else caller.owner
        shown: list[Trace] = []
        last: Trace | None = None
        page_size = max(limit, MIN_PAGE)
        while len(shown) < limit:
            page = await self._store.newest(page_size, owner, self._since(), last)
            shown += await self._visible(page, caller)
            if len(page) < page_size:
                break
            last = page[-1]
        return shown[:limit]

    async def tidy(self) -> int:
        """Delete expired traces; returns their number."""
        return await self._store.forget(self._since()) if self._days() else 0

    async def close(self) -> None:
        """Write the queued traces. Those that cannot be written are lost, which is logged."""
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
        if self._days() and self._level != "off" and self._tidy_timer.due():
            await self.tidy()

    async def _write_batch(self, batch: list[Trace]) -> None:
        try:
            await self._store.add(batch)
        except DatabaseUnavailable:
            raise
        except StorageFull:
            # The remaining disk space is for the database and the audit log.
            if self._now() - self._disk_full_logged >= DISK_FULL_LOG_INTERVAL:
                self._disk_full_logged = self._now()
                _LOG.warning("traces are not kept while the disk is full")
        except Exception:  # noqa: BLE001 - boundary: a trace that cannot be stored must not block the others
            _LOG.error("%d traces could not be stored and are dropped", len(batch), exc_info=True)

    def _since(self) -> datetime.datetime:
        return kept_since(self._now(), self._days())

    async def _visible(self, traces: Sequence[Trace], caller: Caller) -> list[Trace]:
        document_ids = _documents(traces)
        if not document_ids:
            return list(traces)
        scope = caller.access.resolved((await self._index.snapshot()).taxonomy)
        visible = {str(document_id) for document_id in await self._sight.visible(document_ids, scope)}
        shown = []
        for trace in traces:
            if visible.issuperset(filter(None, trace.document_ids)):
                shown.append(trace)
            elif scope.nodes is None:  # of the whole tree: the missing documents were deleted
                shown.append(_withheld(trace))
        return shown


def _documents(traces: Sequence[Trace]) -> list[uuid.UUID]:
    ids = dict.fromkeys(document_id for trace in traces for document_id in trace.document_ids if document_id)
    return [uuid.UUID(document_id) for document_id in ids]


def _sees_all(caller: Caller) -> bool:
    return caller.may("admin") and not caller.access.grants


def _withheld(trace: Trace) -> Trace:
    """The trace with the question but without other texts; a rewritten query may quote the history."""
    steps = (
        replace(step, facts={name: value for name, value in step.facts.items() if name not in _OF_QUERY})
        for step in trace.steps
    )
    return replace(trace.without_text(), question=trace.question, steps=tuple(steps))


def _not_found(trace_id: object) -> NotFound:
    return NotFound(f"There is no trace {str(trace_id)[:60]!r} that you may see.", Advice.LIST_TRACES)
