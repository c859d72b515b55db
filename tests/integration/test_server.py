"""The embedded server on real folders with real processes: start, attach, stop, and everything that may be in the way.

As root the folders of pytest lie below a private folder of root, so that nearly every test here also proves that the
server needs no way through its parents. Tests of one privilege are skipped under the other.
"""

from __future__ import annotations

import errno
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from dtrag.adapters.postgres import account, binaries, filelock, process, server
from dtrag.adapters.postgres.failures import explain_os_error
from dtrag.adapters.postgres.filelock import FileLock
from dtrag.adapters.postgres.server import EmbeddedServer
from dtrag.errors import DatabaseStartFailed

ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not ROOT, reason="needs root")
as_user = pytest.mark.skipif(ROOT, reason="root may do everything")
on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
ROLES = ("dtrag_owner", "dtrag_search", "dtrag_reader")

ATTACH = """
import sys
from pathlib import Path
from dtrag.adapters.postgres import process
from dtrag.adapters.postgres.server import EmbeddedServer
with EmbeddedServer.open(Path(sys.argv[1])) as attached:
    print(process.running_pid(attached.address.data_dir / "postgres"), flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(scope="session")
def initialised(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder whose server has been started once and stopped."""
    folder = tmp_path_factory.mktemp("initialised") / "data"
    EmbeddedServer.open(folder).close()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def data_dir(initialised: Path, tmp_path: Path) -> Iterator[Path]:
    """A data folder of the test's own, with a cluster in it; at the end no server may be left running."""
    folder = tmp_path / "data"
    copy(initialised, folder)
    yield folder
    assert server.status(folder).pid is None
    shutil.rmtree(folder)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user of the machine can enter."""
    folder = Path(tempfile.mkdtemp(prefix="test-dtrag-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def copy(source: Path, target: Path) -> None:
    """Owners and modes included, which `shutil.copytree` loses."""
    subprocess.run(["cp", "-a", source, target], check=True)


def connect(attached: EmbeddedServer, role: str = "dtrag_owner") -> psycopg.Connection:
    return psycopg.connect(attached.address.conninfo(role, "postgres"), autocommit=True)


def value(attached: EmbeddedServer, query: str, role: str = "dtrag_owner") -> object:
    with connect(attached, role) as connection:
        row = connection.execute(query.encode()).fetchone()
    return row[0] if row else None


def postmaster(folder: Path) -> int:
    pid = server.status(folder).pid
    assert pid is not None
    return pid


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < deadline, "it did not happen within 30 seconds"
        time.sleep(0.01)


def attach_elsewhere(folder: Path) -> subprocess.Popen[str]:
    """Another process that attaches, tells the postmaster's number, and leaves when told to."""
    return subprocess.Popen(
        [sys.executable, "-c", ATTACH, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def told(child: subprocess.Popen[str]) -> int:
    assert child.stdout is not None
    return int(child.stdout.readline())


def dismiss(child: subprocess.Popen[str]) -> None:
    child.communicate("\n", timeout=60)
    assert child.returncode == 0


def as_nobody(attempt: Callable[[], str]) -> str:
    """What `attempt` returns, or the error it meets, in a forked process of the user `nobody`."""
    nobody = pwd.getpwnam("nobody")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)
        try:
            said = attempt()
        except BaseException as error:  # noqa: BLE001 - the parent process judges it
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answers:
        said = answers.read()
    os.waitpid(child, 0)
    return said


# --- What a fresh folder becomes -------------------------------------------------------------------------------------


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


def test_nobody_logs_in_as_a_superuser(data_dir: Path) -> None:
    with EmbeddedServer.open(data_dir) as attached:
        assert value(attached, "select count(*) from pg_roles where rolsuper and rolcanlogin") == 0
        assert value(attached, "select count(*) from pg_roles where rolcanlogin") == len(ROLES)
        names = [value(attached, "select rolname from pg_roles where rolsuper"), "postgres", account.SYSTEM_USER]
        for name in names:
            with pytest.raises(psycopg.OperationalError, match=r"pg_hba\.conf"):
                connect(attached, str(name))


def test_settings_hold_and_cannot_be_lifted_by_a_role(data_dir: Path) -> None:
    (data_dir / "postgres" / "dtrag.conf").write_text("shared_buffers = 1GB\n", encoding="ascii")
    expected = {
        "listen_addresses": "",
        "shared_buffers": "128MB",
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


def test_log_never_shows_what_a_statement_was_about(data_dir: Path) -> None:
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


# --- Who else is on the machine --------------------------------------------------------------------------------------


@as_root
def test_other_users_meet_closed_folders(initialised: Path, public: Path) -> None:
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
    watched = [*folder.parents, Path.home(), binaries.wheel_folder(), *binaries.wheel_folder().parents]

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
def test_ordinary_user_runs_the_server_as_himself(public: Path) -> None:
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
    system = pwd.getpwnam(account.SYSTEM_USER)
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
    monkeypatch.setattr(binaries, "wheel_folder", lambda: closed_wheel)
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
    monkeypatch.setattr(binaries, "wheel_folder", lambda: closed_wheel)
    monkeypatch.setattr(binaries, "SHARED_HOME", public / "shared")
    folder = tmp_path / "closed" / "data"
    with EmbeddedServer.open(folder) as attached:
        with connect(attached) as connection:
            connection.execute("create database library")
        with psycopg.connect(attached.address.conninfo("dtrag_search", "library")) as connection:
            assert connection.execute("select '[1,2]'::halfvec <-> '[1,2]'").fetchone() == (0.0,)
    assert [path.name.startswith("postgres-binaries-") for path in (public / "shared").iterdir()] == [True]
    assert not list(folder.glob("postgres-binaries-*"))
    assert stat.S_IMODE((tmp_path / "closed").stat().st_mode) == 0o700


def copy_of_wheel(folder: Path) -> Path:
    """The wheel's folder, copied to where only its owner may go."""
    original = binaries.wheel_folder()
    folder.mkdir(mode=0o700)
    ignored = shutil.ignore_patterns("*.a", "include")
    shutil.copytree(original / "pginstall18", folder / original.name / "pginstall18", ignore=ignored)
    libraries = original.parent / f"{original.name}.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, folder / libraries.name)
    return folder / original.name


# --- More than one user of a folder ----------------------------------------------------------------------------------


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


# --- What may have happened before -----------------------------------------------------------------------------------


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


def test_stale_pid_file_of_a_stranger_is_no_obstacle(data_dir: Path) -> None:
    own = account.server_account()
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
        shutil.chown(stale, account.SYSTEM_USER, account.SYSTEM_USER)
    with EmbeddedServer.open(data_dir) as attached:
        assert value(attached, "select 1") == 1


def test_killed_initialisation_leaves_nothing_half_made(tmp_path: Path) -> None:
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
    child = subprocess.Popen([sys.executable, "-c", ATTACH, folder], stderr=subprocess.PIPE, text=True)
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


# --- Where the folder lies -------------------------------------------------------------------------------------------


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
def test_parents_closed_to_the_system_user_are_no_obstacle(initialised: Path, tmp_path: Path) -> None:
    folder = tmp_path / "closed" / "closed too" / "data"
    folder.parent.mkdir(parents=True)
    for parent in (folder.parent, folder.parent.parent):
        parent.chmod(0o700)
    copy(initialised, folder)
    with EmbeddedServer.open(folder) as attached, connect(attached) as connection:
        connection.execute("create database library")
        connection.execute("vacuum")
        os.kill(connection.info.backend_pid, signal.SIGKILL)
        until(lambda: succeeds(lambda: value(attached, "select 1")))
        os.kill(postmaster(folder), signal.SIGHUP)
        assert value(attached, "select 1") == 1


def succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except psycopg.OperationalError:
        return False
    return True


# --- What cannot work is explained -----------------------------------------------------------------------------------


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


def test_folder_that_is_no_cluster_is_refused(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    if ROOT:
        shutil.chown(tmp_path / "postgres", account.server_account().uid)
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
    monkeypatch.setattr(binaries, "wheel_folder", lambda: tmp_path)
    with pytest.raises(DatabaseStartFailed, match=r"postgres is missing; install .* again"):
        EmbeddedServer.open(tmp_path / "data")


def test_long_start_of_somebody_else_is_not_waited_for_without_end(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filelock, "_PATIENCE_S", 0.05)
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
    monkeypatch.setattr(binaries, "_PACKAGE", "dtrag_no_such_package")
    with pytest.raises(DatabaseStartFailed, match=r"is not installed.*make setup"):
        EmbeddedServer.open(tmp_path / "data")


@as_root
def test_missing_system_user_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "SYSTEM_USER", "dtrag-not-there")
    monkeypatch.setattr(account, "_CREATE_USER", ((("dtrag-no-such-program",),), (("false",),)))
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
