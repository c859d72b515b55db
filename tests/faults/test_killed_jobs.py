"""kill -9 before and after each commit of a job, and stops beyond its lease: nothing is lost, nothing is written twice,
and no two processes write."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dtrag.app import App
from dtrag.core.access.api_key import LOCAL
from dtrag.core.job import LEASE
from dtrag.ingestion.sources import Source
from dtrag.settings import Settings
from tests.store import Store
from tests.toy import ENGLISH

pytestmark = pytest.mark.long_fault

KILLS, STOPS = 200, 12
LEASE_S = 1.0
"""That of most kills, so that their number is not limited by the wait for it."""
RESUMED_S = 15.0
"""The promised limit, with the lease as it is shipped; three times as much on a busy machine."""
KILLS_WITH_THE_SHIPPED_LEASE = 5
FILES = 3
WRITTEN = """
select 'documents', document_id::text, xmin::text from documents union all
select 'chunks', document_id || ':' || ordinal, xmin::text from chunks union all
select 'sources', source_id::text, xmin::text from sources union all
select 'jobs', job_id::text, state || coalesce(result::text, '') from jobs
order by 1, 2
"""


def report(figures: str) -> None:
    """Show the figures of a long test (`pytest -s`)."""
    sys.stdout.write(f"\n{figures}\n")


class Workers:
    """The process that starts processes which run jobs."""

    def __init__(self, settings: Settings, lease_s: float) -> None:
        command = [sys.executable, "-m", "tests.faults.job_worker"]
        command += [str(settings.data_dir), settings.database_name, str(lease_s)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
        )

    def tell(self, command: str) -> tuple[int, str, int]:
        """Its answer: pid, outcome, points."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        pid, outcome, points = self.process.stdout.readline().split()
        return int(pid), outcome, int(points)

    def run(self, point: int = 0, number: int = signal.SIGKILL) -> tuple[int, str, int]:
        """Run jobs until there are none, or until the process comes to the point."""
        return self.tell(f"run {point} {int(number)}")

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


@pytest.fixture
def workers(settings: Settings) -> Iterator[Workers]:
    made = Workers(settings, LEASE_S)
    yield made
    made.close()


@pytest.fixture
def shipped(settings: Settings) -> Iterator[Workers]:
    made = Workers(settings, LEASE.total_seconds())
    yield made
    made.close()


async def queued(app: App, folder: Path, number: int) -> list[str]:
    """Store a job of some files; returns the titles of their documents."""
    chance, sources, titles = random.Random(number), [], []
    for file in range(FILES):
        title = f"Serial {number} {file}"
        path = folder / f"{number}-{file}.md"
        path.write_text(
            f"# {title}\n\n" + "\n\n".join(" ".join(chance.choices(ENGLISH, k=40)) for _ in range(4)), "utf-8"
        )
        sources.append(Source(path, path.name, f"upload:{path.name}"))
        titles.append(title)
    await app.queue_upload(sources)
    return titles


async def states(app: App) -> set[str]:
    return {job.state for job in (await app.jobs.every(LOCAL, 1_000, 0))[0]}


async def test_200_kills_lose_nothing_and_write_nothing_twice(
    app: App, store: Store, workers: Workers, tmp_path: Path
) -> None:
    titles = await queued(app, tmp_path, 0)
    _, outcome, points = workers.run()
    assert outcome == "ended"
    assert points > 20
    chance, kills, number, at = random.Random(KILLS), 0, 0, 0
    while kills < KILLS:
        number += 1
        titles += await queued(app, tmp_path, number)
        while "waiting" in await states(app) or "running" in await states(app):
            at = at + 1 if at < points else chance.randint(1, points)
            _, outcome, _ = workers.run(at)
            kills += outcome == "killed"
    report(f"{kills} kills in {number} jobs, {points} points in a job")
    assert await states(app) == {"done"}
    assert store.titles() == sorted(titles)
    assert store.value("select count(*) from job_files") == store.value("select count(*) from job_locks") == 0
    await app.recover()
    store.assert_whole()


async def test_a_killed_job_is_resumed_in_time(app: App, store: Store, shipped: Workers, tmp_path: Path) -> None:
    chance, longest = random.Random(1), 0.0
    titles = await queued(app, tmp_path, 0)
    _, _, points = shipped.run()
    for number in range(1, KILLS_WITH_THE_SHIPPED_LEASE + 1):
        titles += await queued(app, tmp_path, number)
        outcome = ""
        while outcome != "killed":
            _, outcome, _ = shipped.run(chance.randint(points // 4, points // 2))
        killed_at = time.time()
        if await states(app) != {"done"}:
            assert shipped.run()[1] == "ended"
            resumed = store.value("select extract(epoch from max(started_at))::float8 from jobs") - killed_at
            longest = max(longest, resumed)
    report(f"resumed within {longest:.1f} s")
    assert longest <= 3 * RESUMED_S
    assert await states(app) == {"done"}
    assert store.titles() == sorted(titles)


async def test_a_stopped_process_writes_nothing_when_it_goes_on(
    app: App, store: Store, workers: Workers, tmp_path: Path
) -> None:
    """Two processes and one that is stopped beyond its lease: after the second has done the job, the first goes on."""
    titles = await queued(app, tmp_path, 0)
    _, _, points = workers.run()
    chance, stopped = random.Random(2), 0
    for number in range(1, STOPS + 1):
        titles += await queued(app, tmp_path, number)
        pid, outcome, _ = workers.run(chance.randint(points // 4, points - 4), signal.SIGSTOP)
        assert workers.run()[1] == "ended"
        assert await states(app) == {"done"}
        before: Any = store.rows(WRITTEN)
        if outcome == "stopped":
            stopped += 1
            assert workers.tell(f"continue {pid}")[1] == "ended"
        assert store.rows(WRITTEN) == before
    report(f"{stopped} of {STOPS} processes were stopped while they had a job")
    assert stopped > STOPS // 2
    assert store.titles() == sorted(titles)
    await app.recover()
    store.assert_whole()
