"""PostgreSQL servers on TCP ports of this machine, made from the wheel's programs: primaries, standbys; and proxies."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from dtrag.adapters.postgres.server.programs import server_account, usable_binaries, wheel_folder

LOGIN = "service"
"""A login without rights of its own, as an administrator prepares it (docs/how-to/external-database.md)."""
_PREPARED = (
    "create role dtrag_owner nologin",
    "create role dtrag_search nologin",
    "create role dtrag_reader nologin",
    f"create role {LOGIN} login",
    f"grant dtrag_owner, dtrag_search, dtrag_reader to {LOGIN}",
    "create extension vector",
    "create schema dtrag authorization dtrag_owner",
)
_SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
shared_buffers = 32MB
fsync = off
wal_level = replica
wal_keep_size = 64MB
hot_standby = on
log_min_messages = fatal
"""


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Cluster:
    """A server on `port`: a primary with an empty database, or a standby of another one."""

    def __init__(self, primary: Cluster | None = None) -> None:
        self._account = server_account()
        self.folder = Path(tempfile.mkdtemp(prefix="test-cluster-", dir="/tmp"))
        self._account.give(self.folder)
        self._programs = usable_binaries(self._account, self.folder)
        self.data = self.folder / "data"
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        if primary is None:
            self._initialise()
        else:
            self._copy(primary)
        self.start()
        if primary is None:
            for statement in _PREPARED:
                self.execute(statement)

    def _initialise(self) -> None:
        initdb: list[str | Path] = [
            self._programs.initdb,
            "-D",
            self.data,
            "-U",
            "postgres",
            "-A",
            "trust",
            "--wal-segsize",
            "4",
        ]
        done = self._account.run([*initdb, "--locale", "C", "--encoding", "UTF8", "--no-sync"])
        assert done.returncode == 0, done.stderr
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(_SETTINGS)

    def _copy(self, primary: Cluster) -> None:
        program = wheel_folder() / "pginstall18" / "bin" / "pg_basebackup"
        command = [str(program), "-h", "127.0.0.1", "-p", str(primary.port), "-U", "postgres", "-D", str(self.data)]
        subprocess.run(
            [*command, "-R", "-X", "stream", "--checkpoint=fast", "--no-sync"], check=True, capture_output=True
        )
        for path in (self.data, *self.data.rglob("*")):
            self._account.give(path)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        account = self._account
        command = [str(self._programs.postgres), "-D", str(self.data), "-p", str(self.port)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                user=account.uid if account.switched else None,
                group=account.gid if account.switched else None,
                extra_groups=[] if account.switched else None,
                start_new_session=True,
                cwd="/",
            )
        deadline = time.monotonic() + 60
        while True:
            with suppress(psycopg.OperationalError):
                self.execute("select 1")
                return
            assert self._process.poll() is None and time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.05)

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of a statement, as the superuser."""
        address = f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres connect_timeout=5"
        with psycopg.connect(address, autocommit=True, options="-c search_path=dtrag,public") as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def url(self, *others: Cluster, port: int | None = None, user: str = LOGIN) -> str:
        """The address of this server and of others; `port` is that of a proxy before it."""
        hosts = ",".join(f"127.0.0.1:{number}" for number in (port or self.port, *(other.port for other in others)))
        return f"postgresql://{user}@{hosts}/postgres"

    def processes(self) -> list[int]:
        """The server's processes, the postmaster first."""
        assert self._process is not None
        pids = [self._process.pid]
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == pids[0]:
                    pids.append(int(folder.name))
        return pids

    def signal(self, number: int) -> None:
        """Send a signal to all of its processes."""
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """End it as a power cut would."""
        self.signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait()

    def promote(self) -> None:
        """Make the standby a primary."""
        assert self.execute("select pg_promote()") == [(True,)]

    def replay(self, primary: Cluster) -> None:
        """Return when it has everything that the primary has written."""
        [[position]] = primary.execute("select pg_current_wal_lsn()")
        deadline = time.monotonic() + 30
        while self.execute("select pg_last_wal_replay_lsn() >= %s::pg_lsn", str(position)) != [(True,)]:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def remove(self) -> None:
        """Stop it, and remove its folder."""
        if self._process is not None and self._process.poll() is None:
            self.signal(signal.SIGCONT)
            os.kill(self._process.pid, signal.SIGINT)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.folder)


@contextmanager
def clusters(*, standby: bool = False) -> Iterator[list[Cluster]]:
    """A primary, and a standby of it."""
    made = [Cluster()]
    try:
        if standby:
            made.append(Cluster(made[0]))
        yield made
    finally:
        for cluster in reversed(made):
            cluster.remove()


class Proxy:
    """Forwards connections to ports of this machine, in turn to those of `open_ports`; `swallow()` cuts the network.

    While it swallows, connections stay open and new ones are accepted, but no byte passes.
    """

    def __init__(self, *ports: int) -> None:
        self.open_ports: Sequence[int] = ports
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = int(self._listener.getsockname()[1])
        self._passing = threading.Event()
        self._passing.set()
        self._turn = 0
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def swallow(self) -> None:
        """From now on nothing passes."""
        self._passing.clear()

    def heal(self) -> None:
        """Everything passes again, also what was sent before."""
        self._passing.set()

    def close(self) -> None:
        """Accept no more connections."""
        self._closed = True
        self._listener.close()
        self.heal()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        self._passing.wait()
        ports = list(self.open_ports)
        self._turn += 1
        address = "127.0.0.1", ports[self._turn % len(ports)]
        with client, suppress(OSError), socket.create_connection(address) as server:
            self._pump(client, server)

    def _pump(self, client: socket.socket, server: socket.socket) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ, server)
            selector.register(server, selectors.EVENT_READ, client)
            while not self._closed:
                for key, _ in selector.select(0.5):
                    self._passing.wait()
                    assert isinstance(key.fileobj, socket.socket)
                    if not (data := key.fileobj.recv(65_536)):
                        return
                    key.data.sendall(data)
