"""Jobs: work that is stored before it is done, so that it survives the process that does it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from dtrag.core.response import Moment, response

State = Literal["waiting", "running", "done", "failed", "cancelled"]
LEASE = timedelta(seconds=10)
"""A job whose process has not extended its lease for so long may be taken by another one."""


class Lease(NamedTuple):
    """What a process names to change anything for a job that it runs: `fence` counts how often the job was taken."""

    job_id: uuid.UUID
    fence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to store. Jobs with a key in common run in order, one at a time; lower priorities run first.

    `maker` is the id of the key that requested it, None for the owner of the data folder.
    """

    kind: str
    input: Mapping[str, Any]
    maker: uuid.UUID | None = None
    maker_name: str
    lock_keys: Sequence[str] = ()
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A stored job. `run_at` is when it may run at the earliest; `reason` is why the last attempt failed."""

    job_id: uuid.UUID
    kind: str
    priority: int
    state: State
    created_at: datetime
    run_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    fence: int
    worker: str
    attempts: int
    reason: str
    done: int
    total: int
    lock_keys: Sequence[str]
    maker: uuid.UUID | None
    maker_name: str
    input: Mapping[str, Any]
    result: Mapping[str, Any] | None

    @property
    def lease(self) -> Lease:
        """The lease of the process that has just taken it."""
        return Lease(self.job_id, self.fence)

    def view(self) -> JobView:
        """The job as it is shown to its maker and to administrators."""
        return JobView(
            job_id=str(self.job_id),
            kind=self.kind,
            state=self.state,
            created_at=self.created_at,
            run_at=self.run_at,
            started_at=self.started_at,
            ended_at=self.ended_at,
            attempts=self.attempts,
            reason=self.reason,
            done=self.done,
            total=self.total,
            maker=self.maker_name,
            files=[str(file["name"]) for file in self.input.get("files", ())],
            result=self.result,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job."""

    __pydantic_config__ = response("JobShape")

    job_id: str
    """Its id."""
    kind: str
    """What it does: ingest, vectors, …"""
    state: State
    """waiting, running, done, failed or cancelled."""
    created_at: Moment
    """When it was requested."""
    run_at: Moment
    """When it may run at the earliest: later than that it waits for others."""
    started_at: Moment | None
    """When the last attempt began."""
    ended_at: Moment | None
    """When it ended."""
    attempts: int
    """How often it was begun."""
    reason: str
    """Why the last attempt failed; "" if it did not."""
    done: int
    """Its progress: how much of `total` is durable."""
    total: int
    """0 while that is unknown."""
    maker: str
    """The key that requested it; "" for work that the service found to do."""
    files: list[str]
    """Names of the uploaded files."""
    result: Mapping[str, Any] | None
    """What it did; null until it has ended."""


@dataclass(frozen=True, slots=True)
class JobCount:
    """Jobs of one kind in one state. `oldest_s`: how long the first that may run has waited.

    `reason`: why the work that the service found to do failed; None for jobs of callers.
    """

    kind: str
    state: State
    jobs: int
    oldest_s: float
    reason: str | None
