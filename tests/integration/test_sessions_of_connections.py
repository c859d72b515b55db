"""What a new connection verifies: behind a pooling proxy in session mode it is set up, in other modes refused."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from dtrag.adapters.postgres import pool
from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.database import ROLES, Database, fetch_row
from dtrag.adapters.postgres.server.server import EmbeddedServer
from dtrag.adapters.postgres.session import milliseconds
from dtrag.adapters.postgres.stores import jobs
from dtrag.app import App, open_app
from dtrag.errors import DatabaseUnavailable
from dtrag.settings import Settings
from tests.clusters import LOGIN, Cluster, clusters, free_port
from tests.store import Databases
from tests.toy import lines

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
needs_pgbouncer = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")


@pytest.fixture(scope="module")
def primary() -> Iterator[Cluster]:
    with clusters() as [cluster]:
        yield cluster


@contextmanager
def pgbouncer(cluster: Cluster, folder: Path, mode: str, **more: object) -> Iterator[int]:
    """The port of a pooler before the cluster."""
    assert PGBOUNCER is not None
    port = free_port()
    (folder / "users").write_text(f'"{LOGIN}" ""\n')
    settings = {
        "listen_addr": "127.0.0.1",
        "listen_port": port,
        "unix_socket_dir": "",
        "auth_type": "trust",
        "auth_file": folder / "users",
        "pool_mode": mode,
        "ignore_startup_parameters": "options",
    } | more
    lines_of_file = [f"{name} = {value}" for name, value in settings.items()]
    database = f"postgres = host=127.0.0.1 port={cluster.port} dbname=postgres"
    (folder / "pgbouncer.ini").write_text("\n".join(["[databases]", database, "[pgbouncer]", *lines_of_file]))
    root = os.geteuid() == 0
    group = pwd.getpwnam("nobody").pw_gid if root else None
    for parent in (folder, *folder.parents):  # of pytest's private folders
        if root and parent.owner() == "root" and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o055)
    process = subprocess.Popen(
        [PGBOUNCER, folder / "pgbouncer.ini"],
        stderr=subprocess.PIPE,
        cwd="/",
        user="nobody" if root else None,
        group=group,
        extra_groups=[] if root else None,
    )
    try:
        deadline = time.monotonic() + 20
        while True:
            assert process.poll() is None and time.monotonic() < deadline, process.stderr and process.stderr.read()
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.02)
        yield port
    finally:
        process.kill()
        process.communicate()


def settings_of(url: str, folder: Path) -> Settings:
    return Settings.load(environ={}, database_url=url, data_dir=folder / "data", embedder="none")


@needs_pgbouncer
async def test_a_pooler_in_session_mode_works(primary: Cluster, tmp_path: Path) -> None:
    with pgbouncer(primary, tmp_path, "session") as port:
        settings = settings_of(primary.url(port=port), tmp_path)
        async with open_app(settings) as app:
            for role in ROLES:
                async with app.database.connection(role) as connection:
                    row = await (
                        await connection.execute(
                            "select current_user::text as role, current_setting('search_path') as path,"
                            " current_setting('statement_timeout') as timeout, current_setting('TimeZone') as zone"
                        )
                    ).fetchone()
                limit = "0" if role == "owner" else "15s"
                path = "dtrag, public, extensions"
                assert row == {"role": f"dtrag_{role}", "path": path, "timeout": limit, "zone": "UTC"}
            assert (await app.ingest(lines(tmp_path / "notes.jsonl", 20))).documents == 20
            assert (await app.search("kettle"))[0]
        async with open_app(settings) as app:  # with sessions that the pooler has used before
            assert (await app.search("kettle"))[0]


@needs_pgbouncer
@pytest.mark.parametrize("mode", ["transaction", "statement"])
@pytest.mark.parametrize("order", [0, 1], ids=["last used first", "in turn"])
async def test_a_pooler_that_shares_sessions_is_refused(
    primary: Cluster, tmp_path: Path, mode: str, order: int
) -> None:
    more = {"server_round_robin": order, "min_pool_size": 3 * order}
    with pgbouncer(primary, tmp_path, mode, **more) as port:
        for _ in range(3):
            with pytest.raises(DatabaseUnavailable, match=r"shares sessions between clients|transaction"):
                async with connect(settings_of(primary.url(port=port), tmp_path)):
                    pass


@needs_pgbouncer
async def test_a_pooler_that_is_changed_later_gets_no_new_sessions(primary: Cluster, tmp_path: Path) -> None:
    with pgbouncer(primary, tmp_path, "session") as port:
        async with connect(settings_of(primary.url(port=port), tmp_path)) as database:
            await database.ping()
            with pytest.raises(DatabaseUnavailable, match="shares sessions"):
                async with database.connection("owner") as connection:
                    connection.backend = None  # as if the server process were lent to the next client, too
                    known = {other.backend for other in database._connections() if other.backend is not None}
                    backend = next(iter(known))
                    row = await (await connection.execute("select pg_backend_pid() as number")).fetchone()
                    assert row is not None
                    mine = backend._replace(process=row["number"])
                    await database._sessions["owner"].prepare(connection, database._address("owner"), {mine})


async def test_a_session_that_runs_as_another_role_is_refused(embedded: EmbeddedServer, template: str) -> None:
    def conninfo(role: str) -> str:
        return embedded.address.conninfo("dtrag_owner", template)

    async with Database(conninfo) as database:
        for role in ("search", "reader"):
            with pytest.raises(DatabaseUnavailable, match=f"runs as dtrag_owner, not as dtrag_{role}"):
                async with database.connection(role):
                    pass


async def test_the_server_ends_a_change_whose_process_is_silent(
    embedded: EmbeddedServer, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also outside of a transaction with locks of the session, and after a pipeline; not one that is attended."""
    monkeypatch.setattr(pool, "ATTEND_S", 0.05)
    async with Database(lambda role: embedded.address.conninfo(f"dtrag_{role}", template)) as database:
        for role, limit in zip(ROLES, ("10s", "1min", "1min"), strict=True):
            async with database.connection(role) as connection:
                cursor = await connection.execute("show idle_in_transaction_session_timeout")
                assert await cursor.fetchone() == {"idle_in_transaction_session_timeout": limit}
        async with database.connection("owner") as connection, connection.transaction():
            await connection.execute("set local idle_in_transaction_session_timeout = 300")
            async with connection.attended():
                await asyncio.sleep(1)
            await connection.execute("select 1")
        for outside in (False, True):
            monkeypatch.setattr(pool, "SILENT_OWNER_S", 0.3)
            with pytest.raises(DatabaseUnavailable, match=r"idle|terminating|closed"):
                async with (
                    database.connection("owner") as connection,
                    connection.armed(),
                    nullcontext() if outside else connection.transaction(),
                ):
                    await connection.execute("set idle_in_transaction_session_timeout = 300")
                    async with connection.pipeline():
                        await connection.execute("select 1")
                        await connection.execute("select 2")
                    await asyncio.sleep(1)
                    await connection.execute("select 3")
            await database.ping()


@pytest.mark.parametrize(("number", "shown"), [(0, "0"), (15_000, "15s"), (1_500, "1500ms"), (120_000, "2min")])
async def test_durations_are_written_as_postgresql_shows_them(
    embedded: EmbeddedServer, template: str, number: int, shown: str
) -> None:
    assert milliseconds(number) == shown
    async with Database(
        lambda role: embedded.address.conninfo(f"dtrag_{role}", template), statement_timeout_ms=number
    ) as database:
        await database.ping()


LEASE_S = 0.5


@asynccontextmanager
async def half_a_statement(app: App, lock: int) -> AsyncIterator[Callable[[], None]]:
    """A session in a transaction that holds a lock and has sent a statement without its end; sends another one."""
    connection = await psycopg.AsyncConnection.connect(app.database._address("owner"), autocommit=True)
    await connection.execute(sql.SQL("begin; select pg_advisory_xact_lock({})").format(lock))
    connection.pgconn.enter_pipeline_mode()

    def send() -> None:
        connection.pgconn.send_query_params(b"select 1", None)
        connection.pgconn.flush()

    send()
    try:
        yield send
    finally:
        await connection.close()


async def looks(app: App, until_s: float) -> None:
    """Look for lost jobs, as a service does all the time."""
    ends = time.monotonic() + until_s
    while time.monotonic() < ends:
        await app.jobs.store.expire(10, "lost")
        await asyncio.sleep(LEASE_S / 10)


@pytest.mark.parametrize("server", ["embedded", "external"])
async def test_a_session_that_was_stopped_in_a_statement_is_ended(
    primary: Cluster, databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str
) -> None:
    """The time limits of PostgreSQL count between statements only: its locks would stay as long as the process."""
    monkeypatch.setattr(jobs, "LEASE", timedelta(seconds=LEASE_S))
    settings = databases.settings()
    if server == "external":
        settings = Settings.load(environ={}, database_url=primary.url(), data_dir=tmp_path, embedder="none")
    async with open_app(settings) as app, half_a_statement(app, 71), app.database.connection("owner") as waiting:
        taken = asyncio.create_task(waiting.execute("select pg_advisory_lock(71), pg_advisory_unlock(71)"))
        await looks(app, LEASE_S / 2)
        assert not taken.done()
        await looks(app, LEASE_S)
        async with asyncio.timeout(10):
            await taken


async def test_sessions_that_go_on_are_left_alone(databases: Databases, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long statements, long transactions, and pipelines that send one statement after another."""
    monkeypatch.setattr(jobs, "LEASE", timedelta(seconds=LEASE_S))
    async with open_app(databases.settings()) as app:

        async def long_statement() -> None:
            async with app.database.connection("owner") as connection:
                await connection.execute("select pg_sleep(%s)", [4 * LEASE_S])

        async def long_transaction() -> None:
            async with app.database.connection("owner") as connection, connection.transaction():
                await connection.execute("select 1")
                await asyncio.sleep(4 * LEASE_S)
                await connection.execute("select 1")

        async def long_pipeline() -> None:
            async with half_a_statement(app, 72) as send, app.database.connection("owner") as other:
                for _ in range(40):
                    send()
                    await asyncio.sleep(LEASE_S / 10)
                assert await fetch_row(other, "select pg_try_advisory_lock(72) as free") == {"free": False}

        await asyncio.gather(long_statement(), long_transaction(), long_pipeline(), looks(app, 4 * LEASE_S))
