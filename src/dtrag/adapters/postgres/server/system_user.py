"""Under which user of the machine the server runs.

PostgreSQL refuses to run as root, and rightly so: as root a system user `dtrag`, without home and shell, is created
once and owns the cluster. Other users run the server as themselves.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dtrag.adapters.postgres.server.failures import StartFailure

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
