"""Folders that are watched: every change is ingested, a deleted file is gone after it, failures are tried again."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio

from dtrag.app import App, open_app
from dtrag.delivery.cli import watch as watching
from dtrag.delivery.cli.exit_codes import INTERRUPTED, USAGE
from dtrag.errors import InvalidInput
from dtrag.ingestion.sources import IngestReport
from tests.integration.cli_process import PROGRAM, Cli
from tests.store import Databases


@pytest_asyncio.fixture
async def app(databases: Databases) -> AsyncIterator[App]:
    async with open_app(databases.settings()) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(watching, "SETTLED_S", 0.05)
    monkeypatch.setattr(watching, "RETRY_S", 0.05)
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("kettle", "boiler", "shed", "roof"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nThe {name} is checked in May.\n")
    return folder


async def titles(app: App) -> list[str]:
    return sorted(document.title for document in await app.documents())


async def test_every_change_is_ingested(app: App, folder: Path) -> None:
    changes = watching.ingest_changes(lambda: app.ingest(folder, prune=True), [folder], (), 0.02)
    async with aclosing(changes) as reports:

        async def following() -> IngestReport:
            report = await asyncio.wait_for(anext(reports), 30)
            assert isinstance(report, IngestReport)
            return report

        assert (await following()).documents == 4
        (folder / "kettle.md").write_text("# kettle\n\nThe kettle is checked in June.\n")
        (folder / "attic.md").write_text("# attic\n\nThe attic is empty.\n")
        assert (await following()).documents == 2
        (folder / "boiler.md").rename(folder / "heating.md")
        assert len((await following()).renamed) == 1
        (folder / "shed.md").unlink()
        assert (await following()).removed == 1
        (folder / ".dtragignore").write_text("attic.md\n")
        assert (await following()).removed == 1
    assert await titles(app) == ["boiler", "kettle", "roof"]


async def test_what_fails_is_tried_again(app: App, folder: Path) -> None:
    changes = watching.ingest_changes(lambda: app.ingest(folder, prune=True), [folder], (), 0.02)
    async with aclosing(changes) as reports:
        await asyncio.wait_for(anext(reports), 30)
        away = await asyncio.to_thread(folder.rename, folder.with_name("away"))
        assert isinstance(await asyncio.wait_for(anext(reports), 30), InvalidInput)
        assert isinstance(await asyncio.wait_for(anext(reports), 30), InvalidInput)
        assert len(await titles(app)) == 4
        await asyncio.to_thread(away.rename, folder)
        while isinstance(report := await asyncio.wait_for(anext(reports), 30), InvalidInput):
            pass
    assert isinstance(report, IngestReport)
    assert (report.unchanged, report.removed) == (4, 0)


async def test_files_that_are_written_are_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    async def ingest() -> None:
        sizes.append((folder / "log.md").stat().st_size if (folder / "log.md").exists() else 0)

    async with aclosing(watching.ingest_changes(ingest, [folder], (), 0.01)) as reports:
        await anext(reports)
        monkeypatch.setattr(watching, "SETTLED_S", 0.5)
        later = asyncio.ensure_future(anext(reports))
        for _ in range(20):
            with (folder / "log.md").open("a") as file:
                file.write("word ")
            await asyncio.sleep(0.05)
        await asyncio.wait_for(later, 30)
    assert sizes[1] == 100


def test_the_command_ends_with_ctrl_c(folder: Path, tmp_path: Path) -> None:
    environment = Cli(tmp_path / "data").environment(DTRAG_EMBEDDER="none", PYTHONUNBUFFERED="1")
    command = [str(PROGRAM), "watch", str(folder)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as running:
        assert running.stdout is not None
        line = next(line for line in running.stdout if line.startswith("Documents"))
        assert "4 new or changed" in line
        running.send_signal(signal.SIGINT)
        _, notes = running.communicate(timeout=60)
    assert "Watching" in notes
    assert running.returncode == INTERRUPTED


def test_only_folders_are_watched(folder: Path, tmp_path: Path) -> None:
    environment = Cli(tmp_path / "data").environment()
    command = [str(PROGRAM), "watch", str(folder / "roof.md")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == USAGE
    assert "only folders can be watched" in done.stderr
