"""What may have happened before, and what cannot work and is explained."""

from __future__ import annotations

import errno
import os
import pwd
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from dtrag.adapters.postgres.server import process, programs, server
from dtrag.adapters.postgres.server.programs import explain_os_error
from dtrag.adapters.postgres.server.server import EmbeddedServer, FileLock
from dtrag.errors import DatabaseStartFailed
from tests.integration.server.attached import (
    ATTACH_PROGRAM,
    ROLES,
    ROOT,
    as_nobody,
    as_root,
    as_user,
    attach_elsewhere,
    connect,
    copy,
    on_linux,
    postmaster,
    until,
    value,
)


def test_data_survives_a_killed_server(data_dir: Path) -> None:
    with EmbeddedServer.open(data_dir) as attached:
        with connect(attached) as connection:
            connection.execute("create database library")
        library = attached.address.conninfo("dtrag_owner", "library")
        with psycopg.connect(library, autocommit=True) as connection:
            connection.execute("create table kept as select generate_series(1, 1000) as number")
            os.kill(postmaster(data_dir), signal.SIGKILL)
        with EmbeddedServer.open(data_dir), psycopg.connect(library) as connection:
            assert connection.execute("select sum(number) from kept").fetchone() == (500_500,)


@on_linux
def test_old_backends_that_still_live_are_waited_for(data_dir: Path) -> None:
    with EmbeddedServer.open(data_dir) as attached:
        connection = connect(attached)
        backend = connection.info.backend_pid
        pid = postmaster(data_dir)
        os.kill(backend, signal.SIGSTOP)
        os.kill(pid, signal.SIGKILL)
        waker = subprocess.Popen(["sh", "-c", f"sleep 1; kill -CONT {backend}"])
        with EmbeddedServer.open(data_dir) as again:
            assert postmaster(data_dir) != pid
            assert value(again, "select 1") == 1
        assert waker.wait() == 0
        connection.close()


def test_stale_pid_file_of_another_process_is_ignored(data_dir: Path) -> None:
    own = programs.server_account()
    stranger = subprocess.Popen(["sleep", "60"], user=own.uid if own.switched else None)
    try:
        stale = data_dir / "postgres" / "postmaster.pid"
        stale.write_text(f"{stranger.pid}\n/elsewhere\n1700000000\n5432\n.\n\n  1 1\nready   \n", encoding="ascii")
        os.chown(stale, own.uid, own.gid)
        assert server.status(data_dir).pid is None
        with EmbeddedServer.open(data_dir) as attached:
            assert postmaster(data_dir) != stranger.pid
            assert value(attached, "select 1") == 1
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("content", ["", "999999999\n", "not a number\n"])
def test_damaged_pid_file_is_no_obstacle_or_explained(data_dir: Path, content: str) -> None:
    stale = data_dir / "postgres" / "postmaster.pid"
    stale.write_text(content, encoding="ascii")
    if ROOT:
        shutil.chown(stale, programs.SYSTEM_USER, programs.SYSTEM_USER)
    with EmbeddedServer.open(data_dir) as attached:
        assert value(attached, "select 1") == 1


def test_killed_initialisation_leaves_nothing_incomplete(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    child = attach_elsewhere(folder)
    until(lambda: any(folder.glob("postgres.new-*/PG_VERSION")))
    child.kill()
    child.communicate()
    assert not (folder / "postgres").exists()
    with EmbeddedServer.open(folder) as attached:
        assert value(attached, "select count(*) from pg_roles where rolcanlogin") == len(ROLES)
    assert not list(folder.glob("postgres.new-*"))


def test_ctrl_c_during_initialisation_cleans_up(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    child = subprocess.Popen([sys.executable, ATTACH_PROGRAM, folder], stderr=subprocess.PIPE, text=True)
    until(lambda: any(folder.glob("postgres.new-*/PG_VERSION")))
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in said
    assert not (folder / "postgres").exists()
    for name in ("start.lock", "users.lock"):
        with FileLock(folder / name).held():
            pass


def test_ctrl_c_during_the_start_leaves_no_server_and_no_lock(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(process, "_wait_ready", interrupted)
        with pytest.raises(KeyboardInterrupt):
            EmbeddedServer.open(data_dir)
    for name in ("start.lock", "users.lock"):
        with FileLock(data_dir / name).held():
            pass
    with EmbeddedServer.open(data_dir) as attached:
        assert value(attached, "select 1") == 1


@as_root
def test_unwritable_folder_is_explained_to_another_user(public: Path) -> None:
    said = as_nobody(lambda: str(EmbeddedServer.open(public / "data")))
    assert said.startswith("DatabaseStartFailed")
    assert "is not writable" in said
    assert "DTRAG_DATA_DIR" in said


@as_user
def test_unwritable_folder_is_explained(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o500)
    with pytest.raises(DatabaseStartFailed, match=r"is not writable .* DTRAG_DATA_DIR"):
        EmbeddedServer.open(folder)


@as_root
def test_folder_and_cluster_of_another_user_are_refused(data_dir: Path) -> None:
    nobody = pwd.getpwnam("nobody").pw_uid
    for path in (data_dir, data_dir / "postgres"):
        owner = path.stat().st_uid
        os.chown(path, nobody, -1)
        with pytest.raises(DatabaseStartFailed, match=f"belongs to user id {nobody}"):
            EmbeddedServer.open(data_dir)
        os.chown(path, owner, -1)
    EmbeddedServer.open(data_dir).close()


def test_cluster_of_another_major_version_is_refused(data_dir: Path) -> None:
    (data_dir / "postgres" / "PG_VERSION").write_text("17\n", encoding="ascii")
    with pytest.raises(DatabaseStartFailed, match="made by PostgreSQL 17, but this dtrag brings PostgreSQL 18"):
        EmbeddedServer.open(data_dir)


def test_folder_that_is_not_a_cluster_is_refused(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    if ROOT:
        shutil.chown(tmp_path / "postgres", programs.server_account().uid)
    with pytest.raises(DatabaseStartFailed, match="is not a PostgreSQL cluster"):
        EmbeddedServer.open(tmp_path)


def test_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file", encoding="ascii")
    with pytest.raises(DatabaseStartFailed, match="a file, not a folder"):
        EmbeddedServer.open(tmp_path / "data")
    with pytest.raises(DatabaseStartFailed, match="DTRAG_DATA_DIR"):
        EmbeddedServer.open(tmp_path / "data" / "below")


def test_server_that_does_not_start_is_quoted(data_dir: Path) -> None:
    damaged = data_dir / "postgres" / "global" / "pg_control"
    damaged.write_bytes(b"\0" * damaged.stat().st_size)
    with pytest.raises(DatabaseStartFailed, match=r"PostgreSQL said: .+\. The log is .*server\.log"):
        EmbeddedServer.open(data_dir)


def test_damaged_installation_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "wheel_folder", lambda: tmp_path)
    with pytest.raises(DatabaseStartFailed, match=r"postgres is missing; install .* again"):
        EmbeddedServer.open(tmp_path / "data")


def test_waiting_for_another_start_is_limited(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_PATIENCE_S", 0.05)
    with (
        FileLock(data_dir / "start.lock").held(),
        pytest.raises(DatabaseStartFailed, match="another process has been starting or stopping it"),
    ):
        EmbeddedServer.open(data_dir)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ENOSPC, "the disk is full; free some space"),
        (errno.EROFS, "/some/place is not writable"),
        (errno.ENAMETOOLONG, "/some/place: File name too long; choose another folder with DTRAG_DATA_DIR"),
    ],
)
def test_errors_of_the_file_system_are_one_sentence(number: int, expected: str) -> None:
    error = OSError(number, os.strerror(number), "/some/place")
    assert explain_os_error(error, Path("/data")).startswith(expected)


def test_missing_programs_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_PACKAGE", "dtrag_no_such_package")
    with pytest.raises(DatabaseStartFailed, match=r"is not installed.*make setup"):
        EmbeddedServer.open(tmp_path / "data")


@as_root
def test_missing_system_user_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "SYSTEM_USER", "dtrag-not-there")
    monkeypatch.setattr(programs, "_CREATE_USER", ((("dtrag-no-such-program",),), (("false",),)))
    with pytest.raises(DatabaseStartFailed, match="useradd --system dtrag-not-there"):
        EmbeddedServer.open(tmp_path / "data")


@as_root
@on_linux
@pytest.mark.parametrize("size", ["8m", "33m"], ids=["init", "start"])
def test_full_disk_is_explained(tmp_path: Path, initialised: Path, size: str) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("no right to mount a small disk")
    try:
        folder = place / "data"
        if size != "8m":
            copy(initialised, folder)
            with (folder / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space left"):
                while True:
                    filler.write(bytes(4096))
        with pytest.raises(DatabaseStartFailed, match="the disk is full; free some space"):
            EmbeddedServer.open(folder)
        if size != "8m":
            (folder / "filler").unlink()
            EmbeddedServer.open(folder).close()
    finally:
        subprocess.run(["umount", place], check=True)
