"""kill -9 in the middle of an ingest, of the process and of the database: what was acknowledged is there, once."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dtrag.adapters.postgres.server.server import EmbeddedServer
from dtrag.app import open_app
from dtrag.errors import DatabaseUnavailable
from dtrag.ingestion import source_reader
from dtrag.ingestion.sources import Progress
from dtrag.settings import Settings
from tests.rounds import seeds
from tests.store import Store
from tests.toy import lines

DOCUMENTS = 300
BATCH = 20

INGEST = """
import asyncio, sys
from dtrag.app import open_app
from dtrag.ingestion import source_reader
from dtrag.settings import Settings

async def main(data_dir, name, path, batch):
    source_reader.BATCH_CHUNKS = int(batch)
    async with open_app(Settings.load(environ={}, data_dir=data_dir, database_name=name, embedder="none")) as app:
        await app.ingest(path, None, lambda progress: print(progress.documents, flush=True))

asyncio.run(main(*sys.argv[1:]))
"""


def postmaster(data_dir: Path) -> int:
    return int((data_dir / "postgres" / "postmaster.pid").read_text().splitlines()[0])


def alone(store: Store) -> None:
    """Wait until the server has noticed that its clients are dead."""
    deadline = time.monotonic() + 20
    others = (
        "select count(*) from pg_stat_activity where datname = %s and pid <> pg_backend_pid() and usename ~ 'dtrag_'"
    )
    while store.value(others, store.name):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def assert_acknowledged(store: Store, acknowledged: int) -> None:
    """The documents come in order; more than were acknowledged may be there, none twice, and none by half."""
    store.assert_no_half()
    titles = store.titles()
    assert titles == [f"Note {number:04}" for number in range(len(titles))]
    assert acknowledged <= len(titles) <= DOCUMENTS


async def assert_completes(settings: Settings, store: Store, path: Path) -> None:
    """The same command again reads the rest and no more; then everything is as after an undisturbed run."""
    there = len(store.titles())
    async with open_app(settings) as app:
        report = await app.ingest(path)
        assert (report.documents, report.removed, report.failed) == (DOCUMENTS - there, 0, [])
        assert len(store.titles()) == DOCUMENTS
        store.assert_whole()
        results, _ = await app.search(f"serial{DOCUMENTS - 1:04}", mode="lexical")
        assert [result.title for result in results] == [f"Note {DOCUMENTS - 1:04}"]
        assert (await app.ingest(path)).documents == 0


@pytest.mark.parametrize("seed", seeds(3))
async def test_killing_the_process(settings: Settings, store: Store, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    path = lines(tmp_path / "notes.jsonl", DOCUMENTS)
    child = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs here
        [sys.executable, "-c", INGEST, settings.data_dir, settings.database_name, path, str(BATCH)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdout is not None
    wanted, acknowledged = BATCH * chance.randint(1, 8), 0
    while acknowledged < wanted:
        acknowledged = int(child.stdout.readline())
    await asyncio.sleep(chance.random() * 0.02)
    child.kill()
    acknowledged = max([acknowledged, *map(int, re.findall(r"(\d+)\n", child.stdout.read()))])
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL
    alone(store)
    assert_acknowledged(store, acknowledged)
    await assert_completes(settings, store, path)


@pytest.mark.parametrize("seed", seeds(3))
async def test_killing_the_database(mortal: Path, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_reader, "BATCH_CHUNKS", BATCH)
    chance = random.Random(seed)
    path = lines(tmp_path / "notes.jsonl", DOCUMENTS)
    settings = Settings.load(environ={}, data_dir=mortal, database_name=f"crash_{seed}", embedder="none")
    fatal, acknowledged = BATCH * chance.randint(1, 8), 0
    killed: list[int] = []

    def kill() -> None:
        killed.append(postmaster(mortal))
        os.kill(killed[0], signal.SIGKILL)

    def progress(now: Progress) -> None:
        nonlocal acknowledged
        acknowledged = now.documents
        if acknowledged == fatal:
            asyncio.get_running_loop().call_later(chance.random() * 0.02, kill)

    try:
        async with open_app(settings) as app:
            await app.ingest(path, on_progress=progress)
            await asyncio.sleep(0.05)
    except DatabaseUnavailable:
        pass
    assert killed
    with EmbeddedServer.open(mortal) as server:
        assert postmaster(mortal) != killed[0]
        store = Store(server.address, settings.database_name)
        assert_acknowledged(store, acknowledged)
        await assert_completes(settings, store, path)


async def test_a_document_of_a_crashed_batch_is_deleted_before_the_next_ingest(
    settings: Settings, store: Store, tmp_path: Path
) -> None:
    """The batch was never counted: the deletion must not take out what is not in."""
    path = lines(tmp_path / "notes.jsonl", 20)
    async with open_app(settings) as app:
        await app.ingest(path)
        store.rows(
            "update lexical_segments set counted = false, passages = 0, languages = '{}', documents = '', chunks = '',"
            " term_ids = '', frequencies = ''"
        )
        await app.delete_document((await app.documents())[0].document_id)
        assert store.value("select count(*) from lexical_segments") == 1
        await app.ingest(path)
    assert store.value("select count(*) from documents") == 20
    store.assert_whole()
