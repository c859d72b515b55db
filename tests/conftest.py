"""One embedded server for the whole run, and for each test that asks a database of its own, cloned from a template."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import hypothesis
import pytest
import pytest_asyncio

from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.server import server
from dtrag.adapters.postgres.server.server import EmbeddedServer
from dtrag.app import App, open_app
from dtrag.assembly import open_stores
from dtrag.core.text.analysis import Analyzer
from dtrag.ports import Stores
from dtrag.settings import Settings
from dtrag.testing.throwaway import make_template, without_sync
from tests import citus
from tests.clock import clock
from tests.rounds import reduce_examples
from tests.store import Databases, Store, empty

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when the library is imported

__all__ = ["clock"]  # a fixture

BOOK = Path(__file__).parents[1] / "examples" / "hanbit-university" / "regulations.md"

# The time of an example says more about the machine than about the code.
hypothesis.settings.register_profile("tests", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("tests")


def pytest_configure() -> None:
    """Programs that tests start can be interrupted, also when the run itself was started with SIGINT ignored.

    A shell starts what runs in the background so, and child processes inherit an ignored signal. And the pipeline has
    time limits that a busy machine keeps.
    """
    os.environ["PIPELINE_TIMEOUT_MULTIPLIER"] = "20"
    os.environ["DTRAG_CONFIG"] = "none"  # the files of the developer
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reduce_examples(items)


@pytest.fixture
def shipped_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipeline's time limits as they are shipped, for tests of what happens when they run out."""
    monkeypatch.setenv("PIPELINE_TIMEOUT_MULTIPLIER", "1")


@pytest.fixture(scope="session")
def embedded() -> Iterator[EmbeddedServer]:
    """The server of the run. This attachment keeps it up while apps come and go."""
    folder = Path(tempfile.mkdtemp(prefix="test-dtrag-"))
    with EmbeddedServer.open(folder / "data") as attached:
        without_sync(attached.address.data_dir)
        yield attached
    shutil.rmtree(folder)


@pytest_asyncio.fixture(scope="session")
async def template(embedded: EmbeddedServer) -> str:
    """A migrated, empty database that nobody is connected to."""
    return await make_template(embedded.address.data_dir)


@pytest_asyncio.fixture(scope="session")
async def regulation_book(embedded: EmbeddedServer, template: str) -> str:
    """A database with the book of regulations of the examples in the category `Book`, for `settings(of=...)`."""
    return await Databases(embedded.address, template).filled(lambda app: app.ingest(BOOK, "Book"))


@pytest.fixture
def databases(embedded: EmbeddedServer, template: str) -> Iterator[Databases]:
    """Makes databases; they are dropped when the test is over."""
    made = Databases(embedded.address, template)
    yield made
    made.drop()


@pytest.fixture(scope="module")
def databases_of_module(embedded: EmbeddedServer, template: str) -> Iterator[Databases]:
    """Makes databases that the tests of a module share."""
    made = Databases(embedded.address, template)
    yield made
    made.drop()


@pytest.fixture
def settings(databases: Databases) -> Settings:
    """Settings of an empty database of the test's own."""
    return databases.settings()


@pytest.fixture
def store(settings: Settings, databases: Databases) -> Store:
    """A look into the test's own database from beside the app."""
    return databases.store(settings)


@pytest_asyncio.fixture
async def app(settings: Settings) -> AsyncIterator[App]:
    """An app on the test's own database."""
    async with open_app(settings) as opened:
        yield opened


@pytest_asyncio.fixture(scope="session")
async def shared_database(embedded: EmbeddedServer, template: str) -> AsyncIterator[Database]:
    """The database of all tests that use `emptied`, connected once; in a cluster where there is one to test with."""
    if citus.URL:
        with citus.database() as url, tempfile.TemporaryDirectory() as folder:
            async with connect(await citus.converted(url, Path(folder))) as database:
                yield database
        return
    databases = Databases(embedded.address, template)
    async with connect(databases.settings()) as database:
        yield database
    databases.drop()


@pytest_asyncio.fixture
async def emptied(shared_database: Database) -> Database:
    """A database without rows but for the audit log: cheaper than one of the test's own."""
    await empty(shared_database)
    return shared_database


@pytest.fixture
def stores(emptied: Database) -> Stores:
    """The stores of an empty database."""
    return open_stores(Settings(), emptied, Analyzer())


@pytest.fixture(scope="session")
def mortal() -> Iterator[Path]:
    """A data folder with a cluster, and nobody attached to its server between the tests."""
    folder = Path(tempfile.mkdtemp(prefix="test-dtrag-mortal-")) / "data"
    EmbeddedServer.open(folder).close()
    yield folder
    assert server.status(folder).pid is None
    shutil.rmtree(folder.parent)
