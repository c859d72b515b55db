"""A database that is frozen, or behind a network that swallows packets: requests end in time, and it is used again."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtrag.adapters.postgres.silence import LOOK_S, PROBE_S, SILENT_S
from dtrag.app import App, open_app
from dtrag.errors import DatabaseUnavailable
from dtrag.settings import Settings
from tests.clusters import Cluster, Proxy, clusters
from tests.toy import lines

pytestmark = pytest.mark.long_fault
ENDED_S = 3 * (SILENT_S + LOOK_S + PROBE_S)
BACK_S = 3 * 3.0
"""Three times the time that a connection may take to be made."""


@pytest.fixture(scope="module")
def primary() -> Iterator[Cluster]:
    with clusters() as [cluster]:
        yield cluster


async def refused(app: App) -> float:
    """Seconds until requests of each kind are refused."""
    started = time.monotonic()
    requests = [app.search("kettle"), app.documents(), app.keys.every(), app.database.ping()]
    outcomes = await asyncio.gather(*requests, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [DatabaseUnavailable] * len(requests)
    return time.monotonic() - started


async def back(app: App) -> None:
    deadline = time.monotonic() + BACK_S
    while True:
        try:
            await app.database.ping()
            assert (await app.search("kettle"))[0]
            return
        except DatabaseUnavailable:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("fault", ["frozen", "cut"])
async def test_requests_end_and_connections_are_closed(primary: Cluster, tmp_path: Path, fault: str) -> None:
    with Proxy(primary.port) as proxy:
        url = primary.url(port=proxy.port if fault == "cut" else None)
        async with open_app(Settings.load(environ={}, database_url=url, data_dir=tmp_path, embedder="none")) as app:
            await app.ingest(lines(tmp_path / "notes.jsonl", 20))
            assert (await app.search("kettle"))[0]
            for _ in range(2):
                (proxy.swallow if fault == "cut" else lambda: primary.signal(signal.SIGSTOP))()
                try:
                    first, later = await refused(app), await refused(app)
                finally:
                    (proxy.heal if fault == "cut" else lambda: primary.signal(signal.SIGCONT))()
                assert first < ENDED_S
                assert later < ENDED_S
                print(f"{fault}: refused after {first:.1f} s, then after {later:.1f} s")  # noqa: T201
                await back(app)


async def test_a_long_statement_is_left_alone(primary: Cluster, tmp_path: Path) -> None:
    settings = Settings.load(environ={}, database_url=primary.url(), data_dir=tmp_path, embedder="none")
    async with open_app(settings) as app, app.database.connection("owner") as connection:
        row = await (await connection.execute("select pg_sleep(%s) is null as n", [2 * SILENT_S])).fetchone()
        assert row == {"n": False}
