"""The server as a process: is it alive and ours, start it, wait until it answers, stop it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dtrag.adapters.postgres.server.programs import Account, Binaries, StartFailure, explain_output

PORT = 5432  # only names the socket file: nothing listens on the network
_POLL_S = 0.01
_START_S = 30.0
_RECOVERY_S = 3_600.0
_STOP_S = 120.0
_MOMENT_S = 1.0
_QUIT_S = 30.0
PROBE_EVERY_S = 1.0
"""Seconds between two questions whether the server answers: one costs it about 2 ms of processor time."""
STUCK_S = 4.0
"""A server that answers nothing and does nothing for this time is stuck, in seconds."""
# Left by a killed postmaster whose children are still going away, or by a start that was quicker than ours.
_TRANSIENT = ("pre-existing shared memory block", "lock file ")
# The shortest question of the protocol: length 8, then the code of "SSLRequest"; a server says no with one byte.
_ENCRYPTION_REQUEST = struct.pack("!ii", 8, 80877103)
_LOG_BYTES = 1_048_576


@dataclass(frozen=True, slots=True)
class PidFile:
    """The content of `postmaster.pid`; the file of a dead postmaster remains."""

    pid: int
    socket_dir: str
    status: str


def read_pid_file(cluster: Path) -> PidFile | None:
    """The file's content; None when there is none or its first line is not written yet."""
    try:
        lines = (cluster / "postmaster.pid").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        pid = int(lines[0])
    except (FileNotFoundError, NotADirectoryError, IndexError, ValueError):
        return None
    # Line 1 is the process, 5 the folder of the socket, 8 the state; the later lines come while it starts.
    return PidFile(
        pid=pid,
        socket_dir=lines[4].strip() if len(lines) > 4 else "",
        status=lines[7].strip() if len(lines) > 7 else "",
    )


def cluster_name(cluster: Path) -> str:
    """The name in the command line of the cluster's processes; the inode is unique to it, and moves with it."""
    return f"dtrag-{cluster.stat().st_ino:x}"


def is_ours(pid: int, cluster: Path) -> bool:
    """Whether `pid` is a living process of this very cluster, and not a stranger who got the number of a dead one."""
    command = _command_line(pid)
    return cluster_name(cluster) in command or ("postgres" in command and str(cluster) in command)


def running_pid(cluster: Path) -> int | None:
    """The living postmaster of the cluster, if any."""
    told = read_pid_file(cluster)
    return told.pid if told is not None and _lives(told, cluster) else None


def _lives(told: PidFile, cluster: Path) -> bool:
    """Also true of a server in another container that shares the folder: its process is not to be seen from here."""
    return is_ours(told.pid, cluster) or _answers(cluster / told.socket_dir)


def _answers(socket_dir: Path) -> bool:
    """Whether a server answers at the socket. A process killed a moment ago still looks alive; it answers no more."""
    return _probe(socket_dir) == "answers"


def _probe(socket_dir: Path) -> Literal["answers", "silent", "refuses"]:
    """What becomes of a connection; `silent`: nothing refuses it, and nothing answers within a second."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(_MOMENT_S)
        try:
            client.connect(os.fsencode(socket_dir / f".s.PGSQL.{PORT}"))
            client.sendall(_ENCRYPTION_REQUEST)
            return "answers" if len(client.recv(1)) == 1 else "refuses"
        except (TimeoutError, BlockingIOError):  # the second: the queue of connections that it does not accept is full
            return "silent"
        except OSError:
            return "refuses"


class StuckWatch:
    """Detects a server that lives but is stuck: stopped by a signal, or asleep for good.

    It is stuck when for `STUCK_S` every connection remained without an answer, and its postmaster slept or was stopped
    all the time, without one context switch. A busy server is not: its postmaster wakes for each connection, however
    late the answer comes. Nor is one whose postmaster waits for a processor or the disk: a restart would wait as well.
    Only processes in `/proc` can be judged: elsewhere, and in another container, no server is called stuck.
    """

    def __init__(self, cluster: Path) -> None:
        self._cluster = cluster
        self._next = 0.0
        self._still: tuple[int, int] | None = None
        self._still_since = 0.0

    def look(self) -> int | None:
        """The process of a stuck postmaster. Call it often; it takes a second while the server does not answer."""
        if time.monotonic() < self._next:
            return None
        told = read_pid_file(self._cluster)
        still = None
        if told is not None and _probe(self._cluster / told.socket_dir) == "silent":
            switches = _switches_of_sleeper(told.pid) if _is_of(told.pid, self._cluster) else None
            still = (told.pid, switches) if switches is not None else None
        now = time.monotonic()
        if still is None or still != self._still:
            self._still, self._still_since = still, now
            self._next = now + PROBE_EVERY_S
            return None
        return still[0] if now - self._still_since >= STUCK_S else None


def _switches_of_sleeper(pid: int) -> int | None:
    """The context switches so far of a process that sleeps or is stopped; None for others."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text("ascii", "replace").splitlines()
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in lines)
    if fields["State"].strip()[0] not in "STt":
        return None
    return int(fields["voluntary_ctxt_switches"]) + int(fields["nonvoluntary_ctxt_switches"])


def _is_of(pid: int, cluster: Path) -> bool:
    """Whether the process was started for this cluster, by the name that only its command line has."""
    return cluster_name(cluster) in _command_line(pid)


def kill(cluster: Path, pid: int) -> None:
    """End the stuck postmaster `pid` and its processes: SIGKILL is the only signal that stopped ones react to.

    Nothing is done when another server runs by now. What was acknowledged is in the write-ahead log.
    """
    told = read_pid_file(cluster)
    if told is None or told.pid != pid or not _is_of(pid, cluster):
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + _QUIT_S
    while (_is_of(pid, cluster) or end_orphans(cluster, signal.SIGKILL)) and time.monotonic() < deadline:
        time.sleep(_POLL_S)


def _command_line(pid: int) -> str:
    """Readable for every user, unlike a process's executable or folder; empty for the dead, zombies included."""
    if pid <= 0:
        return ""
    if Path("/proc/self").exists():
        return _line_in_proc(Path(f"/proc/{pid}"))
    return subprocess.run(
        ["ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout


def _line_in_proc(folder: Path) -> str:
    """Waits while there is no line yet: a process between two programs (in `exec`) has none, and is not dead."""
    deadline = time.monotonic() + _MOMENT_S
    try:
        while True:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "surrogateescape")
            state = (folder / "stat").read_bytes().rpartition(b")")[2].split()[0]
            if line or state in (b"Z", b"X") or time.monotonic() > deadline:  # a thread of the kernel never has one
                return line
            time.sleep(_POLL_S / 10)
    except (FileNotFoundError, ProcessLookupError):
        return ""


def clear_stale(cluster: Path) -> None:
    """Remove the files of a dead postmaster.

    PostgreSQL refuses to start while the number in its lock files belongs to any process of the same user, even an
    unrelated one or an unreaped zombie. PostgreSQL itself detects old backends of the cluster by the shared memory of
    the folder.
    """
    told = read_pid_file(cluster)
    if told is not None and _lives(told, cluster):
        return
    for path in (cluster / "postmaster.pid", *_socket_files(cluster)):
        # Without a readable number the files may belong to a start that a killed process left in its first moments.
        if told is not None or _untouched(path):
            path.unlink(missing_ok=True)
    if told is not None:
        remove_socket_dir(cluster, told.socket_dir)


def _untouched(path: Path) -> bool:
    try:
        return abs(time.time() - path.lstat().st_mtime) > _MOMENT_S
    except FileNotFoundError:
        return False


def remove_socket_dir(cluster: Path, told: str) -> None:
    """Remove the private folder of a socket whose path in the cluster would be too long."""
    folder = Path(told)
    if not folder.is_absolute() or folder == cluster or not folder.name.startswith("dtrag-"):
        return
    with contextlib.suppress(OSError):
        for path in _socket_files(folder):
            path.unlink(missing_ok=True)
        folder.rmdir()


def _socket_files(folder: Path) -> tuple[Path, Path]:
    return folder / f".s.PGSQL.{PORT}", folder / f".s.PGSQL.{PORT}.lock"


def start(binaries: Binaries, account: Account, cluster: Path, socket_dir: str, log: Path) -> None:
    """Starts the server and returns when it answers, or raises `StartFailure`. `socket_dir` may be `.`: the cluster."""
    deadline = time.monotonic() + _START_S
    while not wait_attachable(cluster, log):
        clear_stale(cluster)
        begin = _rotate(log)
        pid = _launch(binaries, account, cluster, socket_dir, log)
        try:
            if _wait_ready(pid, cluster, log):
                return
        except BaseException:
            _end(pid, cluster)
            raise
        lines = _lines_since(log, begin)
        transient = any(phrase in line for line in lines for phrase in _TRANSIENT)
        if not transient or time.monotonic() > deadline:
            _end(pid, cluster)
            raise StartFailure(explain_output(lines, log))
        time.sleep(5 * _POLL_S)


def is_ready(cluster: Path) -> bool:
    """Whether the server answers now."""
    told = read_pid_file(cluster)
    return told is not None and told.status == "ready" and _answers(cluster / told.socket_dir)


def looks_alive(cluster: Path) -> bool:
    """Whether the postmaster of the pid file is there: a cheap look, as a rule without a connection."""
    told = read_pid_file(cluster)
    return told is not None and _lives(told, cluster)


def restart(binaries: Binaries, account: Account, cluster: Path, socket_dir: str, log: Path) -> None:
    """Launch the server and return without waiting until it answers: a recovery may take minutes.

    Returns when the server has written its pid file, or could not yet start because processes of the dead one are
    still ending: they are signalled, and the caller tries again. Raises `StartFailure` for other reasons.
    """
    clear_stale(cluster)
    begin = _rotate(log)
    pid = _launch(binaries, account, cluster, socket_dir, log)
    deadline = time.monotonic() + _MOMENT_S
    while time.monotonic() < deadline:
        told = read_pid_file(cluster)
        if told is not None and told.pid == pid:
            return
        if not is_ours(pid, cluster):
            break
        time.sleep(_POLL_S)
    lines = _lines_since(log, begin)
    if any(phrase in line for line in lines for phrase in _TRANSIENT):
        end_orphans(cluster)
    elif not is_ours(pid, cluster):
        raise StartFailure(explain_output(lines, log))


def end_orphans(cluster: Path, number: int = signal.SIGQUIT) -> int:
    """Signal server processes whose postmaster is dead; returns how many there were. They would leave by themselves.

    Nothing is lost: what they acknowledged is in the write-ahead log, and a recovery follows in any case.
    """
    name, signalled = cluster_name(cluster), 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            command = (folder / "cmdline").read_bytes()
            if command.startswith(b"postgres: ") and name.encode() in command:
                os.kill(int(folder.name), number)
                signalled += 1
    return signalled


def wait_attachable(cluster: Path, log: Path) -> bool:
    """Whether a running server answers: True once it does, False when it is gone (a stop was under way)."""
    pid = running_pid(cluster)
    return pid is not None and _wait_ready(pid, cluster, log)


def _launch(binaries: Binaries, account: Account, cluster: Path, socket_dir: str, log: Path) -> int:
    """The process number of the new server. The shell between it and us ends at once, so that the server is not our
    child: it may outlive this process while others are attached, and leaves no zombie."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    output = os.open(log, flags, 0o600)
    try:
        with account.entry(cluster) as (path, descriptors):
            done = account.run(
                [
                    *("/bin/sh", "-c", '"$@" >&2 & echo $!', "sh"),
                    *(binaries.postgres, "-D", path, "-p", str(PORT)),
                    *("-c", f"cluster_name={cluster_name(cluster)}", "-c", f"unix_socket_directories={socket_dir}"),
                ],
                pass_fds=descriptors,
                stderr=output,
            )
    finally:
        os.close(output)
    return int(done.stdout)


def _wait_ready(pid: int, cluster: Path, log: Path) -> bool:
    """True when the server `pid` answers, False when it has ended; each line of its log prolongs the patience."""
    size, started = -1, time.monotonic()
    patience = started + _START_S
    watch = StuckWatch(cluster)
    while True:
        told = read_pid_file(cluster)
        if told is not None and told.pid == pid and told.status == "ready" and _answers(cluster / told.socket_dir):
            return True
        if not is_ours(pid, cluster) and (told is None or not _lives(told, cluster)):
            return False
        if told is not None and told.status == "ready" and (stuck := watch.look()) is not None:
            kill(cluster, stuck)
            continue
        now, grown = time.monotonic(), log.stat().st_size if log.exists() else 0
        if grown != size:  # a recovery reports its progress every ten seconds
            size, patience = grown, now + _START_S
        if now > min(patience, started + _RECOVERY_S):
            raise StartFailure(f"the server (process {pid}) does not become ready; see {log} for what it is doing.")
        time.sleep(_POLL_S)


def stop(cluster: Path) -> bool:
    """Ends the server in good order: open transactions are rolled back, all pages written. False if it goes on."""
    told = read_pid_file(cluster)
    if told is None or not is_ours(told.pid, cluster):
        return True
    if not _end(told.pid, cluster):
        return False
    remove_socket_dir(cluster, told.socket_dir)
    return True


def _end(pid: int, cluster: Path) -> bool:
    """Signal the server until it ends; whether it did.

    Never SIGKILL, which would leave shared memory and a recovery behind: after two minutes the server has to stop
    without its checkpoint, which costs the next start a recovery and loses nothing. The signals are repeated, because
    a server in its first milliseconds does not handle them yet.
    """
    for number, patience in ((signal.SIGINT, _STOP_S), (signal.SIGQUIT, _QUIT_S)):
        deadline = time.monotonic() + patience
        while is_ours(pid, cluster):
            if time.monotonic() > deadline:
                break
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            time.sleep(_POLL_S)
    return not is_ours(pid, cluster)


def _rotate(log: Path) -> int:
    """Keeps the log and one predecessor, a megabyte each; returns where this start's lines begin."""
    try:
        size = log.stat().st_size
    except FileNotFoundError:
        return 0
    if size < _LOG_BYTES:
        return size
    log.replace(log.with_name(log.name + ".1"))
    return 0


def _lines_since(log: Path, begin: int) -> list[str]:
    with log.open("rb") as file:
        file.seek(begin)
        return file.read(_LOG_BYTES).decode("utf-8", "replace").splitlines()
