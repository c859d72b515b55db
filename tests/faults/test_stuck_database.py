"""The database is stopped by a signal and lives on: checks answer in time, and the server is started again."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.server import process
from dtrag.adapters.postgres.server.server import EmbeddedServer
from dtrag.app import open_app
from dtrag.settings import Settings
from tests.api.conftest import Served
from tests.faults.test_crash import postmaster
from tests.faults.test_database_restart import postmaster_or_none
from tests.toy import lines

pytestmark = pytest.mark.long_fault

CHECK_S = 3 * 2.5
BACK_S = 3 * 15.0
"""Three times what is promised: the machine of a test has other things to do."""
BUSY = (
    "create table if not exists {} (words text)",
    "insert into {} select repeat(md5(n::text), 20) from generate_series(1, 40000) n",
    "select count(distinct words) from {}",
    "drop table {}",
)


def processes(data_dir: Path) -> list[int]:
    """The server's processes, the postmaster first."""
    name, pids = process.cluster_name(data_dir / "postgres").encode(), [postmaster(data_dir)]
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (folder / "cmdline").read_bytes()
            if command.startswith(b"postgres: ") and name in command:
                pids.append(int(folder.name))
    return pids


def stop(data_dir: Path, *, whole: bool) -> int:
    """Stop the postmaster, or all processes of the server; returns the postmaster's number."""
    pids = processes(data_dir)
    for pid in pids if whole else pids[:1]:
        os.kill(pid, signal.SIGSTOP)
    return pids[0]


@contextmanager
def service(data_dir: Path) -> Iterator[Served]:
    running = Served(data_dir=str(data_dir), database_name="stuck", embedder="none", port="0", log_level="WARNING")
    try:
        yield running
    finally:
        assert running.stop()[0] == 0


def seconds_of(running: Served, path: str) -> float:
    started = time.monotonic()
    running.client.get(path)
    return time.monotonic() - started


def searches(running: Served) -> bool:
    response = running.client.post("/search", json={"query": f"kettle {time.monotonic()}"}, timeout=60)
    return response.status_code == 200 and bool(response.json()["results"])


async def prepared(data_dir: Path, path: Path) -> None:
    settings = Settings.load(environ={}, data_dir=data_dir, database_name="stuck", embedder="none")
    async with open_app(settings) as app:
        await app.ingest(path)


@pytest.mark.parametrize("whole", [False, True], ids=["postmaster", "all processes"])
def test_a_stopped_server_is_started_again_by_one_service(mortal: Path, tmp_path: Path, *, whole: bool) -> None:
    asyncio.run(prepared(mortal, lines(tmp_path / "notes.jsonl", 20)))
    with ExitStack() as stack:
        one, two = (stack.enter_context(service(mortal)) for _ in range(2))
        assert searches(one) and searches(two)
        one.until_ready()
        stopped, started = stop(mortal, whole=whole), time.monotonic()
        slowest = max(seconds_of(one, path) for path in ("/health", "/readyz"))
        assert slowest < CHECK_S
        while not (postmaster_or_none(mortal) not in {stopped, None} and searches(one) and searches(two)):
            assert time.monotonic() - started < BACK_S
            time.sleep(0.05)
        print(  # noqa: T201 - `make faults` shows the figures with -s
            f"stopped: checks within {slowest:.1f} s, searches again after {time.monotonic() - started:.1f} s"
        )
        successor = postmaster(mortal)
        time.sleep(2 * process.STUCK_S)
        assert postmaster(mortal) == successor
        assert one.client.get("/readyz").status_code == 200


def test_a_server_that_is_stopped_for_a_moment_is_left_alone(mortal: Path, tmp_path: Path) -> None:
    asyncio.run(prepared(mortal, lines(tmp_path / "notes.jsonl", 20)))
    with service(mortal) as running:
        for _ in range(3):
            stopped = stop(mortal, whole=True)
            time.sleep(process.STUCK_S / 2)
            for pid in processes(mortal):
                os.kill(pid, signal.SIGCONT)
            assert searches(running)
            time.sleep(2 * process.PROBE_EVERY_S)
        assert postmaster(mortal) == stopped


def test_the_next_command_ends_a_server_that_a_killed_service_left_stopped(mortal: Path) -> None:
    left = EmbeddedServer.open(mortal)
    stopped = stop(mortal, whole=True)
    with closing(left), EmbeddedServer.open(mortal) as server:
        assert postmaster(mortal) != stopped
        assert process.is_ready(server.address.data_dir / "postgres")


async def test_a_busy_server_is_left_alone(mortal: Path) -> None:
    """The processors are loaded, long queries run on every connection, and new connections come all the time."""
    settings = Settings.load(environ={}, data_dir=mortal, database_name="busy", embedder="none")
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]  # noqa: ASYNC220
    try:
        async with connect(settings) as database:
            pid, until = postmaster(mortal), time.monotonic() + 5 * process.STUCK_S
            watch = process.StuckWatch(mortal / "postgres")

            async def work(number: int) -> None:
                table = sql.Identifier(f"heap{number}")
                while time.monotonic() < until:
                    async with database.connection("owner") as connection:
                        for statement in BUSY:
                            await connection.execute(sql.SQL(statement).format(table))

            async def come_and_go() -> None:
                with EmbeddedServer.open(mortal) as server:
                    address = server.address.conninfo("dtrag_owner", "busy")
                    while time.monotonic() < until:
                        async with await psycopg.AsyncConnection.connect(address) as connection:
                            await connection.execute("select count(*) from generate_series(1, 1000000)")

            async def look() -> None:
                while time.monotonic() < until:
                    assert await asyncio.to_thread(watch.look) is None
                    await asyncio.sleep(0.1)

            await asyncio.gather(*(work(number) for number in range(4)), come_and_go(), look())
            assert postmaster(mortal) == pid
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


async def test_an_external_server_is_left_alone(mortal: Path, tmp_path: Path) -> None:
    await prepared(mortal, lines(tmp_path / "notes.jsonl", 20))
    with EmbeddedServer.open(mortal) as server:

        def conninfo(role: str) -> str:
            return server.address.conninfo(f"dtrag_{role}", "stuck")

        async with Database(conninfo) as database:
            await database.ping()
            stopped = stop(mortal, whole=False)
            await asyncio.sleep(3 * process.STUCK_S)
            assert postmaster(mortal) == stopped
            os.kill(stopped, signal.SIGCONT)
            await database.ping()
