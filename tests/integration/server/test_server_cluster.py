"""What a fresh folder becomes, and who else shares it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import psycopg
import pytest

from dtrag.adapters.postgres.server import programs, server
from dtrag.adapters.postgres.server.cluster import machine_memory, memory_settings
from dtrag.adapters.postgres.server.server import EmbeddedServer
from tests.integration.server.attached import (
    ROLES,
    attach_elsewhere,
    connect,
    dismiss,
    on_linux,
    postmaster,
    told,
    value,
)


def test_fresh_folder_becomes_a_private_cluster_with_three_ordinary_roles(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there yet"
    before = server.status(folder)
    assert (before.initialised, before.pid, before.version, before.size_bytes) == (False, None, None, 0)
    assert not folder.exists()
    with EmbeddedServer.open(folder) as attached:
        for role in ROLES:
            with connect(attached, role) as connection:
                row = connection.execute(
                    "select current_user, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb"
                    " from pg_roles where rolname = current_user"
                ).fetchone()
            assert row == (role, False, False, False, role == "dtrag_owner")
        during = server.status(folder)
        assert during.pid is not None
        assert during.socket_dir == attached.address.socket_dir
    after = server.status(folder)
    assert (after.initialised, after.pid, after.version) == (True, None, "18")
    assert 0 < after.size_bytes < 60_000_000
    for private in (folder, folder / "postgres"):
        assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert {path.name for path in folder.iterdir()} == {"postgres", "server.log", "start.lock", "users.lock"}


def test_owner_creates_databases_that_have_vectors(data_dir: Path) -> None:
    with EmbeddedServer.open(data_dir) as attached:
        with connect(attached) as connection:
            connection.execute("create database library")
        with psycopg.connect(attached.address.conninfo("dtrag_owner", "library")) as connection:
            connection.execute("create extension if not exists vector")
            connection.execute("create table items (embedding halfvec(2))")
            connection.execute("create index on items using hnsw (embedding halfvec_cosine_ops)")
            connection.execute("insert into items values ('[1,2]')")
            assert connection.execute("select embedding <=> '[2,4]' from items").fetchone() == (0.0,)


def test_no_client_can_log_in_as_a_superuser(data_dir: Path) -> None:
    with EmbeddedServer.open(data_dir) as attached:
        assert value(attached, "select count(*) from pg_roles where rolsuper and rolcanlogin") == 0
        assert value(attached, "select count(*) from pg_roles where rolcanlogin") == len(ROLES)
        names = [value(attached, "select rolname from pg_roles where rolsuper"), "postgres", programs.SYSTEM_USER]
        for name in names:
            with pytest.raises(psycopg.OperationalError, match=r"pg_hba\.conf"):
                connect(attached, str(name))


def test_settings_hold_and_cannot_be_lifted_by_a_role(data_dir: Path) -> None:
    (data_dir / "postgres" / "dtrag.conf").write_text("shared_buffers = 1GB\n", encoding="ascii")
    (data_dir / "postgres" / "postgresql.auto.conf").write_text("work_mem = 8MB\n", encoding="ascii")
    expected = {
        "work_mem": "8MB",
        "listen_addresses": "",
        "shared_buffers": f"{memory_settings(machine_memory())['shared_buffers']}MB",
        "data_checksums": "on",
        "server_encoding": "UTF8",
        "plan_cache_mode": "force_custom_plan",
        "fsync": "on",
        "synchronous_commit": "on",
        "statement_timeout": "1h",
        "idle_in_transaction_session_timeout": "5min",
    }
    with EmbeddedServer.open(data_dir) as attached:
        assert {name: value(attached, f"show {name}") for name in expected} == expected
        with connect(attached) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("set temp_file_limit = -1")


def test_a_small_machine_gets_the_least_memory_and_a_large_one_more_within_limits() -> None:
    least = {"shared_buffers": 128, "maintenance_work_mem": 128, "effective_cache_size": 512}
    for memory in (0, 1 << 30, 8 << 30):
        assert memory_settings(memory) == least
    assert memory_settings(64 << 30) == {
        "shared_buffers": 512,
        "maintenance_work_mem": 512,
        "effective_cache_size": 4_096,
    }
    assert memory_settings(1 << 40)["shared_buffers"] == 1_024


def test_the_memory_of_a_container_is_its_limit(tmp_path: Path) -> None:
    machine = machine_memory(tmp_path)
    assert machine > 0
    for name, text, expected in (
        ("memory.max", "max\n", machine),
        ("memory.max", "1048576\n", 1 << 20),
        ("memory/memory.limit_in_bytes", "524288\n", 1 << 19),
        ("memory/memory.limit_in_bytes", f"{1 << 62}\n", 1 << 20),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        assert machine_memory(tmp_path) == expected


def test_log_never_contains_values_of_statements(data_dir: Path) -> None:
    with EmbeddedServer.open(data_dir) as attached:
        for role in ROLES:
            with connect(attached, role) as connection, pytest.raises(psycopg.errors.InvalidTextRepresentation):
                connection.execute("select %s::int", ["confidential wording"])
            with connect(attached, role) as connection, pytest.raises(psycopg.errors.UndefinedColumn):
                connection.execute("select confidential_column")
    log = (data_dir / "server.log").read_text(encoding="utf-8")
    assert "database system is ready" in log
    assert "confidential" not in log


def test_large_log_makes_room_at_the_next_start(data_dir: Path) -> None:
    log = data_dir / "server.log"
    log.write_bytes(b"old line\n" * 150_000)
    EmbeddedServer.open(data_dir).close()
    assert log.stat().st_size < 100_000
    assert (data_dir / "server.log.1").read_bytes().startswith(b"old line\n")


def test_attachments_share_one_server_and_the_last_one_stops_it(data_dir: Path) -> None:
    first = EmbeddedServer.open(data_dir)
    pid = postmaster(data_dir)
    second = EmbeddedServer.open(data_dir)
    assert second.address == first.address
    child = attach_elsewhere(data_dir)
    assert told(child) == pid
    first.close()
    first.close()
    assert postmaster(data_dir) == pid
    second.close()
    assert postmaster(data_dir) == pid
    dismiss(child)
    assert server.status(data_dir).pid is None
    assert not (data_dir / "postgres" / "postmaster.pid").exists()


def test_killed_user_leaves_the_server_to_the_next(data_dir: Path) -> None:
    child = attach_elsewhere(data_dir)
    pid = told(child)
    child.kill()
    child.communicate()
    assert postmaster(data_dir) == pid
    with EmbeddedServer.open(data_dir):
        assert postmaster(data_dir) == pid
    assert server.status(data_dir).pid is None


def test_processes_that_open_a_fresh_folder_at_once_get_one_server(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    children = [attach_elsewhere(folder) for _ in range(3)]
    assert len({told(child) for child in children}) == 1
    for child in children:
        dismiss(child)
    assert server.status(folder).pid is None


@on_linux
def test_server_inherits_no_lock_and_no_terminal(data_dir: Path) -> None:
    with EmbeddedServer.open(data_dir):
        pid = postmaster(data_dir)
        files = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}
        assert not [name for name in files if name.endswith(".lock")]
        assert os.getsid(pid) != os.getsid(0)
        assert os.getpgid(pid) != os.getpgid(0)
