"""What the tests of the embedded server share: attaching, asking, watching, being somebody else."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from dtrag.adapters.postgres.server import programs, server
from dtrag.adapters.postgres.server.server import EmbeddedServer

ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not ROOT, reason="needs root")
as_user = pytest.mark.skipif(ROOT, reason="root may do everything")
on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
ROLES = ("dtrag_owner", "dtrag_search", "dtrag_reader")

ATTACH_PROGRAM = Path(__file__).with_name("attach_program.py")


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
        [sys.executable, ATTACH_PROGRAM, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def told(child: subprocess.Popen[str]) -> int:
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:  # Reap the process, or its open pipes fail a later test that has nothing to do with it.
        child.communicate(timeout=60)
    assert line, f"the attaching process ended with {child.returncode} before it printed a pid"
    return int(line)


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


def copy_of_wheel(folder: Path) -> Path:
    """The wheel's folder, copied to where only its owner may go."""
    original = programs.wheel_folder()
    folder.mkdir(mode=0o700)
    ignored = shutil.ignore_patterns("*.a", "include")
    shutil.copytree(original / "pginstall18", folder / original.name / "pginstall18", ignore=ignored)
    libraries = original.parent / f"{original.name}.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, folder / libraries.name)
    return folder / original.name


def succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except psycopg.OperationalError:
        return False
    return True
