"""A real service for the tests: in this process on a real embedded database, and as a process of its own."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import httpx2
import pytest
import pytest_asyncio
from fastapi import FastAPI

from dtrag.adapters.postgres.server.server import EmbeddedServer
from dtrag.delivery.api.app import create_app
from dtrag.delivery.api.dependencies import Service
from dtrag.settings import Settings
from dtrag.testing.throwaway import without_sync
from tests.api.confined import House, fill, house
from tests.store import Databases

SERVE = """
import sys
from dtrag.delivery.api.serve import serve
from dtrag.errors import DtragError
from dtrag.settings import Settings
overrides = dict(pair.split("=", 1) for pair in sys.argv[1:])
try:
    sys.exit(serve(Settings.load(environ={}, **overrides)))
except DtragError as error:
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    sys.exit(error.exit_code)
"""


START_S = 120.0


class Served:
    """A service in a process of its own, ready when made. `lines` is what it has written to stderr until then.

    One that does not start in time is ended with its stacks in `lines`, and has no address. A thread reads what it
    writes later: a full pipe would stop the service.
    """

    program = SERVE

    def __init__(self, **settings: str) -> None:
        pairs = (f"{name}={value}" for name, value in settings.items())
        command = [sys.executable, "-Xfaulthandler", "-c", self.program, *pairs]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self.address = ""
        assert self.process.stderr is not None
        late = threading.Timer(START_S, self.process.send_signal, [signal.SIGABRT])
        late.start()
        for line in self.process.stderr:
            self.lines.append(line)
            if line.startswith("dtrag is listening on "):
                self.address = line.split()[4]
                break
        late.cancel()
        self.client = httpx2.Client(base_url=self.address or "http://127.0.0.1", timeout=30)
        self._later_lines: list[str] = []
        self._reader = threading.Thread(target=self._later_lines.extend, args=(self.process.stderr,), daemon=True)
        self._reader.start()

    def until_ready(self) -> None:
        """Return when `/readyz` is 200: on a busy machine models and index take their time."""
        deadline = time.monotonic() + 60
        while (ready := self.client.get("/readyz")).status_code != 200:
            assert time.monotonic() < deadline, ready.text
            time.sleep(0.02)

    @property
    def port(self) -> int:
        return int(self.address.rsplit(":", 1)[1])

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Exit code, and everything it wrote after it was ready."""
        self.client.close()
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.ended()

    def ended(self, timeout: float = 40) -> tuple[int, str]:
        """The same of a process that ends by itself. Raises `subprocess.TimeoutExpired`."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self._reader.join()
            if self.process.stderr is not None:
                self.process.stderr.close()
        return code, "".join(self._later_lines)


@pytest.fixture(scope="session")
def data_dir() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="test-api-"))
    yield folder / "data"
    shutil.rmtree(folder)


@pytest_asyncio.fixture(scope="session")
async def api(data_dir: Path) -> AsyncIterator[FastAPI]:
    created = create_app(Settings.load(environ={}, data_dir=data_dir, embedder="none", max_upload_mb=2))
    async with created.router.lifespan_context(created):
        without_sync(data_dir)
        yield created


@pytest.fixture(scope="session")
def service_of_all(api: FastAPI) -> Service:
    """The state of the service, for fixtures that outlive a test."""
    found = api.state.service
    assert isinstance(found, Service)
    return found


@pytest.fixture
def service(service_of_all: Service) -> Service:
    return service_of_all


@pytest_asyncio.fixture(scope="session")
async def client(api: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=api)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:8001", timeout=60) as opened:
        yield opened


@pytest.fixture(scope="session")
def served(data_dir: Path, api: FastAPI) -> Iterator[Served]:
    """A second service on the same data folder; it attaches."""
    running = Served(data_dir=str(data_dir), embedder="none", port="0", log_level="INFO")
    yield running
    assert running.stop()[0] == 0


@pytest.fixture
def start(data_dir: Path, api: FastAPI) -> Iterator[Callable[..., Served]]:
    """Starts services, on the folder of all tests unless told otherwise; what still runs at the end is stopped."""
    started: list[Served] = []

    def begin(**settings: str) -> Served:
        defaults = {"data_dir": str(data_dir), "embedder": "none", "port": "0"}
        started.append(Served(**(defaults | settings)))
        return started[-1]

    yield begin
    for running in started:
        running.stop(signal.SIGINT)


@pytest_asyncio.fixture(scope="session")
async def house_template(embedded: EmbeddedServer, template: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with the documents of a house."""
    folder = tmp_path_factory.mktemp("house")
    return await Databases(embedded.address, template).filled(lambda app: fill(app, folder))


@pytest.fixture(scope="module")
def houses_of_module(embedded: EmbeddedServer, house_template: str) -> Iterator[Databases]:
    """As `houses`, for a house that the tests of a module share."""
    made = Databases(embedded.address, house_template)
    yield made
    made.drop()


@pytest.fixture
def houses(embedded: EmbeddedServer, house_template: str) -> Iterator[Databases]:
    """Makes databases with the documents of a house; they are dropped when the test is over."""
    made = Databases(embedded.address, house_template)
    yield made
    made.drop()


@pytest_asyncio.fixture
async def built(houses: Databases) -> AsyncIterator[House]:
    """A house of the test's own."""
    async with house(houses.settings()) as running:
        yield running
