"""A PostgreSQL behind a URL: the login takes on the three roles; what is wrong is said without the password."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from dtrag import backups
from dtrag.adapters.postgres.connect import connect, make_schema
from dtrag.adapters.postgres.database import ROLES
from dtrag.adapters.postgres.server.programs import server_account, usable_binaries
from dtrag.adapters.postgres.server.server import EmbeddedServer
from dtrag.app import open_app
from dtrag.errors import DatabaseUnavailable, InUse, InvalidInput
from dtrag.settings import Settings
from dtrag.testing import add_texts
from tests.store import Store
from tests.toy import lines


def url_of(store: Store, user: str = "dtrag_owner") -> str:
    host = quote(str(store.address.socket_dir), safe="")
    return f"postgresql://{user}@/{store.name}?host={host}&port={store.address.port}"


def behind(url: str, tmp_path: Path) -> Settings:
    """Settings with the URL; the data folder is never made."""
    return Settings.load(environ={"DTRAG_DATABASE_URL": url}, data_dir=tmp_path / "unused", embedder="none")


@pytest.fixture
def member(mortal: Path) -> Iterator[Store]:
    """A database with our schema, on a server where one login is a member of all three roles."""
    account = server_account()
    binaries = usable_binaries(account, mortal)
    grants = "grant dtrag_search to dtrag_owner;\ngrant dtrag_reader to dtrag_owner;\n"
    with account.entry(mortal / "postgres") as (path, descriptors):
        command: list[str | Path] = [binaries.postgres, "--single", "-D", path, "postgres"]
        assert account.run(command, pass_fds=descriptors, input=grants).returncode == 0
    with EmbeddedServer.open(mortal) as server:
        yield Store(server.address, "elsewhere")


async def test_the_login_can_switch_to_the_roles(member: Store, mortal: Path, tmp_path: Path) -> None:
    async with connect(Settings.load(environ={}, data_dir=mortal, database_name=member.name)):
        pass
    settings = behind(url_of(member), tmp_path)
    async with open_app(settings) as app:
        for role in ROLES:
            async with app.database.connection(role) as connection:
                row = await (
                    await connection.execute(
                        "select session_user::text as login, current_user::text as role,"
                        " rolsuper or rolbypassrls as above from pg_roles where rolname = current_user"
                    )
                ).fetchone()
            assert row == {"login": "dtrag_owner", "role": f"dtrag_{role}", "above": False}
        async with app.database.connection("search") as connection:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await connection.execute("select text from chunks")
        report = await app.ingest(lines(tmp_path / "notes.jsonl", 20))
        assert report.documents == 20
        assert (await app.search("kettle"))[0]
        assert (await app.search("kettle", mode="strict"))[0]
        member.assert_whole()
    assert not (tmp_path / "unused").exists()


async def test_a_login_without_membership_is_told_the_command(store: Store, tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match=r"permission denied.*Let an administrator run once: create role"):
        async with connect(behind(url_of(store), tmp_path)):
            pass


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://someone:hush@127.0.0.1:1/nothing",
        "postgresql://someone:hush@/nothing?host=%2Fno%2Fsuch%2Ffolder",
        "host=127.0.0.1 port=1 user=someone password=hush dbname=nothing",
        "postgresql://someone:hush@no-such-host.invalid/nothing",
    ],
)
async def test_no_server_answers(url: str, tmp_path: Path) -> None:
    settings = behind(url, tmp_path)
    with pytest.raises(DatabaseUnavailable, match=r"^The database cannot be reached: .*\. Diagnose it with") as caught:
        async with connect(settings):
            pass
    assert "hush" not in str(caught.value)
    assert "hush" not in str(settings.rows())
    assert "\n" not in str(caught.value)


async def test_an_unknown_database_is_reported(store: Store, tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match="does not exist"):
        async with connect(behind(url_of(Store(store.address, "nowhere")), tmp_path)):
            pass


@pytest.mark.parametrize("url", ["nonsense", "mysql://user:hush@host/db", "postgresql://[half", "host"])
async def test_an_invalid_url_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="DTRAG_DATABASE_URL is not a PostgreSQL address") as caught:
        async with connect(behind(url, tmp_path)):
            pass
    assert "hush" not in str(caught.value)


async def test_a_backup_is_restored_behind_a_url(
    member: Store, mortal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Into an empty database only; an interrupted restore is refused until it is repeated."""
    present = behind(url_of(Store(member.address, "present")), tmp_path)
    await connected_to(Settings.load(environ={}, data_dir=mortal, database_name="present", embedder="none"))
    async with open_app(present) as app:
        await add_texts(app, {"kettle.md": "# Kettle\n\nThe kettle boils."}, "Kitchen")
        await app.keys.create("kim")
    backup = tmp_path / "backup"
    report = await backups.make(present, backup)
    assert report.manifest.tables["documents"] == 1
    with pytest.raises(InvalidInput, match=r"is not empty\. Create an empty one on its server"):
        await backups.restore(present, backup, confirm=lambda plan: True)

    target = Store(member.address, "moved")
    Store(member.address, "postgres").rows("create database moved")
    await make_schema(member.address.conninfo("dtrag_owner", "moved"))
    settings = behind(url_of(target), tmp_path)

    async def killed(*arguments: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as broken:
        broken.setattr(backups, "_apply", killed)
        with pytest.raises(RuntimeError, match="killed"):
            await backups.restore(settings, backup, confirm=lambda plan: True)
    with pytest.raises(DatabaseUnavailable, match=r"a restore into it was interrupted\. Run again: dtrag restore FILE"):
        await connected_to(settings)
    with target.connect(), pytest.raises(InUse):
        await backups.restore(settings, backup, confirm=lambda plan: True)
    plan = await backups.restore(settings, backup, confirm=lambda plan: True)
    assert plan is not None
    assert (plan.target, plan.revoked_keys) == ("empty", ["kim"])
    async with open_app(settings) as app:
        assert [result.title for result in (await app.search("kettle"))[0]] == ["Kettle"]
        assert (await app.audit.verify(report.manifest.audit_head)).ok
    target.assert_whole()


async def connected_to(settings: Settings) -> None:
    async with connect(settings):
        pass
