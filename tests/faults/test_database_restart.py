"""The postmaster is killed under a running app: requests fail at once, and the server is back without a restart."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from dtrag.adapters.postgres.server import process
from dtrag.adapters.postgres.server.server import EmbeddedServer
from dtrag.app import App, open_app
from dtrag.errors import DatabaseUnavailable
from dtrag.settings import Settings
from tests.faults.test_crash import postmaster
from tests.toy import lines

BACK_S = 15.0
"""Three times the promised five seconds."""
REFUSED_S = 3.0
"""Three times a generous second: refusals are promised at once, and took ten seconds."""


async def back(request: Callable[[], Awaitable[object]]) -> int:
    """Repeat the request until it succeeds; returns how often it was refused. No refusal may take long."""
    deadline, refused = time.monotonic() + BACK_S, 0
    while True:
        started = time.monotonic()
        try:
            await request()
        except DatabaseUnavailable:
            assert time.monotonic() - started < REFUSED_S
            assert time.monotonic() < deadline
            refused += 1
            await asyncio.sleep(0.01)
        else:
            assert time.monotonic() - started < REFUSED_S
            return refused


def postmaster_or_none(data_dir: Path) -> int | None:
    told = process.read_pid_file(data_dir / "postgres")
    return told.pid if told is not None else None


def kill(data_dir: Path) -> int:
    pid = postmaster(data_dir)
    os.kill(pid, signal.SIGKILL)
    return pid


async def test_a_killed_server_is_back_by_itself(mortal: Path, tmp_path: Path) -> None:
    settings = Settings.load(environ={}, data_dir=mortal, database_name="restart", embedder="none")
    path = lines(tmp_path / "notes.jsonl", 40)
    async with open_app(settings) as app:
        await app.ingest(path)
        killed = kill(mortal)
        async with asyncio.timeout(BACK_S):
            while postmaster_or_none(mortal) in {killed, None}:  # noqa: ASYNC110 - a file of another process
                await asyncio.sleep(0.02)
        await back(app.database.ping)
        results, _ = await app.search("kettle", mode="lexical")
        assert results
        assert len(await app.documents()) == 40
        assert (await app.ingest(path)).unchanged == 1


async def test_it_is_noticed_without_a_request(mortal: Path) -> None:
    settings = Settings.load(environ={}, data_dir=mortal, database_name="restart_idle", embedder="none")
    async with open_app(settings) as app:
        killed = kill(mortal)
        async with asyncio.timeout(BACK_S):
            for _ in range(1_000):
                await asyncio.sleep(0.05)
                if process.is_ready(mortal / "postgres") and postmaster(mortal) != killed:
                    break
        await app.database.ping()


async def test_several_apps_on_one_folder_do_not_fight(mortal: Path) -> None:
    settings = Settings.load(environ={}, data_dir=mortal, database_name="restart_two", embedder="none")
    async with open_app(settings) as one, open_app(settings) as two, open_app(settings) as three:
        apps: list[App] = [one, two, three]
        for _ in range(2):
            killed = kill(mortal)
            async with asyncio.timeout(BACK_S):
                while (successor := postmaster_or_none(mortal)) in {killed, None}:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            await asyncio.gather(*(back(app.database.ping) for app in apps))
            await asyncio.sleep(1.0)  # twice the time after which each of them looks again
            assert postmaster(mortal) == successor
            await asyncio.gather(*(app.database.ping() for app in apps))


async def test_an_external_server_that_goes_and_comes_back(mortal: Path) -> None:
    """It is not ours to start: requests fail at once, and succeed as soon as it is there again."""
    with EmbeddedServer.open(mortal) as server:
        url = f"postgresql://dtrag_owner@/postgres?host={quote(str(server.address.socket_dir), safe='')}"
        settings = Settings.load(environ={}, data_dir=mortal, database_name="restart", embedder="none")
        async with open_app(settings):
            pass
        from dtrag.adapters.postgres.database import Database

        def conninfo(role: str) -> str:
            return url.replace("dtrag_owner", f"dtrag_{role}").replace("/postgres?", "/restart?")

        async with Database(conninfo) as database:
            await database.ping()
            kill(mortal)
            with pytest.raises(DatabaseUnavailable):
                for _ in range(500):  # its processes take a moment to notice that their postmaster is dead
                    await database.ping()
                    await asyncio.sleep(0.02)
            await asyncio.sleep(1.0)
            started = time.monotonic()
            with pytest.raises(DatabaseUnavailable):
                await database.ping()
            assert time.monotonic() - started < REFUSED_S
            with EmbeddedServer.open(mortal):
                assert await back(database.ping) == 0
