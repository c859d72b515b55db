"""Databases of a test's own on a cluster (DTRAG_TEST_CITUS_URL: its coordinator, on this machine, as a superuser)."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from dtrag.adapters.postgres import cluster
from dtrag.adapters.postgres.database import ROLE_NAMES
from dtrag.settings import Settings

URL = os.environ.get("DTRAG_TEST_CITUS_URL", "")
_numbers = itertools.count()
_restarted: list[subprocess.Popen[bytes]] = []
"""Servers that go on after the tests."""


@dataclass(frozen=True)
class Node:
    """A server of the cluster."""

    host: str
    port: int

    def conninfo(self, database: str) -> str:
        return make_conninfo(URL, host=self.host, port=self.port, dbname=database)

    def rows(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        with psycopg.connect(self.conninfo(database), autocommit=True, connect_timeout=5) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    @property
    def process(self) -> int:
        """The first process of the server."""
        [(text,)] = self.rows("select pg_read_file('postmaster.pid')")
        return int(text.split("\n")[0])

    def processes(self) -> list[int]:
        """All processes of the server."""
        first = self.process
        every = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        return [first, *(pid for pid in every if _parent(pid) == first)]

    @contextmanager
    def down(self) -> Iterator[None]:
        """The server is killed, and started again at the end."""
        first = self.process
        program, folder = Path(f"/proc/{first}/exe").readlink(), Path(f"/proc/{first}/cwd").readlink()
        environment = dict(
            part.split("=", 1) for part in Path(f"/proc/{first}/environ").read_text().split("\0") if "=" in part
        )
        owner = Path(f"/proc/{first}").stat()
        os.kill(first, signal.SIGQUIT)
        while Path(f"/proc/{first}").exists() and "Z" not in Path(f"/proc/{first}/stat").read_text().rpartition(")")[2]:
            time.sleep(0.05)
        try:
            yield
        finally:
            server = subprocess.Popen(
                [program, "-D", folder],
                env=environment,
                user=owner.st_uid,
                group=owner.st_gid,
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            _restarted.append(server)
            for _ in range(200):
                with suppress(psycopg.OperationalError):
                    self.rows("select 1")
                    break
                time.sleep(0.1)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """The server accepts connections, and does not respond."""
        stopped = self.processes()
        try:
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in stopped:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError):
        return 0


def nodes() -> list[Node]:
    """The coordinator, and the workers."""
    with psycopg.connect(URL, autocommit=True) as connection:
        rows = connection.execute("select nodename, nodeport from pg_dist_node order by groupid").fetchall()
    return [Node(host, port) for host, port in rows]


@contextmanager
def database() -> Iterator[str]:
    """The address of a new database on all servers of the cluster, without any table."""
    servers, name = nodes(), f"dtrag_test_{os.getpid()}_{next(_numbers)}"
    try:
        for server in servers:
            server.rows(f"create database {name}")
            server.rows("create extension citus", name)
        coordinator, *workers = servers
        coordinator.rows(f"select citus_set_coordinator_host('{coordinator.host}', {coordinator.port})", name)
        for worker in workers:
            coordinator.rows(f"select citus_add_node('{worker.host}', {worker.port})", name)
        coordinator.rows("create extension vector", name)
        for role in ROLE_NAMES.values():
            if not coordinator.rows(f"select 1 from pg_roles where rolname = '{role}'"):
                coordinator.rows(f"create role {role} login")
        yield make_conninfo(URL, host=coordinator.host, port=coordinator.port, dbname=name)
    finally:
        for server in servers:
            server.rows(f"drop database if exists {name} with (force)")


def rows(url: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """What a statement returns, as the superuser."""
    with psycopg.connect(url, autocommit=True, options="-c search_path=dtrag,public") as connection:
        cursor = connection.execute(sql.SQL(statement), values or None)
        return cursor.fetchall() if cursor.description else []


def settings(url: str, folder: Path, **overrides: Any) -> Settings:
    """Settings of a database of the cluster."""
    values = conninfo_to_dict(url)
    address = f"postgresql://{values['user']}@{values['host']}:{values['port']}/{values['dbname']}"
    environment = {"DTRAG_DATABASE_URL": address, "DTRAG_STATEMENT_TIMEOUT_MS": "2000"}
    return Settings.load(environ=environment, data_dir=folder, **({"embedder": "none"} | overrides))


async def converted(url: str, folder: Path, **overrides: Any) -> Settings:
    """The same, after its conversion."""
    made = settings(url, folder, **overrides)
    await cluster.convert(made, tell=lambda _: None)
    return made
