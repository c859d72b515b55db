"""Connections to one PostgreSQL database in three roles, the migrations that make its schema, and the session's scope.

Roles: `dtrag_owner` migrates and writes, `dtrag_search` reads the indexes, `dtrag_reader` reads content under row-level
security. None of them is a superuser. On the embedded server they log in; behind a URL the login takes them on.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import fields
from functools import lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, LiteralString

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.conninfo import make_conninfo
from psycopg.rows import DictRow, dict_row

from dtrag.adapters.postgres.disk import Disk
from dtrag.adapters.postgres.pool import Connection as Connection  # noqa: PLC0414 - who uses a database needs its type
from dtrag.adapters.postgres.pool import Pool
from dtrag.adapters.postgres.queries import Lock, queries
from dtrag.adapters.postgres.rows import register_types
from dtrag.adapters.postgres.search_files import SearchFiles
from dtrag.core.access.scope import Scope
from dtrag.core.version import __version__
from dtrag.errors import DatabaseDamaged, DatabaseUnavailable, InvalidInput, SchemaTooNew, StorageFull

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Role = Literal["owner", "search", "reader"]
Values = Mapping[str, object] | None
"""Parameters of a statement by name."""
ROLES: tuple[Role, ...] = ("owner", "search", "reader")

_OPTIONS = "-c search_path=dtrag,public,extensions -c timezone=UTC"
_SEARCH_OPTIONS = "-c plan_cache_mode=force_custom_plan"
"""A generic plan for every scope and filter is slow for most."""
_READER_OPTIONS = "-c plan_cache_mode=auto"
"""The reader looks up keys: a generic plan suits it. To plan the read of ten passages takes longer than the read."""
EF_SEARCH = 100
"""Candidates of a search in the graph of vectors (bench/README.md). Set for the whole connection, so that a search is
one statement."""
_VECTOR_OPTIONS = f"-c hnsw.ef_search={EF_SEARCH} -c hnsw.iterative_scan=relaxed_order"
POOL_TIMEOUT = 10.0
"""Longest wait for a free connection, in seconds; then the database counts as busy."""
CONNECT_TIMEOUT = 10
"""Longest time that a connection may take to be made when the database is opened, in seconds."""
RECONNECT_TIMEOUT = 3
"""The same while it is in use: an answer waits for it."""

CACHED_SCOPES = 256
"""Scopes whose statement is cached."""

_LOG = logging.getLogger(__name__)

READ_ONLY = (
    "the disk of the data folder is read-only, on which PostgreSQL cannot run. Look into the log of the system, and "
    "make it writable: the database then starts by itself."
)


class Database:
    """The pools of the three roles. `open()` connects, migrates and is ready; use as an async context manager.

    `conninfo` gives the address for a role; it is called for every connection. `lost` is set whenever the server
    refused or ended a connection; its reader clears it. `outage` is the known reason why no connection can be made, ""
    otherwise. `disk` is that of an embedded server. `files` are the mapped files, in `search_folder`; None without one.
    """

    def __init__(
        self,
        conninfo: Callable[[Role], str],
        *,
        pool_size: int = 4,
        statement_timeout_ms: int = 15_000,
        disk: Disk | None = None,
        search_folder: Path | None = None,
    ):
        self._options: dict[Role, str] = {
            "owner": f"{_OPTIONS} {_SEARCH_OPTIONS}",
            "search": f"{_OPTIONS} {_SEARCH_OPTIONS} -c statement_timeout={statement_timeout_ms} {_VECTOR_OPTIONS}",
            "reader": f"{_OPTIONS} {_READER_OPTIONS} -c statement_timeout={statement_timeout_ms}",
        }
        self._conninfo = conninfo
        self._disk = disk
        self._search_folder = search_folder
        self.files: SearchFiles | None = None
        self._pool_size = pool_size
        self._pools: dict[Role, Pool] = {}
        self.lost = asyncio.Event()
        self.outage = ""

    async def open(self) -> None:
        """Migrate where needed, then open the pools. Raises `DatabaseUnavailable`."""
        try:
            async with await psycopg.AsyncConnection.connect(
                self._address("owner"), connect_timeout=CONNECT_TIMEOUT, autocommit=True
            ) as connection:
                await migrate(connection)
                if self._search_folder is not None:
                    self.files = await _search_files(connection, self._search_folder, self._disk)
        except psycopg.OperationalError as error:
            raise DatabaseUnavailable(reason=sentence(error)) from error
        for role in ROLES:
            self._pools[role] = Pool(
                partial(self._address, role),
                size=self._pool_size,
                wait_s=POOL_TIMEOUT,
                connect_s=RECONNECT_TIMEOUT,
                configure=register_types,
                on_lost=self.lost.set,
            )

    def _address(self, role: Role) -> str:
        conninfo = self._conninfo(role)
        return make_conninfo(conninfo, options=f"{_given_options(conninfo)} {self._options[role]}".strip())

    async def close(self) -> None:
        """Close the pools."""
        pools, self._pools = list(self._pools.values()), {}
        await asyncio.gather(*(pool.close() for pool in pools))

    async def __aenter__(self) -> Database:
        await self.open()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    @asynccontextmanager
    async def connection(self, role: Role) -> AsyncIterator[Connection]:
        """A connection in autocommit, as the role. Raises `DatabaseUnavailable`."""
        pool = self._pools.get(role)
        if pool is None:
            raise DatabaseUnavailable(reason="the connection is closed.")
        with self._stated_errors():
            async with pool.connection() as connection:
                yield connection

    @asynccontextmanager
    async def own_connection(self, role: Role) -> AsyncIterator[Connection]:
        """As `connection`, outside of the pool: for locks that are held for long."""
        with self._stated_errors():
            connection = await Connection.connect(
                self._address(role), autocommit=True, row_factory=dict_row, connect_timeout=RECONNECT_TIMEOUT
            )
            try:
                yield connection
            finally:
                await connection.close()

    @contextmanager
    def _stated_errors(self) -> Iterator[None]:
        """Errors of psycopg as those that state what to do."""
        try:
            yield
        except psycopg.errors.DiskFull as error:
            raise StorageFull(
                "The disk of the database is full. Free some space; searches and answers go on, and nothing need be "
                "restarted."
            ) from error
        except (psycopg.errors.DataCorrupted, psycopg.errors.IndexCorrupted) as error:
            raise DatabaseDamaged(reason=sentence(error)) from error
        except psycopg.errors.InsufficientPrivilege as error:
            if os.strerror(errno.EROFS) not in str(error):
                raise
            raise DatabaseUnavailable(reason=READ_ONLY) from error
        except psycopg.OperationalError as error:
            raise DatabaseUnavailable(reason=self.outage or sentence(error)) from error
        except DatabaseUnavailable as error:
            if self.outage and self.outage not in str(error):
                raise DatabaseUnavailable(reason=self.outage) from error
            raise
        except psycopg.DataError as error:
            raise InvalidInput(
                f"The database cannot take one of the values: {sentence(error)} Change it, and send it again."
            ) from error

    @asynccontextmanager
    async def scoped(self, role: Role, scope: Scope) -> AsyncIterator[Connection]:
        """A connection in a transaction whose row-level security is limited to the scope."""
        async with self.connection(role) as connection, connection.pipeline(), connection.transaction():
            await connection.execute(scope_statement(scope.nodes))
            yield connection

    async def read(self, scope: Scope, statement: LiteralString, values: Values = None) -> list[DictRow]:
        """All rows of a statement under row-level security, in one round trip.

        They are fetched after the transaction: to wait for them inside it is a round trip more.
        """
        async with self.connection("reader") as connection:
            async with connection.pipeline(), connection.transaction():
                await connection.execute(scope_statement(scope.nodes))
                cursor = await connection.execute(statement, values, binary=True)
            return await cursor.fetchall()

    async def read_row(self, scope: Scope, statement: LiteralString, values: Values = None) -> DictRow | None:
        """The first row of a statement under row-level security, or None."""
        rows = await self.read(scope, statement, values)
        return rows[0] if rows else None

    def require_space(self, adding: int = 0) -> None:
        """Raises `StorageFull` when `adding` bytes are too many for the disk. Deleting is never refused."""
        if self._disk is not None:
            self._disk.require(adding)

    def require_space_for_a_line(self) -> None:
        """Raises `StorageFull` when the disk cannot hold even one more line of the audit log."""
        if self._disk is not None:
            self._disk.require_any()

    async def ping(self) -> None:
        """Raises `DatabaseUnavailable` unless the database answers in each of the three roles that queries use."""
        for role in ROLES:
            async with self.connection(role) as connection:
                await connection.execute(queries("session")["ping"])


class Store:
    """A store over the statements of one file; the base of those that implement the protocols of `ports`."""

    subject: ClassVar[str]
    """Name of the file in `sql/`."""

    def __init__(self, database: Database):
        self._database = database
        self._sql = queries(self.subject)

    async def _rows(self, name: str, values: Values = None, *, role: Role = "owner") -> list[DictRow]:
        async with self._database.connection(role) as connection:
            return await fetch(connection, self._sql[name], values)

    async def _row(self, name: str, values: Values = None, *, role: Role = "owner") -> DictRow | None:
        async with self._database.connection(role) as connection:
            return await fetch_row(connection, self._sql[name], values)

    async def _execute(self, name: str, values: Values = None) -> int:
        """How many rows the statement wrote or deleted."""
        async with self._database.connection("owner") as connection:
            return (await connection.execute(self._sql[name], values)).rowcount


async def fetch(connection: Connection, statement: LiteralString, values: Values = None) -> list[DictRow]:
    """All rows of a statement."""
    return await (await connection.execute(statement, values)).fetchall()


async def fetch_row(connection: Connection, statement: LiteralString, values: Values = None) -> DictRow | None:
    """The first row of a statement, or None."""
    return await (await connection.execute(statement, values)).fetchone()


def columns(value: DataclassInstance) -> dict[str, object]:
    """The fields of a dataclass as parameters of a statement."""
    return {declared.name: getattr(value, declared.name) for declared in fields(value)}


@lru_cache(CACHED_SCOPES)
def scope_statement(nodes: frozenset[int] | None) -> bytes:
    """`set local` for the scope: a literal of its own statement, since a cluster forwards only that to its workers."""
    if nodes is None:
        return queries("session")["full_scope"].encode()
    return sql.SQL(queries("session")["scope"]).format(nodes=sql.Literal(node_array(nodes))).as_bytes(None)


@lru_cache(CACHED_SCOPES)
def node_array(nodes: frozenset[int]) -> str:
    """The nodes as an array literal of PostgreSQL."""
    return "{" + ",".join(str(int(node)) for node in sorted(nodes)) + "}"


async def migrate(connection: AsyncConnection[Any]) -> int:
    """Apply the migrations that are missing, one at a time under a lock; returns how many. As `dtrag_owner`.

    Raises `SchemaTooNew` when there are others.
    """
    known, statements = migration_texts(), queries("schema")
    if await _applied(connection, known) >= set(known):
        return 0
    await connection.execute(queries("locks")["session"], {"lock": Lock.MIGRATIONS})
    try:
        missing = sorted(set(known) - await _applied(connection, known))
        for name in missing:
            async with connection.transaction():
                await connection.execute(statements["create_migrations"])
                await connection.execute(known[name].encode())
                await connection.execute(statements["add_migration"], {"name": name, "version": __version__})
        return len(missing)
    finally:
        await connection.execute(queries("locks")["release"], {"lock": Lock.MIGRATIONS})


async def _applied(connection: AsyncConnection[Any], known: Collection[str]) -> set[str]:
    statements = queries("schema")
    cursor = await connection.execute(statements["migrations_table"])
    row = await cursor.fetchone()
    if row is None or row[0] is None:
        return set()
    cursor = await connection.execute(statements["newest_unknown_migration"], {"known": list(known)})
    if unknown := await cursor.fetchone():
        raise SchemaTooNew(
            place="The database",
            current=__version__,
            change=unknown[0].removesuffix(".sql"),
            maker=f"dtrag {unknown[1]}" if unknown[1] else "a later version",
            setting="DTRAG_DATA_DIR or DTRAG_DATABASE_URL",
        )
    return {row[0] for row in await (await connection.execute(statements["migrations"])).fetchall()}


def migration_texts() -> dict[str, str]:
    """The migrations by file name."""
    folder = resources.files("dtrag.adapters.postgres").joinpath("migrations")
    return {entry.name: entry.read_text("utf-8") for entry in folder.iterdir() if entry.name.endswith(".sql")}


async def _search_files(connection: AsyncConnection[Any], folder: Path, disk: Disk | None) -> SearchFiles | None:
    """The files of the database; those of dropped databases of the same cluster are removed."""
    statements = queries("schema")
    try:
        row = await (await connection.execute(statements["identity"])).fetchone()
    except psycopg.errors.InsufficientPrivilege:
        _LOG.warning("no search files: the database user may not read the identity of the cluster")
        return None
    files = SearchFiles(folder, row[0] if row else "", disk)
    others = await asyncio.to_thread(files.others)
    if others:  # listed before the databases: a database that is created now keeps its folder
        rows = await (await connection.execute(statements["identities"])).fetchall()
        await asyncio.to_thread(files.forget, others - {identity for (identity,) in rows})
    return files


def _given_options(conninfo: str) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(conninfo).get("options") or "")


def sentence(error: psycopg.Error) -> str:
    """The first line of an error, without passwords."""
    first = str(error).strip().split("\n")[0] or type(error).__name__
    hidden = re.sub(r"password=\S+|:[^:@/\s]+@", "", first)
    return hidden if hidden.endswith(".") else hidden + "."
