"""Port of the queue of jobs."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Protocol

from dtrag.core.job import Job, JobCount, Lease, NewJob, State


class JobStore(Protocol):
    """Jobs in the database. What changes a running job names its lease, and reports False when that is lost.

    All methods raise `DatabaseUnavailable`; those that add data raise `StorageFull`.
    """

    async def add(self, job: NewJob, files: Sequence[Path] = ()) -> Job:
        """Store a job with the bytes of its files, all of it or nothing; durable when this returns."""

    async def fetch_file(self, job_id: uuid.UUID, number: int, path: Path) -> None:
        """Write the bytes of a file of a job to the path."""

    async def ensure(self, job_id: uuid.UUID, kind: str, priority: int, states: Collection[State]) -> None:
        """Let the only job of a kind wait, unless it exists in a state other than these."""

    async def take(self, kinds: Collection[str], worker: str, job_id: uuid.UUID | None = None) -> Job | None:
        """Take the first job of these kinds that may run (only `job_id`, if given), with a lease; None without one."""

    async def expire(self, most: int, reason: str) -> int:
        """Let jobs wait whose leases have run out, or fail after `most` attempts; returns how many."""

    async def beat(self, lease: Lease, done: int, total: int) -> bool:
        """Extend the lease and store the progress."""

    async def release(self, lease: Lease, delay: timedelta, reason: str, *, counts: bool = True) -> bool:
        """Let the job wait for its next attempt; `counts`: this one counts."""

    async def finish(
        self,
        lease: Lease,
        state: Literal["done", "failed"],
        reason: str,
        result: Mapping[str, Any] | None,
        progress: tuple[int, int],
    ) -> bool:
        """End the job. Its files are deleted unless it failed."""

    async def locked(self, keys: Sequence[str], maker: uuid.UUID | None, *, everything: bool = False) -> bool:
        """Whether a job of this maker, or of any, with one of these keys waits or runs."""

    async def cancel(self, job_id: uuid.UUID, reason: str) -> bool:
        """End a job that has not ended; nothing that it writes is committed afterwards. False when it has ended."""

    async def retry(self, job_id: uuid.UUID, standing: Collection[uuid.UUID]) -> bool:
        """Let a failed job (one of `standing` also when it was cancelled) run again, and a waiting one run now."""

    async def get(self, job_id: uuid.UUID) -> Job | None:
        """The job; None when it is unknown."""

    async def every(
        self,
        maker: uuid.UUID | None,
        limit: int,
        offset: int,
        *,
        everything: bool = False,
        states: Collection[State] | None = None,
        kind: str | None = None,
    ) -> tuple[list[Job], int]:
        """A page of the jobs of a key, or of `everything`, newest first, and how many there are."""

    async def waiting_of(self, maker: uuid.UUID | None) -> int:
        """How many jobs of a key have not ended."""

    async def counts(self) -> list[JobCount]:
        """The numbers of waiting, running and failed jobs."""

    async def forget(self, age: timedelta) -> int:
        """Delete the jobs that ended so long ago; returns how many."""

    async def announce(self, worker: str, kinds: Collection[str]) -> None:
        """Note that the process takes jobs of these kinds."""

    async def leave(self, worker: str) -> None:
        """Note that the process takes no more jobs."""

    async def served(self, kind: str | None = None) -> bool:
        """Whether a process takes jobs of the kind; None: of any."""
