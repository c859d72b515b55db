"""A backup, a restore and an upgrade that are killed leave the earlier state or the new one; they can be repeated."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtrag.adapters.backup_file import BackupFile
from dtrag.adapters.postgres.server.programs import server_account
from dtrag.adapters.postgres.server.server import status
from dtrag.app import open_app
from dtrag.settings import Settings
from tests.integration.cli_process import Cli, Ran
from tests.integration.server.test_upgrade import EARLIER, fill, make_cluster

pytestmark = pytest.mark.long_fault

KILLED = """
import asyncio, importlib, os, signal, sys
place, name, moment, *arguments = sys.argv[1:]
where = importlib.import_module(place.split(":")[0])
for part in place.split(":")[1:]:
    where = getattr(where, part)
itself, calls = getattr(where, name), []
def kill():
    os.kill(os.getpid(), signal.SIGKILL)
def reached(*given, **options):
    calls.append(name)
    if moment == "before" or (moment == "second" and len(calls) == 2):
        kill()
    result = itself(*given, **options)
    if not asyncio.iscoroutine(result):
        if moment == "after":
            kill()
        return result
    async def ended():
        value = await result
        if moment == "after":
            kill()
        return value
    return ended()
setattr(where, name, reached)
from dtrag.delivery.cli.main import main
sys.exit(main(arguments))
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="test-dtrag-killed-"))
    yield path
    shutil.rmtree(path)


def killed(cli: Cli, place: str, name: str, moment: str, *arguments: str | Path) -> None:
    """Run a command that kills itself at this call."""
    command = [sys.executable, "-c", KILLED, place, name, moment, *map(str, arguments)]
    done = subprocess.run(command, env=cli.environment(), capture_output=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def copy(folder: Path, to: Path) -> None:
    """With the owners of the files, which `shutil` does not keep."""
    subprocess.run(["cp", "-a", folder, to], check=True)


def titles(cli: Cli) -> list[str]:
    ran = cli.run("documents", "--json")
    return sorted(document["title"] for document in ran.json["documents"])


def succeeded(ran: Ran) -> None:
    assert ran.code == 0, ran.err


def test_a_killed_backup_and_a_killed_restore(folder: Path) -> None:
    """The file is absent or complete; the database is the earlier one or the restored one."""
    cli = Cli(folder / "data", (("DTRAG_EMBEDDER", "none"),))
    for name in ("Kettle", "Pan"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nThe {name} is hot.", "utf-8")
        succeeded(cli.run("ingest", folder / f"{name}.md"))
    backup = folder / "backup"
    for place, name, moment in (
        ("dtrag.adapters.backup_file:BackupWriter", "write", "second"),
        ("dtrag.adapters.backup_file:BackupWriter", "finish", "before"),
        ("dtrag.adapters.backup_file:BackupWriter", "finish", "after"),
        ("dtrag.adapters.backup_file", "sync_folder", "before"),
    ):
        killed(cli, place, name, moment, "backup", backup)
        assert not backup.exists() or BackupFile.open(backup, None).manifest.tables["documents"] == 2
        backup.unlink(missing_ok=True)
    succeeded(cli.run("backup", backup))
    left = [path.name for path in folder.iterdir() if path.name.startswith(".backup")]
    assert left == []
    for name, moment, outcome in (
        ("_load", "before", ["Pan"]),
        ("_load", "after", ["Pan"]),
        ("_plan", "after", ["Pan"]),
        ("_apply", "before", ["Pan"]),
        ("_apply", "after", ["Pan"]),
        ("_exchange", "before", ["Pan"]),
        ("_exchange", "after", ["Kettle", "Pan"]),
    ):
        if titles(cli) != ["Pan"]:
            succeeded(cli.run("documents", "delete", folder / "Kettle.md", "--yes"))
        arguments = ("restore", backup, "--yes", "--bring-back")
        killed(cli, "dtrag.backups", name, moment, *arguments)
        assert titles(cli) == outcome, (name, moment)
        succeeded(cli.run(*arguments))
        assert titles(cli) == ["Kettle", "Pan"]
        succeeded(cli.run("audit", "verify"))


async def test_a_killed_upgrade(folder: Path) -> None:
    """Every database answers after the next command, whichever cluster the kill has left."""
    original = folder / "original"
    original.mkdir()
    make_cluster(server_account(), original)
    await fill(original)
    for number, (place, name, moment, version) in enumerate(
        (
            ("dtrag.backups", "_copied", "before", "16"),
            ("dtrag.backups", "_copied", "second", "16"),
            ("dtrag.backups", "_copied", "after", "16"),
            ("dtrag.backups", "exchange_upgraded", "before", "16"),
            ("dtrag.backups", "exchange_upgraded", "after", "18"),
            ("dtrag.adapters.postgres.server.process", "remove_socket_dir", "before", "16"),
        )
    ):
        data = folder / f"data-{number}"
        copy(original, data)
        cli = Cli(data, (("DTRAG_EMBEDDER", "none"),))
        killed(cli, place, name, moment, "upgrade")
        assert status(data).version == version, (name, moment)
        succeeded(cli.run("upgrade"))
        assert (status(data).version, (data / f"postgres-{EARLIER}").exists()) == ("18", True)
        for database in ("dtrag", "other"):
            settings = Settings.load(environ={}, data_dir=data, embedder="none", database_name=database)
            async with open_app(settings) as app:
                [result] = (await app.search("kettle"))[0]
                assert result.title == f"Kettle of {database}"
