"""Apps and databases for tests: empty, on an embedded server of this process's own, and dropped at the end."""

from __future__ import annotations

import asyncio
import atexit
import gc
import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from dtrag.adapters.parsers.formats import check_content, format_of, knows
from dtrag.adapters.parsers.worker import reason_for
from dtrag.adapters.postgres.connect import connect
from dtrag.adapters.postgres.queries import queries
from dtrag.adapters.postgres.server.server import EmbeddedServer, ServerAddress
from dtrag.app import App
from dtrag.core.access.scope import Viewer
from dtrag.core.documents import ParsedDocument
from dtrag.core.statements import stated
from dtrag.errors import InvalidInput, ParseFailed
from dtrag.ingestion.sources import Source
from dtrag.ports import Models, Parser
from dtrag.settings import Settings
from dtrag.testing.models import HashEmbedder

TEMPLATE = "dtrag_template"
_DROP_ATTEMPTS = 12
_numbers = itertools.count()


@asynccontextmanager
async def open_throwaway(
    models: Models = Models(embedder=HashEmbedder()), *, database: Settings | None = None, **settings: Any
) -> AsyncIterator[App]:
    """An `App` on an empty database of its own, without model weights, parser processes or a network.

    Nothing is read from the environment; `settings` are settings by name. With a `database` of `throwaway_database`
    apps share documents, and what one has written another finds later.
    """
    with throwaway_database(**settings) if database is None else nullcontext(database) as configured:
        async with connect(configured) as connected, App(configured, connected, models, parser) as app:
            yield app


@contextmanager
def throwaway_database(**settings: Any) -> Iterator[Settings]:
    """Settings of an empty database, which is dropped at the end: for `dtrag.open()` or `open_throwaway(database=…)`.

    The first one of a process starts a PostgreSQL server in a temporary folder, which takes about two seconds; the
    later ones are copies of its template. The server does not wait for the disk and ends with the process.
    """
    databases = Databases(_server(), TEMPLATE)
    try:
        yield databases.settings(**settings)
    finally:
        databases.drop()


async def add_texts(
    app: App, texts: Mapping[str, str], category: Sequence[str] | str | None = None, *, scope: Viewer | None = None
) -> list[str]:
    """Ingest texts by file name (`{"leave.md": "# Leave ..."}`), whose suffix decides the format.

    Returns the ids of their documents. A text of the same name replaces the one before it. Works with any `App`.
    Raises `InvalidInput` when one cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="dtrag-texts-") as folder:
        sources = []
        for number, (name, text) in enumerate(texts.items()):
            path = Path(folder) / f"{number}{Path(name).suffix}"
            path.write_text(text, "utf-8")
            sources.append(Source(path, name, f"text:{name}", source_path=name))
        report = await app.ingest_sources(sources, category, scope=scope)
        await app.vectors.fill()
    if report.failed:
        failed, reason = report.failed[0]
        name = next(source.name for source in sources if str(source.path) == failed)
        raise InvalidInput(f"{name!r} cannot be read: {reason}. Give it another text, or a suffix of its format.")
    return [str(document_id) for read in report.sources for document_id in read.document_ids]


def parser(settings: Settings, max_file_mb: int) -> Parser:
    """A parser without a process of its own."""
    return InProcessParser()


class InProcessParser:
    """Implements `dtrag.ports.Parser` without a process of its own: quick, for files that are trusted."""

    def knows(self, name: str) -> bool:
        """Whether the format of a file with this name is supported."""
        return knows(name)

    async def parse(self, path: Path, name: str) -> AsyncGenerator[ParsedDocument, None]:
        """The documents in the file. Raises `ParseFailed`, possibly after some documents."""
        file_format = format_of(name)
        has_text = False
        try:
            check_content(path, file_format)
            for document in file_format.load()(path, name):
                has_text = has_text or not document.text.isspace()
                yield document
        except ParseFailed:
            raise
        except Exception as error:  # the parsers' boundary, as in the process: a damaged file fails this file only
            raise ParseFailed(reason_for(error, file_format, memory_mb=0)) from error
        if not has_text:
            raise ParseFailed(stated("no_text", "no text in it"))

    async def close(self) -> None:
        """There is no process."""


@dataclass
class Databases:
    """Copies of a template on one server, until `drop()`."""

    address: ServerAddress
    template: str
    _created: list[str] = field(default_factory=list)

    def settings(self, **overrides: Any) -> Settings:
        """Settings of a new database; without an embedder unless told otherwise."""
        name = f"test_{next(_numbers)}"
        # Its files are copied: the default, a log record for each page, takes three times as long.
        self._execute("copy_database", name=name, template=self.template)
        self._created.append(name)
        values = {"embedder": "none"} | overrides
        return Settings.load(environ={}, data_dir=self.address.data_dir, database_name=name, **values)

    def drop(self) -> None:
        """Drop them all; fails when an app or a test has left a connection open.

        PostgreSQL waits 5 s for the backends of closed connections; on a busy machine they need longer to end. And a
        connection whose making was cancelled is closed when it is collected.
        """
        while self._created:
            name = self._created.pop()
            for attempt in range(_DROP_ATTEMPTS):
                try:
                    self._execute("drop_database", name=name)
                    break
                except psycopg.errors.ObjectInUse as error:
                    gc.collect()
                    if attempt == _DROP_ATTEMPTS - 1:
                        for session in self._execute("sessions_of_database", {"database": name}):
                            error.add_note(f"Open: {session}")
                        raise

    def _execute(self, statement: str, values: Mapping[str, str] | None = None, **identifiers: str) -> list[Any]:
        """Run a statement of `sql/schema.sql` with these values and identifiers in it; its rows."""
        names = {key: sql.Identifier(value) for key, value in identifiers.items()}
        with psycopg.connect(self.address.conninfo("dtrag_owner", "postgres"), autocommit=True) as connection:
            cursor = connection.execute(sql.SQL(queries("schema")[statement]).format(**names), values)
            return cursor.fetchall() if cursor.description else []


async def make_template(data_dir: Path) -> str:
    """Make a migrated, empty database to which nothing is connected; returns its name."""
    async with connect(Settings.load(environ={}, data_dir=data_dir, database_name=TEMPLATE, embedder="none")):
        return TEMPLATE


def without_sync(data_dir: Path) -> None:
    """Let the running server of a data folder no longer wait for the disk; only a crash of the machine loses anything.

    The lines come after the product's settings and go with the folder. No test may judge durability on this server.
    """
    cluster = data_dir / "postgres"
    with (cluster / "postgresql.conf").open("a", encoding="utf-8") as file:
        file.write("fsync = off\nfull_page_writes = off\n")
    os.kill(int((cluster / "postmaster.pid").read_text("utf-8").split()[0]), signal.SIGHUP)


@cache
def _server() -> ServerAddress:
    """The server of this process, with the template; stopped and deleted when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="dtrag-testing-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    attached = EmbeddedServer.open(folder / "data")
    atexit.register(attached.close)  # runs before the folder is deleted
    without_sync(attached.address.data_dir)
    with ThreadPoolExecutor(1) as pool:  # the caller's thread may run an event loop
        pool.submit(asyncio.run, make_template(attached.address.data_dir)).result()
    return attached.address
