"""The embedded server among the users and folders of the machine.

As root the folders of pytest lie below a private folder of root, so that nearly every test also proves that the server
needs no way through its parents. Tests of one privilege are skipped under the other.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import stat
from pathlib import Path

import psycopg
import pytest

from dtrag.adapters.postgres.server import process, programs, server
from dtrag.adapters.postgres.server.server import EmbeddedServer
from tests.integration.server.attached import (
    ROLES,
    as_nobody,
    as_root,
    attach_elsewhere,
    connect,
    copy,
    copy_of_wheel,
    dismiss,
    on_linux,
    postmaster,
    succeeds,
    told,
    until,
    value,
)


@as_root
def test_folders_are_closed_to_other_users(initialised: Path, public: Path) -> None:
    folder = public / "data"
    copy(initialised, folder)
    with EmbeddedServer.open(folder) as attached:
        path = attached.address.socket_dir / f".s.PGSQL.{attached.address.port}"

        def knock() -> str:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
            return "connected"

        assert as_nobody(knock).startswith("PermissionError")
        assert "Permission denied" in as_nobody(lambda: str(connect(attached)))


@as_root
def test_other_users_are_refused_even_with_the_folders_open(initialised: Path, public: Path) -> None:
    folder = public / "data"
    copy(initialised, folder)
    with EmbeddedServer.open(folder) as attached:
        (folder / "postgres" / f".s.PGSQL.{process.PORT}").chmod(0o777)
        for opened in (folder / "postgres", folder):
            opened.chmod(0o755)
        for role in ROLES:
            said = as_nobody(lambda role=role: str(connect(attached, role)))  # type: ignore[misc]
            assert f'Peer authentication failed for user "{role}"' in said


def test_nothing_outside_the_folder_changes(initialised: Path, tmp_path: Path) -> None:
    folder = tmp_path / "private" / "data"
    folder.parent.mkdir(mode=0o700)
    watched = [*folder.parents, Path.home(), programs.wheel_folder(), *programs.wheel_folder().parents]

    def rights() -> dict[Path, tuple[int, int, int]]:
        return {path: ((found := path.stat()).st_mode, found.st_uid, found.st_gid) for path in watched}

    before = rights()
    EmbeddedServer.open(folder).close()
    assert rights() == before
    shutil.rmtree(folder)
    copy(initialised, folder)
    folder.chmod(0o750)
    EmbeddedServer.open(folder).close()
    assert rights() == before
    assert stat.S_IMODE(folder.stat().st_mode) == 0o750


@as_root
def test_an_ordinary_user_runs_the_server_under_the_same_user(public: Path) -> None:
    folder = public / "home"
    folder.mkdir()
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)

    def use() -> str:
        with EmbeddedServer.open(folder / "data") as attached:
            owner = Path(f"/proc/{postmaster(folder / 'data')}").stat().st_uid
            return f"{owner} {value(attached, 'select current_user')} {server.status(folder / 'data').pid is not None}"

    said = as_nobody(use)
    if "cannot be executed" in said:
        pytest.skip("this installation is closed to other users")
    assert said == f"{nobody.pw_uid} dtrag_owner True"
    assert server.status(folder / "data").pid is None


@as_root
@on_linux
def test_as_root_the_server_is_the_system_users(data_dir: Path) -> None:
    system = pwd.getpwnam(programs.SYSTEM_USER)
    with EmbeddedServer.open(data_dir):
        running = Path(f"/proc/{postmaster(data_dir)}")
        assert running.stat().st_uid == system.pw_uid
        groups = next(line for line in (running / "status").read_text().splitlines() if line.startswith("Groups:"))
        assert groups.split()[1:] == []


@as_root
def test_programs_the_system_user_cannot_reach_are_copied_into_the_data_folder(
    initialised: Path, public: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed_wheel = copy_of_wheel(tmp_path / "closed")
    monkeypatch.setattr(programs, "wheel_folder", lambda: closed_wheel)
    folder = public / "data"
    copy(initialised, folder)
    folder.chmod(0o755)
    with EmbeddedServer.open(folder) as attached:
        assert value(attached, "select '[1]'::text") == "[1]"
    copies = list(folder.glob("postgres-binaries-*"))
    assert len(copies) == 1
    assert sum(path.stat().st_size for path in copies[0].rglob("*") if path.is_file()) < 30_000_000
    made = copies[0].stat().st_mtime_ns
    EmbeddedServer.open(folder).close()
    assert [path.stat().st_mtime_ns for path in folder.glob("postgres-binaries-*")] == [made]


@as_root
def test_programs_go_to_a_shared_folder_when_the_data_folder_is_closed_too(
    public: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed_wheel = copy_of_wheel(tmp_path / "closed")
    monkeypatch.setattr(programs, "wheel_folder", lambda: closed_wheel)
    monkeypatch.setattr(programs, "SHARED_HOME", public / "shared")
    folder = tmp_path / "closed" / "data"
    with EmbeddedServer.open(folder) as attached:
        with connect(attached) as connection:
            connection.execute("create database library")
        with psycopg.connect(attached.address.conninfo("dtrag_search", "library")) as connection:
            assert connection.execute("select '[1,2]'::halfvec <-> '[1,2]'").fetchone() == (0.0,)
    assert [path.name.startswith("postgres-binaries-") for path in (public / "shared").iterdir()] == [True]
    assert not list(folder.glob("postgres-binaries-*"))
    assert stat.S_IMODE((tmp_path / "closed").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "name", ["내 문서 보관함", "O'Brien's \\ \"data\"", "one, two", "x" * 150], ids="ko ' , long".split()
)
def test_folders_with_unusual_names(initialised: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    copy(initialised, folder)
    with EmbeddedServer.open(folder) as attached:
        place = attached.address.socket_dir
        for role in ROLES:
            assert value(attached, "select current_user", role) == role
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        child = attach_elsewhere(folder)
        assert told(child) == postmaster(folder)
        dismiss(child)
    # A socket that found no room in the cluster had a private folder, which is gone with the server.
    assert place.exists() == (place == folder / "postgres")
    shutil.rmtree(folder)


def test_private_socket_folder_of_a_killed_server_is_removed(initialised: Path, tmp_path: Path) -> None:
    folder = tmp_path / ("y" * 150)
    copy(initialised, folder)
    with EmbeddedServer.open(folder) as attached:
        os.kill(postmaster(folder), signal.SIGKILL)
        with EmbeddedServer.open(folder) as again:
            assert again.address.socket_dir != attached.address.socket_dir
            assert not attached.address.socket_dir.exists()
    shutil.rmtree(folder)


@as_root
def test_parents_closed_to_the_system_user_are_handled(initialised: Path, tmp_path: Path) -> None:
    folder = tmp_path / "closed" / "closed too" / "data"
    folder.parent.mkdir(parents=True)
    for parent in (folder.parent, folder.parent.parent):
        parent.chmod(0o700)
    copy(initialised, folder)
    with EmbeddedServer.open(folder) as attached, connect(attached) as connection, connect(attached) as other:
        connection.execute("create database library")
        connection.execute("vacuum")
        os.kill(connection.info.backend_pid, signal.SIGKILL)
        # The postmaster ends every other backend once it has noticed; before that `select 1` still succeeds.
        until(lambda: not succeeds(lambda: other.execute("select 1")))
        until(lambda: succeeds(lambda: value(attached, "select 1")))
        os.kill(postmaster(folder), signal.SIGHUP)
        assert value(attached, "select 1") == 1
