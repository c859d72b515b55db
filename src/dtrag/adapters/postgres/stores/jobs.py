"""The queue of jobs in PostgreSQL."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from psycopg import errors
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from dtrag.adapters.postgres.database import Database, Store, fetch, fetch_row
from dtrag.core.job import LEASE, Job, JobCount, Lease, NewJob, State

PART_BYTES = 1 << 20
"""Bytes of one row of a file."""
COPIES = 2
"""A file is written to the table and to the log of the database."""
_LOG = logging.getLogger(__name__)


class PostgresJobs(Store):
    """`JobStore` over the tables jobs, job_locks, job_files and job_workers."""

    subject = "jobs"

    def __init__(self, database: Database):
        super().__init__(database)
        self._stalled: dict[tuple[int, datetime, datetime], float] = {}
        """Sessions (pid, start, last change) that were stalled in the last look, and since which one they are."""

    async def add(self, job: NewJob, files: Sequence[Path] = ()) -> Job:
        """See `JobStore`."""
        sizes = await asyncio.to_thread(lambda: [path.stat().st_size for path in files])
        self._database.require_space(COPIES * sum(sizes))
        values: dict[str, object] = {
            "job_id": uuid.uuid4(),
            "kind": job.kind,
            "priority": job.priority,
            "maker": job.maker,
            "maker_name": job.maker_name,
            "input": Jsonb(job.input),
            "lock_keys": sorted(set(job.lock_keys)),
        }
        async with self._database.connection("owner") as connection, connection.transaction():
            added = await fetch_row(connection, self._sql["add"], values)
            for number, path in enumerate(files):
                with await asyncio.to_thread(path.open, "rb") as file:
                    part = 0
                    while piece := await asyncio.to_thread(file.read, PART_BYTES):
                        stored = {"job_id": values["job_id"], "file": number, "part": part, "bytes": piece}
                        await connection.execute(self._sql["add_part"], stored, binary=True)
                        part += 1
        assert added is not None  # noqa: S101 - the statement inserts a row
        return Job(**added)

    async def fetch_file(self, job_id: uuid.UUID, number: int, path: Path) -> None:
        """See `JobStore`."""
        with await asyncio.to_thread(path.open, "xb") as file:
            part = 0
            async with self._database.connection("owner") as connection:
                while row := await self._part(connection, {"job_id": job_id, "file": number, "part": part}):
                    await asyncio.to_thread(file.write, row["bytes"])
                    part += 1

    async def _part(self, connection: Any, values: Mapping[str, object]) -> DictRow | None:
        row: DictRow | None = await (await connection.execute(self._sql["part"], values, binary=True)).fetchone()
        return row

    async def ensure(self, job_id: uuid.UUID, kind: str, priority: int, states: Collection[State]) -> None:
        """See `JobStore`."""
        values = {"job_id": job_id, "kind": kind, "priority": priority, "states": list(states)}
        await self._execute("ensure", values)

    async def take(self, kinds: Collection[str], worker: str, job_id: uuid.UUID | None = None) -> Job | None:
        """See `JobStore`."""
        values = {"kinds": sorted(kinds), "worker": worker, "lease": LEASE, "job_id": job_id}
        try:
            taken = await self._row("take", values)
        except errors.UniqueViolation:  # another process has taken a job with the same key at this moment
            return None
        return Job(**taken) if taken else None

    async def expire(self, most: int, reason: str) -> int:
        """See `JobStore`. A process that was stopped while it sent a statement holds its job no longer than others."""
        await self._end_stalled()
        return len(await self._rows("expire", {"most": most, "reason": reason}))

    async def _end_stalled(self) -> None:
        """End the sessions that were stalled in each look for as long as a lease."""
        now = time.monotonic()
        over = [session for session, since in self._stalled.items() if now - since >= LEASE.total_seconds()]
        pids, starts, changes = map(list, zip(*over, strict=True)) if over else ([], [], [])
        async with self._database.connection("owner") as connection, connection.transaction():
            await connection.execute(self._sql["as_login"])
            values = {"pids": pids, "starts": starts, "changes": changes}
            rows = await fetch(connection, self._sql["stalled"], values)
        seen = {(row["pid"], row["backend_start"], row["state_change"]): row["ended"] for row in rows}
        self._stalled = {session: self._stalled.get(session, now) for session, ended in seen.items() if not ended}
        for (pid, *_), ended in seen.items():
            if ended:
                _LOG.warning("the session %d of the database has sent half a statement and nothing since: ended", pid)

    async def beat(self, lease: Lease, done: int, total: int) -> bool:
        """See `JobStore`."""
        return await self._execute("beat", {**lease._asdict(), "lease": LEASE, "done": done, "total": total}) > 0

    async def release(self, lease: Lease, delay: timedelta, reason: str, *, counts: bool = True) -> bool:
        """See `JobStore`."""
        values = {**lease._asdict(), "delay": delay, "reason": reason, "uncounted": 0 if counts else 1}
        return await self._row("release", values) is not None

    async def finish(
        self,
        lease: Lease,
        state: Literal["done", "failed"],
        reason: str,
        result: Mapping[str, Any] | None,
        progress: tuple[int, int],
    ) -> bool:
        """See `JobStore`."""
        values: dict[str, object] = {**lease._asdict(), "state": state, "reason": reason}
        values |= {"done": progress[0], "total": progress[1], "result": None if result is None else Jsonb(result)}
        return await self._row("finish", values) is not None

    async def locked(self, keys: Sequence[str], maker: uuid.UUID | None, *, everything: bool = False) -> bool:
        """See `JobStore`."""
        row = await self._row("locked", {"keys": list(keys), "maker": maker, "everything": everything})
        return bool(row and row["locked"])

    async def cancel(self, job_id: uuid.UUID, reason: str) -> bool:
        """See `JobStore`."""
        return await self._row("cancel", {"job_id": job_id, "reason": reason}) is not None

    async def retry(self, job_id: uuid.UUID, standing: Collection[uuid.UUID]) -> bool:
        """See `JobStore`."""
        return await self._row("retry", {"job_id": job_id, "standing": list(standing)}) is not None

    async def get(self, job_id: uuid.UUID) -> Job | None:
        """See `JobStore`."""
        row = await self._row("job", {"job_id": job_id})
        return Job(**row) if row else None

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
        """See `JobStore`."""
        values = {"maker": maker, "limit": limit, "offset": offset, "everything": everything, "kind": kind}
        page = await self._rows("jobs", values | {"states": None if states is None else list(states)})
        total = page[0]["listed"] if page else 0
        return [Job(**{name: value for name, value in row.items() if name != "listed"}) for row in page], total

    async def waiting_of(self, maker: uuid.UUID | None) -> int:
        """See `JobStore`."""
        row = await self._row("waiting_of", {"maker": maker})
        return int(row["waiting"]) if row else 0

    async def counts(self) -> list[JobCount]:
        """See `JobStore`."""
        return [JobCount(**row) for row in await self._rows("counts")]

    async def forget(self, age: timedelta) -> int:
        """See `JobStore`."""
        return await self._execute("forget", {"age": age})

    async def announce(self, worker: str, kinds: Collection[str]) -> None:
        """See `JobStore`."""
        await self._execute("announce", {"worker": worker, "kinds": sorted(kinds)})

    async def leave(self, worker: str) -> None:
        """See `JobStore`."""
        await self._execute("leave", {"worker": worker})

    async def served(self, kind: str | None = None) -> bool:
        """See `JobStore`."""
        row = await self._row("served", {"age": LEASE, "kind": kind})
        return bool(row and row["served"])
