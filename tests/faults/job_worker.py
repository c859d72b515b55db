"""Starts processes that run the jobs of a database and kill or stop themselves at a chosen commit.

python -m tests.faults.job_worker FOLDER DATABASE LEASE_S

Reads commands, one a line, and answers each with one line:

- `run POINT SIGNAL`: fork a process that runs all jobs, and sends itself the signal at that point (0: never). Points
  are counted before and after each commit. The answer: pid, `killed`, `stopped` or `ended`, and the number of points.
- `continue PID`: let a stopped process go on, and answer when it has ended.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from dtrag.adapters.postgres import pool
from dtrag.adapters.postgres.pool import Connection
from dtrag.adapters.postgres.stores import jobs
from dtrag.app import open_app
from dtrag.core.job import LEASE
from dtrag.jobs import queue
from dtrag.settings import Settings

LEFT = "select 1 from jobs where state in ('waiting', 'running')"


class Points:
    """Counts the points, and sends the signal at one of them."""

    def __init__(self, point: int, number: int, report: int) -> None:
        self._point, self._signal, self._report = point, number, report
        self.count = 0

    def come(self) -> None:
        """The process is before or after a commit."""
        self.count += 1
        if self.count == self._point:
            os.write(self._report, f"{self.count}\n".encode())
            os.kill(os.getpid(), self._signal)


def observed(points: Points) -> None:
    """Come to a point before and after each commit of every connection, by whatever it is made."""
    transaction, execute = Connection.transaction, Connection.execute

    @asynccontextmanager
    async def pointed(self: Connection, *values: Any) -> AsyncIterator[Any]:
        async with transaction(self, *values) as made:
            yield made
            points.come()
        points.come()

    async def executed(self: Connection, query: Any, *values: Any, **options: Any) -> Any:
        ends = query == "commit" or self.info.transaction_status == TransactionStatus.IDLE
        if ends:
            points.come()
        cursor = await execute(self, query, *values, **options)
        if ends:
            points.come()
        return cursor

    Connection.transaction, Connection.execute = pointed, executed  # type: ignore[method-assign, assignment]


async def work(settings: Settings, points: Points) -> None:
    """Run jobs until there are none."""
    async with (
        open_app(settings) as app,
        await psycopg.AsyncConnection.connect(app.database._address("owner"), autocommit=True) as looking,
    ):
        observed(points)
        with tempfile.TemporaryDirectory() as folder:
            serving = asyncio.create_task(app.jobs.serve(Path(folder)))
            while await (await looking.execute(LEFT)).fetchone():  # noqa: ASYNC110 - other processes end them
                await asyncio.sleep(0.05)
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


def started(settings: Settings, point: int, number: int) -> tuple[int, int]:
    """The id of a new process, and where it writes its number of points."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    points = Points(point, number, writing)
    try:
        asyncio.run(work(settings, points))
        os.write(writing, f"{points.count}\n".encode())
    finally:
        os._exit(0)


def outcome(pid: int) -> str:
    """How a process ended, or that it was stopped."""
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        return "stopped"
    return "killed" if os.WIFSIGNALED(status) else "ended"


def main(folder: str, database: str, lease_s: str) -> None:
    lease = timedelta(seconds=float(lease_s))
    if lease != LEASE:
        for module in (jobs, pool, queue):
            setattr(module, "LEASE", lease)  # noqa: B010
        queue.BEAT_S, queue.LOOK_EVERY_S = lease.total_seconds() / 4, lease.total_seconds() / 4
    queue.MOST_LOST = 1_000  # many kills of one job are what is tested
    settings = Settings.load(environ={}, data_dir=Path(folder), database_name=database, embedder="none")
    for line in sys.stdin:
        command, *values = line.split()
        if command == "continue":
            pid = int(values[0])
            os.kill(pid, signal.SIGCONT)
            answer = f"{pid} {outcome(pid)} 0"
        else:
            pid, reading = started(settings, int(values[0]), int(values[1]))
            how = outcome(pid)
            answer = f"{pid} {how} {os.read(reading, 100).decode().strip() or 0}"
            os.close(reading)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
