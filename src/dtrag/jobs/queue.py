"""Runs stored jobs in this process, and shows and changes them for callers.

A job is taken with a lease that is extended while it runs. A process that dies or stalls loses it, and another one
takes the job; whatever the first still writes is refused, because each of its transactions checks the lease.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from dtrag.core.access.api_key import LOCAL, Caller
from dtrag.core.access.scope import scope_rows
from dtrag.core.documents import uuid_or_none
from dtrag.core.job import LEASE, Job, JobCount, NewJob, State
from dtrag.errors import (
    Advice,
    Conflict,
    DatabaseUnavailable,
    DtragError,
    FeatureOff,
    Forbidden,
    IndexMismatch,
    InvalidInput,
    LeaseLost,
    MissingExtra,
    NotFound,
    Overloaded,
    ParseFailed,
    StorageFull,
)
from dtrag.ports import JobStore, Recorder

BEAT_S = LEASE.total_seconds() / 4
"""Seconds between two extensions of a lease: three of them may fail."""
LOOK_EVERY_S = 2.0
"""Seconds after which an idle process looks for jobs of other processes."""
MOST_LOST = 10
"""How often a job may lose its process before it has failed: the job itself may be what ends processes."""
MOST_WAITING = 1_000
"""Jobs of one maker that have not ended."""
MAX_LISTED = 1_000
NOT_TAKEN_S = 60.0
"""Seconds after which a job that waits should have been taken."""
FORGET_EVERY_S = 3_600.0
KEPT = timedelta(days=7)
"""Jobs that ended, and the files of failed ones, are deleted after this time."""
FIRST_PAUSE_S = 2.0
"""Pause after the first failure; it doubles with each further one."""
LOST = "The process that ran it has ended or did not respond any more."
CANCELLED = "Cancelled by {name}."
_PERMANENT = (Conflict, FeatureOff, Forbidden, IndexMismatch, InvalidInput, MissingExtra, NotFound, ParseFailed)
"""Errors that another attempt does not change."""
_NAMES = uuid.UUID("6f5d5f2e-6f0b-4c39-9d2f-3a8e4c1b7a10")
_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class Running:
    """A job that runs here for `caller`, its maker; `folder` is for its files.

    The work notes its progress and its result; both are stored when the lease is extended and when the job ends.
    """

    job: Job
    caller: Caller
    folder: Path
    done: int = 0
    total: int = 0
    result: Mapping[str, Any] | None = None

    def progress(self, done: int, total: int) -> None:
        """Note how much is durable."""
        self.done, self.total = done, total


@dataclass(frozen=True, slots=True)
class JobKind:
    """What jobs of a kind do. One in the `background` leaves a place of the process to others.

    `attempts` None: it is tried for ever. With `due` there is one job of the kind, which runs when that finds work.
    """

    run: Callable[[Running], Awaitable[None]]
    background: bool = False
    attempts: int | None = 6
    longest_pause: timedelta = timedelta(minutes=10)
    due: Callable[[], Awaitable[bool]] | None = None
    priority: int = 0


def standing_id(kind: str) -> uuid.UUID:
    """The id of the only job of a kind."""
    return uuid.uuid5(_NAMES, kind)


@dataclass(slots=True)
class Jobs:
    """The jobs of one database. `kinds` are those that this process can run, at most `at_once` at a time.

    `caller_of` gives the maker of a job with the access of now. Raises `Forbidden` for one that has none any more.
    """

    store: JobStore
    record: Recorder
    caller_of: Callable[[Job], Awaitable[Caller]]
    at_once: int = 2
    kinds: dict[str, JobKind] = field(default_factory=dict)
    worker: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:6]}")
    _running: dict[asyncio.Task[None], str] = field(default_factory=dict)
    _new: asyncio.Event = field(default_factory=asyncio.Event)
    _folder: Path = field(default_factory=Path)
    _forgotten: float = -FORGET_EVERY_S

    async def add(self, job: NewJob, files: Sequence[Path] = ()) -> Job:
        """Store a job, durable when this returns. Raises `Overloaded` when too many of its maker have not ended."""
        if await self.store.waiting_of(job.maker) >= MOST_WAITING:
            raise Overloaded(
                f"{MOST_WAITING} jobs of this caller have not ended. Wait until some have, or cancel some.", seconds=60
            )
        added = await self.store.add(job, files)
        self.wake()
        return added

    async def every(
        self, caller: Caller, limit: int, offset: int, states: Collection[State] | None = None, kind: str | None = None
    ) -> tuple[list[Job], int]:
        """A page of the caller's jobs, newest first, and their number; an administrator of the whole tree sees all."""
        return await self.store.every(
            caller.key_id, limit, offset, everything=sees_all(caller), states=states, kind=kind
        )

    async def get(self, job_id: str, caller: Caller) -> Job:
        """A job of the caller. Raises `NotFound`."""
        key = uuid_or_none(job_id)
        job = await self.store.get(key) if key is not None else None
        if job is None or not (sees_all(caller) or job.maker == caller.key_id):
            raise NotFound(f"There is no job {job_id[:60]!r} that you may see.", Advice.LIST_JOBS)
        return job

    async def cancel(self, job_id: str, caller: Caller) -> Job:
        """End a job; it writes nothing more. Raises `NotFound`, and `Conflict` when it has ended."""
        job = await self.get(job_id, caller)
        if not await self.store.cancel(job.job_id, CANCELLED.format(name=caller.name)):
            raise Conflict("The job has ended already.")
        return await self._changed("jobs.cancel", job, caller)

    async def retry(self, job_id: str, caller: Caller) -> Job:
        """Let a failed job run again. Raises `NotFound`, and `Conflict` for one that has not failed."""
        job = await self.get(job_id, caller)
        if not await self.store.retry(job.job_id, self._standing()):
            raise Conflict("Only a job that has failed, or waits for its next attempt, can be tried again.")
        self.wake()
        return await self._changed("jobs.retry", job, caller)

    async def counts(self) -> list[JobCount]:
        """The numbers of waiting, running and failed jobs by kind."""
        return await self.store.counts()

    async def not_taken(self, counts: Sequence[JobCount]) -> bool:
        """Whether jobs wait that no process takes."""
        overdue = any(count.state == "waiting" and count.oldest_s > NOT_TAKEN_S for count in counts)
        return overdue and not await self.store.served()

    def wake(self) -> None:
        """There may be new jobs, or work that is due."""
        self._new.set()

    async def serve(self, folder: Path) -> None:
        """Take jobs and run them until this is cancelled; those that run then wait for another process.

        `folder` is private to this process.
        """
        problem, self._folder = "", folder
        try:
            while self.at_once > 0:
                try:
                    await self._look()
                    problem = ""
                except Exception as error:  # noqa: BLE001 - the boundary: nothing else would look again
                    if str(error) != problem:
                        unexpected = None if isinstance(error, DtragError) else error
                        _LOG.warning("jobs are looked for later: %s", error, exc_info=unexpected)
                    problem = str(error)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_EVERY_S):  # `wait_for` drops a cancellation that comes with a wake
                        await self._new.wait()
                self._new.clear()
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
            with suppress(DtragError):
                await self.store.leave(self.worker)

    @asynccontextmanager
    async def held(self, kind: str) -> AsyncIterator[Running | None]:
        """The only job of a kind, taken by this process while the block runs; None while another process runs it."""
        key = standing_id(kind)
        await self.store.ensure(key, kind, 0, ("done", "failed"))
        await self.store.expire(MOST_LOST, LOST)
        await self.store.retry(key, (key,))
        job = await self.store.take((kind,), self.worker, key)
        if job is None:
            yield None
            return
        running = Running(job, LOCAL, self._folder)
        beating = asyncio.create_task(self._beat(running))
        try:
            yield running
        except BaseException:
            with suppress(DtragError):
                await self.store.release(job.lease, timedelta(), "", counts=False)
            raise
        else:
            await self.store.finish(job.lease, "done", "", running.result, (running.done, running.total))
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    async def _beat(self, running: Running) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            with suppress(DatabaseUnavailable):
                await self.store.beat(running.job.lease, running.done, running.total)

    async def _changed(self, action: str, job: Job, caller: Caller) -> Job:
        await self.record(
            caller.name,
            action,
            scope=scope_rows(caller.access),
            subjects=[str(job.job_id)],
            decision="done",
            details={"kind": job.kind},
        )
        return await self.store.get(job.job_id) or job

    def _standing(self) -> set[uuid.UUID]:
        return {standing_id(name) for name, kind in self.kinds.items() if kind.due is not None}

    async def _look(self) -> None:
        await self.store.announce(self.worker, self.kinds)
        await self.store.expire(MOST_LOST, LOST)
        if time.monotonic() - self._forgotten > FORGET_EVERY_S:
            self._forgotten = time.monotonic()
            await self.store.forget(KEPT)
        for name, kind in self.kinds.items():
            if kind.due is not None and name not in self._running.values() and await kind.due():
                await self.store.ensure(standing_id(name), name, kind.priority, ("done", "failed"))
        while (kinds := self._free()) and (job := await self.store.take(kinds, self.worker)) is not None:
            task = asyncio.create_task(self._run(job), name=f"job-{job.kind}")
            self._running[task] = job.kind
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("a job ended without a state", exc_info=error)
        self.wake()

    def _free(self) -> list[str]:
        """The kinds of which another job may begin."""
        free = self.at_once - len(self._running)
        if free <= 0:
            return []
        last = free == 1 and self.at_once > 1
        return [name for name, kind in self.kinds.items() if not (last and kind.background)]

    async def _run(self, job: Job) -> None:
        kind, running = self.kinds[job.kind], Running(job, LOCAL, self._folder)
        work = asyncio.create_task(self._work(kind, running))
        ended: DtragError | None = None
        try:
            while not (await asyncio.wait({work}, timeout=BEAT_S))[0]:
                ended = await self._refusal(running)
                if ended is not None:
                    work.cancel()
                    await asyncio.wait({work})
            error = ended or (work.exception() if not work.cancelled() else LeaseLost())
            await self._end(kind, running, error)
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.wait({work})
            with suppress(DtragError):
                await self.store.release(job.lease, timedelta(), job.reason, counts=False)
            raise

    async def _work(self, kind: JobKind, running: Running) -> None:
        running.caller = await self.caller_of(running.job)
        await kind.run(running)

    async def _refusal(self, running: Running) -> DtragError | None:
        """Why the job may not go on: its lease is lost, or its maker has no access any more."""
        try:
            if not await self.store.beat(running.job.lease, running.done, running.total):
                return LeaseLost()
            await self.caller_of(running.job)
        except Forbidden as error:
            return error
        except DtragError:
            return None  # the work itself reports a database that is away
        return None

    async def _end(self, kind: JobKind, running: Running, error: BaseException | None) -> None:
        """Store how an attempt ended; tried again until the database takes it or the lease is lost."""
        job = running.job
        if isinstance(error, LeaseLost):
            _LOG.warning("job %s was cancelled, or is continued by another process", job.job_id)
            return
        reason = "" if error is None else _reason(error)
        if error is not None:
            unexpected = None if isinstance(error, DtragError) else error
            _LOG.warning("job %s (%s) failed: %s", job.job_id, job.kind, reason, exc_info=unexpected)
        over = isinstance(error, _PERMANENT) or (kind.attempts is not None and job.attempts >= kind.attempts)
        while True:
            try:
                if error is not None and not over:
                    await self.store.release(job.lease, _pause(kind, job.attempts), reason)
                    return
                await self._record_end(running, reason)
                progress = running.done, running.total
                await self.store.finish(
                    job.lease, "done" if error is None else "failed", reason, running.result, progress
                )
                return
            except (DatabaseUnavailable, StorageFull):
                await asyncio.sleep(1)
                with suppress(DtragError):
                    if not await self.store.beat(job.lease, running.done, running.total):
                        return

    async def _record_end(self, running: Running, reason: str) -> None:
        job, result = running.job, running.result or {}
        if job.job_id == standing_id(job.kind):
            return
        await self.record(
            job.maker_name,
            f"job {job.kind}",
            scope=scope_rows(running.caller.access),
            subjects=[str(job.job_id), *result.get("document_ids", ())],
            decision="denied" if reason else "done",
            details={"state": "failed" if reason else "done", **result.get("counts", {})},
        )


def sees_all(caller: Caller) -> bool:
    """Whether the caller is shown the jobs of all: an administrator of the whole tree."""
    return caller.may("admin") and not caller.access.grants


def _reason(error: BaseException) -> str:
    """The reason for the maker: an unexpected error may contain text of documents, so only its name is shown."""
    if isinstance(error, DtragError):
        return str(error)
    return f"An unexpected error ({type(error).__name__}); the log of the service has the details."


def _pause(kind: JobKind, attempts: int) -> timedelta:
    return min(timedelta(seconds=FIRST_PAUSE_S * 2 ** min(attempts - 1, 16)), kind.longest_pause)
