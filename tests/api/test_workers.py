"""`dtrag up --workers 2`: what several processes count, hold and end together, over real HTTP."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from dtrag.adapters.embedders.bert import MiniLM
from dtrag.adapters.postgres.connect import pool_size_of_worker
from dtrag.adapters.postgres.server import server
from dtrag.delivery.api.clients import FAILURES_PER_MINUTE
from dtrag.delivery.cli.checks import _service
from dtrag.delivery.local_socket import FOLDER, SOCKET
from dtrag.delivery.workers import pause_s
from dtrag.errors import InvalidInput
from dtrag.settings import Settings
from tests.api.conftest import SERVE, Served
from tests.integration.cli_process import Cli, children

ENGINE = ("numpy", "onnxruntime", "psycopg", "fastapi", "uvicorn", "pydantic", "dtrag.app", "dtrag.assembly")


class Supervised(Served):
    """A service with two workers."""

    program = (
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)  # with `nohup` it is ignored\n"
        + SERVE.replace("dtrag.delivery.api.serve import serve", "dtrag.delivery.workers import supervise as serve")
    )

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        super().__init__(data_dir=str(folder), embedder="none", port="0", workers="2")

    def workers(self) -> set[int]:
        """The processes that serve."""
        return {worker for template in self.templates() for worker in children(template)}

    def templates(self) -> set[int]:
        """The processes that workers are forked from."""
        return {pid for pid, command in children(self.process.pid).items() if "dtrag.delivery.api.worker" in command}

    def until(self, ready: Callable[[], bool]) -> None:
        """Return when it holds."""
        deadline = time.monotonic() + 120  # for a busy machine
        while not ready():
            assert time.monotonic() < deadline, self._later_lines
            time.sleep(0.02)

    def until_complete(self) -> None:
        """Return when both workers accept connections."""
        self.until(lambda: self.as_owner("GET", "/health").json()["workers"] == 2)

    def as_owner(self, method: str, path: str, body: object = None) -> httpx2.Response:
        """The response to a request through the socket in the data folder."""
        transport = httpx2.HTTPTransport(uds=str(self.folder / FOLDER / SOCKET))
        with httpx2.Client(transport=transport, base_url="http://localhost", timeout=30) as client:
            return client.request(method, path, json=body)

    @contextlib.contextmanager
    def one_client_each(self) -> Iterator[list[httpx2.Client]]:
        """Two clients, each with an open connection to another worker."""
        self.until_complete()
        with contextlib.ExitStack() as stack:
            clients: dict[int, httpx2.Client] = {}
            for _ in range(20):
                client = stack.enter_context(httpx2.Client(base_url=self.address, timeout=30))
                before = self.connections()
                client.get("/livez")
                [worker] = [pid for pid, count in self.connections().items() if count > before.get(pid, 0)]
                clients.setdefault(worker, client)
                if len(clients) == 2:
                    break
            assert len(clients) == 2
            yield list(clients.values())

    def connections(self) -> dict[int, int]:
        """Connections of clients by worker."""
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        inodes = {row[9] for row in rows if int(row[1].split(":")[1], 16) == self.port and row[3] == "01"}
        return {pid: len(inodes & set(_sockets(pid))) for pid in self.workers()}


def _sockets(pid: int) -> Iterator[str]:
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if match := re.fullmatch(r"socket:\[(\d+)\]", os.readlink(entry)):  # noqa: PTH115 - not a path
                yield match[1]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A data folder."""
    path = Path(tempfile.mkdtemp(prefix="test-workers-"))
    yield path / "data"
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def pool(folder: Path) -> Iterator[Supervised]:
    running = Supervised(folder)
    yield running
    workers = running.workers()
    assert server.status(folder).pid is not None
    code, lines = running.stop()
    assert (code, "Traceback" in lines) == (0, False)
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)
    assert not (folder / FOLDER / SOCKET).exists()
    assert server.status(folder).pid is None  # it had started the database


@pytest.fixture(scope="module")
def admin(pool: Supervised) -> str:
    """A key for the whole tree, created by the owner of the folder, whose peer a worker knows."""
    created = pool.as_owner("POST", "/keys", {"name": "admin", "role": "admin"})
    assert created.status_code == 201, created.text
    return str(created.json()["secret"])


class Load:
    """Clients that send one request after another; `failures` are those without a 200."""

    def __init__(self, address: str, clients: int = 3) -> None:
        self.failures: list[str] = []
        self.answers = 0
        self._address = address
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(clients)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        with httpx2.Client(base_url=self._address, timeout=30) as client:
            while not self._over.is_set():
                try:
                    response = client.get("/livez")
                    if response.status_code != 200:
                        self.failures.append(response.text)
                except httpx2.HTTPError as error:
                    self.failures.append(repr(error))
                self.answers += 1
                time.sleep(0.002)


def test_the_supervisor_imports_no_engine() -> None:
    program = "import sys, dtrag.delivery.workers; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not set(ENGINE) & set(modules)


def test_workers_share_the_memory_of_their_template(pool: Supervised) -> None:
    pool.until_complete()
    assert len(pool.templates()) == 1
    for worker in pool.workers():
        [shared] = re.findall(r"^Shared_Dirty: +(\d+) kB$", Path(f"/proc/{worker}/smaps_rollup").read_text(), re.M)
        assert int(shared) > 20_000


@pytest.mark.skipif(not MiniLM.available(Settings()), reason="the weights of the embedder are not installed")
def test_a_fork_of_the_template_embeds_as_the_template_does() -> None:
    program = """
import os, sys
from dtrag.delivery.api.worker import _loaded
from dtrag.settings import Settings
embedder, texts = _loaded(Settings()), ["What is a term?", "학기는 언제 시작하나요?"]
vectors = embedder.embed_queries(texts)
if not (pid := os.fork()):
    os._exit(int((embedder.embed_queries(texts) != vectors).any()))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=60)


def test_connections_are_spread_over_both_workers(pool: Supervised) -> None:
    assert pool.lines[-1].endswith(" (docs at /docs), 2 workers\n")
    pool.until_complete()
    before = sum(pool.connections().values())
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            connection = socket.create_connection(("127.0.0.1", pool.port))
            stack.enter_context(contextlib.closing(connection))
        pool.until(lambda: sum(pool.connections().values()) == before + 8)
        least, most = sorted(pool.connections().values())
        assert most - least <= 3  # a busy worker may let one or two pass


def test_limits_count_for_both_workers_together(pool: Supervised, admin: str) -> None:
    head = {"Authorization": f"Bearer {admin}"}
    body = {"name": "five", "role": "reader", "rate_per_minute": 5}
    with pool.one_client_each() as clients:
        five = clients[0].post("/keys", headers=head, json=body).json()["secret"]
        started = time.monotonic()
        statuses = [clients[turn % 2].get("/documents", headers={"X-API-Key": five}).status_code for turn in range(12)]
        refilled = int((time.monotonic() - started) / 12)
        assert 5 <= statuses.count(200) <= 5 + refilled
        assert statuses.count(429) == 12 - statuses.count(200)
        started = time.monotonic()
        statuses = [
            clients[turn % 2].get("/documents", headers={"X-API-Key": "wrong"}).status_code
            for turn in range(FAILURES_PER_MINUTE + 20)
        ]
        refilled = int((time.monotonic() - started) / 2)
        assert FAILURES_PER_MINUTE <= statuses.count(401) <= FAILURES_PER_MINUTE + refilled
        assert statuses.count(429) == len(statuses) - statuses.count(401)


def test_a_revoked_key_stops_at_once_in_both_workers(pool: Supervised, admin: str) -> None:
    head = {"X-API-Key": admin}
    with pool.one_client_each() as clients:
        secret = clients[0].post("/keys", headers=head, json={"name": "brief"}).json()["secret"]
        assert [client.get("/documents", headers={"X-API-Key": secret}).status_code for client in clients] == [200] * 2
        assert clients[0].delete("/keys/brief", headers=head).status_code == 200
        statuses = {client.get("/documents", headers={"X-API-Key": secret}).status_code for client in clients}
        assert statuses <= {401, 429}  # by then this address may have sent too many wrong keys


def answers(client: httpx2.Client, key: str) -> float:
    """How often `/openapi.json` was answered, by the metrics that one worker shows."""
    text = client.get("/metrics", headers={"X-API-Key": key}).text
    [count] = re.findall(r'^dtrag_http_requests_total\{.*route="/openapi.json",status="200"\} (\S+)$', text, re.M)
    return float(count)


def test_metrics_are_the_sum_and_a_session_is_valid_everywhere(pool: Supervised, admin: str) -> None:
    with pool.one_client_each() as clients:
        for turn in range(6):
            assert clients[turn % 2].get("/openapi.json", headers={"X-API-Key": admin}).status_code == 200
        first = answers(clients[0], admin)
        assert answers(clients[1], admin) == first
        for turn in range(5):
            clients[turn % 2].get("/openapi.json", headers={"X-API-Key": admin})
        assert [answers(client, admin) for client in clients] == [first + 5] * 2

        assert clients[0].post("/session", json={"key": admin}).status_code == 200
        clients[1].cookies.update(clients[0].cookies)
        assert clients[1].get("/session").json()["name"] == "admin"


def test_a_killed_worker_fails_its_own_requests_only_and_is_replaced(pool: Supervised, admin: str) -> None:
    pool.until_complete()
    with pool.one_client_each() as clients:
        clients[0].get("/openapi.json", headers={"X-API-Key": admin})
        before, workers = answers(clients[0], admin), pool.workers()
    with Load(pool.address) as load:
        pool.until(lambda: load.answers > 20)
        os.kill(min(workers), signal.SIGKILL)
        pool.until(lambda: len(pool.workers() - workers) == 1)
        pool.until_complete()
        answered = load.answers
        pool.until(lambda: load.answers > answered + 20)
    assert len(load.failures) <= 3  # one for each client at most
    with pool.one_client_each() as clients:
        assert answers(clients[0], admin) == before  # what the killed worker had counted is still there


def test_a_rolling_restart_fails_no_request(pool: Supervised) -> None:
    pool.until_complete()
    before = pool.workers()
    with Load(pool.address) as load:
        pool.until(lambda: load.answers > 20)
        pool.process.send_signal(signal.SIGHUP)
        pool.until(lambda: not before & pool.workers())
        pool.until_complete()
        answered = load.answers
        pool.until(lambda: load.answers > answered + 20)
    assert load.failures == []
    assert any("replaced" in line for line in pool._later_lines)


def test_the_death_of_the_supervisor_ends_its_workers(pool: Supervised) -> None:
    running = Supervised(pool.folder)  # beside the other one, which has the socket of the owner
    workers, templates = running.workers(), running.templates()
    assert workers
    running.process.kill()
    running.ended()
    running.until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers | templates))


class OfAnInterpreter(Supervised):
    """Its workers are started with the program `interpreter`, which a test may take away."""

    def __init__(self, folder: Path, interpreter: Path) -> None:
        self.program = f"import sys; sys.executable = {str(interpreter)!r}\n{Supervised.program}"
        super().__init__(folder)


def test_a_process_that_cannot_be_started_is_tried_again(pool: Supervised, tmp_path: Path) -> None:
    interpreter = tmp_path / "python"
    interpreter.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    interpreter.chmod(0o700)
    running = OfAnInterpreter(pool.folder, interpreter)
    try:
        running.until(lambda: len(running.workers()) == 2 and running.client.get("/readyz").status_code == 200)
        before = running.workers()
        taken = interpreter.rename(tmp_path / "taken")
        running.process.send_signal(signal.SIGHUP)
        running.until(lambda: any("are not replaced" in line for line in running._later_lines))
        os.kill(min(before), signal.SIGKILL)
        running.until(lambda: len(running.workers() - before) == 1)  # by the template that is still there
        running.until_complete()
        [template] = running.templates()
        os.kill(template, signal.SIGKILL)
        os.kill(max(before), signal.SIGKILL)
        running.until(lambda: any("did not start, which is tried again" in line for line in running._later_lines))
        assert httpx2.get(f"{running.address}/livez").status_code == 200  # by the worker whose template has ended
        taken.rename(interpreter)
        running.until(lambda: len(running.workers()) == 1)
        running.until_complete()
    finally:
        code, lines = running.stop()
    assert (code, "Traceback" in lines) == (0, False)


class Embedding(Supervised):
    """Makes vectors in the background."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        Served.__init__(self, data_dir=str(folder), embedder="minilm", port="0", workers="2")


def test_workers_end_while_a_thread_is_inside_a_model() -> None:
    """Python ended that thread in the middle of C++ code, which aborted the process or kept it from ending.

    Vectors begin at once after the upload, and the service accepts requests for another second.
    """
    base = Path(tempfile.mkdtemp(prefix="test-workers-"))
    running = Embedding(base / "data")
    try:
        text = "\n\n".join(f"{number} kettles have a valve, and winter has a lantern. " * 20 for number in range(60))
        added = running.client.post("/documents", files={"files": ("many.txt", text.encode(), "text/plain")})
        assert added.status_code == 201
    finally:
        code, lines = running.stop()
        shutil.rmtree(base)
    assert (code, [line for line in lines.splitlines() if "terminate" in line or "does not end" in line]) == (0, [])


def test_pauses_between_failed_workers_grow_up_to_a_limit() -> None:
    assert [pause_s(failures) for failures in (0, 1, 2, 3, 20, 10_000)] == [0, 0.5, 1, 2, 30, 30]


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (["--workers", "0"], {}, "Invalid value for '--workers'"),
        (["--workers", "x"], {}, "Invalid value for '--workers'"),
        ([], {"DTRAG_WORKERS": "0"}, "DTRAG_WORKERS is 0, but a service needs at least 1."),
        ([], {"DTRAG_WORKERS": "two"}, "DTRAG_WORKERS is 'two', but must be a whole number of at least 0."),
    ],
)
def test_a_wrong_number_of_workers(
    tmp_path: Path, arguments: list[str], environment: dict[str, str], message: str
) -> None:
    ran = Cli(tmp_path).call("up", *arguments, **environment)
    assert ran.code == 2
    assert message in " ".join(ran.err.replace("│", " ").split())


def test_doctor_says_how_many_workers_serve(pool: Supervised) -> None:
    pool.until_complete()
    settings = Settings.load(environ={}, data_dir=pool.folder, embedder="none")
    assert [check.detail for check in _service(settings)] == ["running, 2 workers"]


async def test_pools_of_workers_fit_into_the_connections(tmp_path: Path) -> None:
    async def size(workers: int) -> int:
        return await pool_size_of_worker(Settings.load(environ={}, data_dir=tmp_path, workers=workers))

    assert [await size(workers) for workers in (2, 4, 6, 12)] == [4, 4, 2, 1]
    with pytest.raises(InvalidInput, match="97 connections, which are too few for 13 workers"):
        await size(13)


def test_too_many_workers_for_the_database(pool: Supervised) -> None:
    arguments = [f"data_dir={pool.folder}", "embedder=none", "port=0", "workers=40"]
    command = [sys.executable, "-c", Supervised.program, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 2
    assert "97 connections, which are too few for 40 workers. Start at most 12 with --workers." in ran.stderr
