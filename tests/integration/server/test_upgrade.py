"""A data folder of an earlier PostgreSQL: refused with the command, copied by it, and never lost by an interruption."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from dtrag import backups
from dtrag.adapters.postgres.connect import Attachment, conninfo_at, create_database, make_schema
from dtrag.adapters.postgres.server import cluster as clusters
from dtrag.adapters.postgres.server.programs import Account, server_account, usable_binaries
from dtrag.adapters.postgres.server.server import EmbeddedServer, earlier_server, status
from dtrag.adapters.sql_files import statements
from dtrag.app import App, open_app
from dtrag.errors import DatabaseStartFailed, InUse
from dtrag.ports import Models
from dtrag.settings import Settings
from dtrag.testing import add_texts
from dtrag.testing.throwaway import parser

EARLIER = 16


def settings_of(data_dir: Path) -> Settings:
    return Settings.load(environ={}, data_dir=data_dir, embedder="none")


def make_cluster(account: Account, data_dir: Path) -> None:
    """As a version of dtrag with PostgreSQL 16 would have made it."""
    binaries, cluster = usable_binaries(account, data_dir, EARLIER), data_dir / "postgres"
    cluster.mkdir(mode=0o700)
    account.give(cluster)
    with account.entry(cluster) as (path, descriptors):
        arguments = ["-D", path, "--username", clusters.SUPERUSER, "--encoding", "UTF8", "--locale", "C", "--no-sync"]
        done = account.run([binaries.initdb, *arguments, "--auth-local", "peer"], pass_fds=descriptors)
        assert done.returncode == 0, done.stderr
        with (cluster / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write("listen_addresses = ''\nunix_socket_permissions = 0700\nfsync = off\n")
        clusters.write_settings(account, cluster)  # the rules who may log in; its settings are of the present version
        bootstrap = statements("dtrag.adapters.postgres", "sql/bootstrap.sql").values()
        command: list[str | Path] = [binaries.postgres, "--single", "-D", path, "template1"]
        done = account.run(command, pass_fds=descriptors, input="".join(f"{line};\n" for line in bootstrap))
        assert done.returncode == 0, done.stderr


async def fill(data_dir: Path) -> None:
    """Two databases on the earlier server."""
    settings = settings_of(data_dir)
    with earlier_server(data_dir, EARLIER) as address:
        conninfo = conninfo_at(address)
        for name in ("dtrag", "other"):
            await create_database(conninfo("owner", "postgres"), name)
            await make_schema(conninfo("owner", name))
            async with (
                Attachment(name, conninfo, None).opened(name, settings) as database,
                App(settings, database, Models(), parser) as app,
            ):
                await add_texts(app, {"kettle.md": f"# Kettle of {name}\n\nThe kettle boils."}, "Kitchen")
                await app.keys.create("kim")


@pytest.fixture(scope="module")
def earlier() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="test-dtrag-upgrade-"))
    (folder / "data").mkdir()
    make_cluster(server_account(), folder / "data")
    yield folder / "data"
    shutil.rmtree(folder)


@pytest.fixture
async def data_dir(earlier: Path) -> Path:
    """The folder, filled once and put back after each test that upgrades it."""
    if not (earlier / "filled").exists():
        await fill(earlier)
        (earlier / "filled").touch()
    kept = earlier / f"postgres-{EARLIER}"
    if kept.exists():
        shutil.rmtree(earlier / "postgres", ignore_errors=True)
        shutil.rmtree(earlier / "upgrade", ignore_errors=True)
        kept.rename(earlier / "postgres")
    return earlier


async def test_one_command_upgrades_all_databases(data_dir: Path) -> None:
    with pytest.raises(DatabaseStartFailed, match="made by PostgreSQL 16, but this dtrag brings PostgreSQL 18; run"):
        EmbeddedServer.open(data_dir)
    report = await backups.upgrade(settings_of(data_dir))
    assert (report.from_major, report.to_major, report.databases) == (16, 18, ["dtrag", "other"])
    assert report.earlier == str(data_dir / "postgres-16")
    assert status(data_dir).version == "18"
    assert not (data_dir / "upgrade").exists()
    for name in ("dtrag", "other"):
        async with open_app(Settings.load(environ={}, data_dir=data_dir, embedder="none", database_name=name)) as app:
            [result] = (await app.search("kettle"))[0]
            assert result.title == f"Kettle of {name}"
            assert [(key.name, key.revoked_at) for key in await app.keys.every()] == [("kim", None)]
            assert (await app.audit.verify()).ok
            assert (await app.audit.newest(limit=1))[0].entry.action == "database.upgrade"
    again = await backups.upgrade(settings_of(data_dir))
    assert (again.from_major, again.earlier) == (18, None)


async def test_an_interrupted_upgrade_leaves_the_earlier_cluster_or_completes(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inside a copy, after the first database, and between the two renames."""
    copied = backups._copied
    calls: list[str] = []

    async def second_fails(*arguments: object) -> None:
        calls.append("")
        if len(calls) == 2:
            raise psycopg.OperationalError("killed")
        await copied(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as broken:
        broken.setattr(backups, "_copied", second_fails)
        with pytest.raises(psycopg.OperationalError):
            await backups.upgrade(settings_of(data_dir))
    assert (status(data_dir).version, (data_dir / "postgres-16").exists()) == ("16", False)
    with monkeypatch.context() as broken:

        def killed(made: Path, cluster: Path) -> None:
            if not cluster.exists() and made.exists():
                raise RuntimeError("killed")

        broken.setattr(clusters, "finish_upgrade", killed)
        with pytest.raises(RuntimeError, match="killed"):
            await backups.upgrade(settings_of(data_dir))
    assert not (data_dir / "postgres").exists()
    async with open_app(settings_of(data_dir)) as app:  # completes it
        assert [result.title for result in (await app.search("kettle"))[0]] == ["Kettle of dtrag"]
    assert (status(data_dir).version, (data_dir / "upgrade").exists()) == ("18", False)


async def test_others_are_refused_during_an_upgrade(data_dir: Path) -> None:
    with (data_dir / "users.lock").open() as used:
        import fcntl

        fcntl.flock(used, fcntl.LOCK_SH)
        with pytest.raises(InUse):
            await backups.upgrade(settings_of(data_dir))
    assert status(data_dir).version == "16"
