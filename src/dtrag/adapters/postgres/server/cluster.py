"""The cluster on disk: made in one step, with our settings and our answer to who may log in.

Every connection comes over the unix socket and is checked by the kernel (`peer`): only processes of the user who owns
the data folder become one of the three roles. The bootstrap superuser cannot log in at all; what needs it (the roles,
the extension) is done in single-user mode, before the cluster appears under its name.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from dtrag.adapters.postgres.disk import MIB, total_bytes
from dtrag.adapters.postgres.server.programs import MAJOR, Account, Binaries, StartFailure, explain_output
from dtrag.adapters.sql_files import statements

MAX_CONNECTIONS = 100
"""A process has up to 16. Each that may be made takes the server 20 kB, which it touches when it is made."""
RESERVED_CONNECTIONS = 3
"""The default of PostgreSQL: for superusers alone."""
ROLES = ("dtrag_owner", "dtrag_search", "dtrag_reader")
SUPERUSER = "dtrag_bootstrap"
_SCRATCH = "postgres.new-"
_PATIENCE_S = 10.0
_INCLUDE = "include 'dtrag.conf'  # the settings of dtrag, rewritten at each start\n"

# SysV segments are not bounded by the 64 MB that containers give /dev/shm; macOS allows only tiny ones.
_SHARED_MEMORY = "sysv" if sys.platform.startswith("linux") else "posix"
# After a crash PostgreSQL syncs its whole folder before it recovers: file by file that took 2.4 of 3 seconds.
_RECOVERY_SYNC = "syncfs" if sys.platform.startswith("linux") else "fsync"
_MAX_WAL_MB, _MIN_WAL_MB = 256, 16
_SETTINGS = f"""\
# Written by dtrag at each start; changes made here are lost.
listen_addresses = ''
unix_socket_permissions = 0700
max_connections = {MAX_CONNECTIONS}

# Memory. Pages of shared_buffers are resident only once used.
shared_buffers = {{shared_buffers}}MB
work_mem = 16MB
maintenance_work_mem = {{maintenance_work_mem}}MB
effective_cache_size = {{effective_cache_size}}MB
huge_pages = off
dynamic_shared_memory_type = {_SHARED_MEMORY}
io_method = sync                     # worker processes would cost memory and gain nothing on small machines
temp_file_limit = 4GB                # the sort of a large index build fits, a runaway query does not fill the disk

# Acknowledged is on disk. The log takes little space, yet a bulk load writes 256 MB between checkpoints.
synchronous_commit = on
wal_level = minimal                  # no replication; bulk loads into new tables need no log
max_wal_senders = 0
max_replication_slots = 0
max_logical_replication_workers = 0
max_active_replication_origins = 0   # each checkpoint rewrites their file, which is a panic on a full disk
min_wal_size = 16MB
max_wal_size = {{max_wal_mb}}MB
wal_compression = on
recovery_init_sync_method = {_RECOVERY_SYNC}
checkpoint_timeout = 5min
autovacuum_worker_slots = 4
autovacuum_max_workers = 2

# Plans. A generic plan of a filtered query was measured 30 times slower; parallel workers do not help indexed queries.
plan_cache_mode = force_custom_plan
max_parallel_workers_per_gather = 0
jit = off
random_page_cost = 1.1

# The last resort behind the limits of each pool.
statement_timeout = 1h               # an index build over a million chunks takes minutes
idle_in_transaction_session_timeout = 5min
client_connection_check_interval = 10s

timezone = 'UTC'
log_timezone = 'UTC'

# The log tells about the server, never about documents.
log_destination = 'stderr'
logging_collector = off
log_min_messages = warning
log_min_error_statement = panic
log_error_verbosity = terse
log_parameter_max_length_on_error = 0
"""


def initialise(binaries: Binaries, account: Account, data_dir: Path, cluster: Path) -> None:
    """Makes `cluster` below `data_dir`; a kill on the way leaves only a scratch folder, removed by the next attempt."""
    for leftover in data_dir.glob(f"{_SCRATCH}*"):
        _remove(leftover)
    scratch = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=data_dir))
    try:
        account.give(scratch)
        with account.entry(scratch) as (path, descriptors):
            _initdb(binaries, account, path, descriptors)
            with (scratch / "postgresql.conf").open("a", encoding="utf-8") as file:
                file.write(_INCLUDE)
                file.flush()
                os.fsync(file.fileno())
            write_settings(account, scratch)
            _bootstrap(binaries, account, path, descriptors)
        _sync_folder(scratch)
        scratch.rename(cluster)
        _sync_folder(data_dir)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


COMPLETE = "complete"
"""The file in the folder of an upgrade once all of its cluster is there."""


def finish_upgrade(made: Path, cluster: Path) -> None:
    """Move the cluster of an upgrade, in the data folder `made`, to where the earlier one was; only a complete one."""
    if not cluster.exists() and (made / COMPLETE).exists():
        _sync_folder(cluster.parent)
        (made / "postgres").rename(cluster)
        _sync_folder(cluster.parent)
        shutil.rmtree(made, ignore_errors=True)


def _remove(scratch: Path) -> None:
    """Also from under an `initdb` that outlived its killed parent: it writes on until its folder is gone."""
    deadline = time.monotonic() + _PATIENCE_S
    while scratch.exists() and time.monotonic() < deadline:
        shutil.rmtree(scratch, ignore_errors=True)
        time.sleep(0.01)


def check(account: Account, cluster: Path) -> None:
    """Raises `StartFailure` when the cluster is not one this server can run."""
    owner = cluster.stat().st_uid
    if owner != account.uid:
        raise StartFailure(
            f"{cluster} belongs to user id {owner}, but the server would run as user id {account.uid}; "
            "run dtrag as the user who made it, or choose another folder with DTRAG_DATA_DIR."
        )
    version = read_version(cluster)
    if version is None:
        raise StartFailure(f"{cluster} is not a PostgreSQL cluster; move it away or choose another DTRAG_DATA_DIR.")
    if version != str(MAJOR):
        raise StartFailure(
            f"{cluster} was made by PostgreSQL {version}, but this dtrag brings PostgreSQL {MAJOR}; run once: dtrag "
            "upgrade, or use the dtrag that made it."
            if int(version) < MAJOR
            else f"{cluster} was made by PostgreSQL {version}, later than {MAJOR} of this dtrag; update dtrag, or "
            "choose another folder with DTRAG_DATA_DIR."
        )


def read_version(cluster: Path) -> str | None:
    """The major version that made the cluster, or None if there is no cluster."""
    try:
        return (cluster / "PG_VERSION").read_text(encoding="ascii").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None


def write_settings(account: Account, cluster: Path) -> None:
    """Writes the settings and the login rules that differ from what is there, each in one step."""
    hba = "# TYPE DATABASE USER METHOD\n" + f"local all {','.join(ROLES)} peer map=dtrag\n"
    client = account.client.replace('"', '""')
    ident = "# MAP SYSTEM-USER ROLE\n" + "".join(f'dtrag "{client}" {role}\n' for role in ROLES)
    # The log of a bulk load must not fill a small disk: there checkpoints come more often.
    max_wal_mb = min(_MAX_WAL_MB, max(_MIN_WAL_MB, total_bytes(cluster) // MIB // 10))
    settings = _SETTINGS.format(max_wal_mb=max_wal_mb, **memory_settings(machine_memory()))
    for name, text in (("dtrag.conf", settings), ("pg_hba.conf", hba), ("pg_ident.conf", ident)):
        file = cluster / name
        if file.is_symlink() or not file.is_file() or file.read_text(encoding="utf-8", errors="replace") != text:
            _replace(account, file, text)


def memory_settings(memory: int) -> dict[str, int]:
    """Megabytes for settings of the server on a machine with that many bytes: the least of each up to 8 GB.

    Modest: the cache of the system has the other pages, and 170 bytes are resident for each page that is not used.
    """
    megabytes = memory // MIB
    return {
        "shared_buffers": min(1_024, max(128, megabytes // 128)),
        "maintenance_work_mem": min(512, max(128, megabytes // 64)),
        "effective_cache_size": max(512, megabytes // 16),
    }


def machine_memory(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that this process and its server may use: of the machine, or less in a container; 0 if unknown."""
    limits = []
    with contextlib.suppress(ValueError, OSError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # of version 2 and 1 of control groups
        with contextlib.suppress(ValueError, OSError):  # the text "max": no limit
            limits.append(int((groups / name).read_text("ascii")))
    return min(limits, default=0)


def _replace(account: Account, file: Path, text: str) -> None:
    # A new file is renamed over the old one: never half a file, and never written through a link.
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as new:
            account.give(new.fileno())
            new.write(text)
            new.flush()
            os.fsync(new.fileno())
        Path(name).rename(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _initdb(binaries: Binaries, account: Account, path: str, descriptors: tuple[int, ...]) -> None:
    # Synced to disk (not --no-sync): the catalog files that no later checkpoint touches would otherwise be lost by a
    # power cut while documents acknowledged meanwhile are in the log. 4 MB segments keep a fresh cluster small.
    command: list[str | Path] = [
        *(binaries.initdb, "-D", path, "--username", SUPERUSER, "--encoding", "UTF8", "--locale", "C"),
        *("--locale-provider", "builtin", "--builtin-locale", "C.UTF-8", "--wal-segsize", "4", "--data-checksums"),
        *("--auth-local", "peer", "--auth-host", "reject", "--no-instructions"),
    ]
    done = account.run(command, pass_fds=descriptors)
    if done.returncode != 0:
        raise StartFailure(explain_output(done.stderr.splitlines()))


def _bootstrap(binaries: Binaries, account: Account, path: str, descriptors: tuple[int, ...]) -> None:
    # One statement a line: single-user mode knows no other end of a statement.
    bootstrap = statements("dtrag.adapters.postgres", "sql/bootstrap.sql").values()
    command: list[str | Path] = [binaries.postgres, "--single", "-D", path, "-c", "exit_on_error=on", "template1"]
    done = account.run(command, pass_fds=descriptors, input="".join(f"{line};\n" for line in bootstrap))
    if done.returncode != 0:
        raise StartFailure(explain_output(done.stderr.splitlines()))
