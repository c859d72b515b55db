"""Connections to one PostgreSQL database in three roles, the migrations that make its schema, and the session's scope.

Roles: `dtrag_owner` migrates and writes, `dtrag_search` reads the indexes, `dtrag_reader` reads content under row-level
security. None of them is a superuser. On the embedded server they log in; behind a URL the login takes them on.
"""

from __future__ import annotations

import asyncio
import copy
import errno
import logging
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from dataclasses import fields
from datetime import datetime
from functools import lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, LiteralString, TypeVar

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.conninfo import make_conninfo
from psycopg.rows import DictRow, dict_row

from dtrag.adapters.postgres.disk import Disk
from dtrag.adapters.postgres.masked_parameters import register_masks
from dtrag.adapters.postgres.pool import SILENT_OWNER_S, SILENT_READER_S, Pool
from dtrag.adapters.postgres.pool import Connection as Connection  # noqa: PLC0414 - who uses a database needs its type
from dtrag.adapters.postgres.queries import Lock, queries
from dtrag.adapters.postgres.rows import register_types
from dtrag.adapters.postgres.search_files import SearchFiles
from dtrag.adapters.postgres.session import READ_ONLY_SERVER, STANDBY, SessionSetup, milliseconds
from dtrag.adapters.postgres.silence import SilenceWatch
from dtrag.core.access.scope import Scope
from dtrag.core.job import Lease
from dtrag.core.text.personal_data_policy import OFF, PersonalDataPolicy
from dtrag.core.version import __version__
from dtrag.errors import DatabaseDamaged, DatabaseUnavailable, InvalidInput, LeaseLost, SchemaTooNew, StorageFull

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Role = Literal["owner", "search", "reader"]
T = TypeVar("T")
Values = Mapping[str, object] | None
"""Parameters of a statement by name."""
ROLES: tuple[Role, ...] = ("owner", "search", "reader")
ROLE_NAMES: dict[Role, str] = {role: f"dtrag_{role}" for role in ROLES}

EF_SEARCH = 100
"""Candidates of a search in the graph of vectors (bench/README.md). Set for the whole connection, so that a search is
one statement."""
_SETTINGS = {
    "search_path": "dtrag,public,extensions",
    "timezone": "UTC",
    "citus.propagate_set_commands": "local",  # in a cluster the scope of a transaction reaches the workers
}
_CUSTOM_PLANS = {"plan_cache_mode": "force_custom_plan"}
"""A generic plan for every scope and filter is slow for most."""
_PLANS_OF_KEYS = {"plan_cache_mode": "auto"}
"""The reader looks up keys: a generic plan suits it. To plan the read of ten passages takes longer than the read."""
_VECTORS = {"hnsw.ef_search": str(EF_SEARCH), "hnsw.iterative_scan": "relaxed_order"}
CONTESTED = (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected)
CONTESTED_ATTEMPTS = 20
"""How often a transaction is run that others contend with; each attempt waits for one of them."""
POOL_TIMEOUT = 10.0
"""Longest wait for a free connection, in seconds; then the database counts as busy."""
CONNECT_TIMEOUT = 10
"""Longest time that a connection may take to be made when the database is opened, in seconds."""
RECONNECT_TIMEOUT = 3
"""The same while it is in use: an answer waits for it."""

GRACE_S = 5.0
"""After the time limit of a statement its connection is cut when the server has not ended it, in seconds."""
OWNER_LIMIT_S = 600.0
"""Longest response to a change in a cluster, in seconds; what creates an index has its own connection."""
COMMIT_TIMEOUT = 10.0
"""Longest wait for a commit on all servers of a cluster, in seconds."""
COMMIT_LOOK_S = 0.002

CONVERTING = "converting"
"""Stands among the migrations of a database whose conversion for a cluster has not ended; no version knows it."""

CACHED_SCOPES = 256
"""Scopes whose statement is cached."""

_LOG = logging.getLogger(__name__)

LEASE_LOST = "DT001"
"""The state of the error that `check_job` raises."""
READ_ONLY = (
    "the disk of the data folder is read-only, on which PostgreSQL cannot run. Look into the log of the system, and "
    "make it writable: the database then starts by itself."
)

NOT_MIGRATED = (
    "this server is a standby, and its schema is of an earlier version of dtrag. Run a command of this version against "
    "the primary first."
)


class Database:
    """The pools of the three roles. `open()` connects, migrates and is ready; use as an async context manager.

    `conninfo` gives the address for a role; it is called for every connection. `lost` is set whenever the server
    refused or ended a connection; its reader clears it. `outage` is the known reason why no connection can be made, ""
    otherwise. `on_cluster`: the database can distribute tables. `disk` is that of an embedded server. `files` are the
    mapped files, in `search_folder`; None without one.
    `standby`: the server may be a standby; whether it is one is in `on_standby`. `personal_data` is masked in all
    parameters, if so decided.
    """

    def __init__(
        self,
        conninfo: Callable[[Role], str],
        *,
        pool_size: int = 4,
        statement_timeout_ms: int = 15_000,
        disk: Disk | None = None,
        search_folder: Path | None = None,
        standby: bool = False,
        personal_data: PersonalDataPolicy = OFF,
    ):
        self._personal_data = personal_data
        limited = {**_silent(SILENT_READER_S), "statement_timeout": milliseconds(statement_timeout_ms)}
        settings: dict[Role, dict[str, str]] = {
            "owner": {**_silent(SILENT_OWNER_S), **_CUSTOM_PLANS},
            "search": {**limited, **_CUSTOM_PLANS, **_VECTORS},
            "reader": {**limited, **_PLANS_OF_KEYS},
        }
        self._sessions = {
            role: SessionSetup(ROLE_NAMES[role], settings[role], reads_only=role != "owner") for role in ROLES
        }
        self._standby = standby
        self.on_standby = False
        self._own: set[Connection] = set()
        self._watching: asyncio.Task[None] | None = None
        self._statement_timeout_ms = statement_timeout_ms
        self._conninfo = conninfo
        self._disk = disk
        self._search_folder = search_folder
        self.files: SearchFiles | None = None
        self._pool_size = pool_size
        self._pools: dict[Role, Pool] = {}
        self.lost = asyncio.Event()
        self.outage = ""
        self.on_cluster = False
        self.unfenced = self
        self._lease: Lease | None = None

    def fenced(self, lease: Lease) -> Database:
        """The same database for the writes of a job: each transaction fails with `LeaseLost` once the lease is lost.

        `unfenced` is the database itself, for upkeep that is not part of the job.
        """
        fenced = copy.copy(self)
        fenced._lease = lease
        return fenced

    async def open(self) -> None:
        """Migrate where needed, then open the pools. Raises `DatabaseUnavailable`."""
        try:
            async with await psycopg.AsyncConnection.connect(
                self._address("owner"), connect_timeout=CONNECT_TIMEOUT, autocommit=True
            ) as connection:
                backend = await self._sessions["owner"].prepare(
                    connection, self._address("owner"), (), standby=self._standby
                )
                self.on_standby = backend.standby
                await migrate(connection)
                self.on_cluster = await _is_there(connection, "distributing")
                if self._search_folder is not None:
                    self.files = await _search_files(connection, self._search_folder, self._disk)
        except psycopg.OperationalError as error:
            raise DatabaseUnavailable(reason=sentence(error)) from error
        except psycopg.errors.ReadOnlySqlTransaction as error:
            raise DatabaseUnavailable(reason=NOT_MIGRATED) from error
        for role in ROLES:
            self._pools[role] = Pool(
                partial(self._address, role),
                size=self._pool_size,
                wait_s=POOL_TIMEOUT,
                connect_s=RECONNECT_TIMEOUT,
                configure=partial(self._configure, role),
                limit_s=self._limit_s(role),
                on_lost=self.lost.set,
            )
        watch = SilenceWatch(self._connections, partial(self._address, "owner"), self.lost.set)
        self._watching = asyncio.create_task(watch.run(), name="dtrag-silence-watch")

    def _limit_s(self, role: Role) -> float | None:
        """How long a response may take, when the server does not end the statement itself."""
        if role == "owner":
            return OWNER_LIMIT_S if self.on_cluster else None
        return self._statement_timeout_ms / 1000 + GRACE_S if self._statement_timeout_ms else None

    def _address(self, role: Role) -> str:
        conninfo = self._conninfo(role)
        return make_conninfo(conninfo, options=f"{_given_options(conninfo)} {self._sessions[role].options}".strip())

    def _connections(self) -> Iterator[Connection]:
        for pool in self._pools.values():
            yield from pool.connections
        yield from list(self._own)

    async def _configure(self, role: Role, connection: Connection) -> None:
        """Verify the session of a new connection, and prepare it. Raises `DatabaseUnavailable`."""
        known = {other.backend for other in self._connections() if other.backend is not None}
        connection.backend = await self._sessions[role].prepare(
            connection, self._address(role), known, standby=self._standby
        )
        await register_types(connection)
        if self._personal_data.masks:
            register_masks(connection, self._personal_data)

    async def close(self) -> None:
        """Close the pools, and the connections of works that have not ended."""
        if self._watching is not None:
            self._watching.cancel()
        pools, self._pools = list(self._pools.values()), {}
        await asyncio.gather(*(pool.close() for pool in pools))
        for connection in list(self._own):
            await connection.close()

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
        with self._stated_errors(role):
            async with pool.connection() as connection:
                if self._lease is None or role != "owner":
                    yield connection
                    return
                async with connection.fenced(self._lease):
                    yield connection

    @asynccontextmanager
    async def own_connection(self, role: Role) -> AsyncIterator[Connection]:
        """As `connection`, outside of the pool: for locks that are held for long."""
        with self._stated_errors(role):
            connection = await Connection.connect(
                self._address(role), autocommit=True, row_factory=dict_row, connect_timeout=RECONNECT_TIMEOUT
            )
            self._own.add(connection)
            try:
                await self._configure(role, connection)
                yield connection
            finally:
                self._own.discard(connection)
                await connection.close()

    def _reason(self, error: psycopg.Error, role: Role) -> str:
        """Why the database cannot be used now; "" for an error that is a defect."""
        if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
            if role != "owner":
                return ""
            return STANDBY if self._standby else READ_ONLY_SERVER
        away = isinstance(error, (psycopg.OperationalError, psycopg.errors.IdleInTransactionSessionTimeout))
        return self.unfenced.outage or sentence(error) if away or _OF_OTHER_SERVER.search(str(error)) else ""

    @contextmanager
    def _stated_errors(self, role: Role) -> Iterator[None]:
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
        except (psycopg.OperationalError, psycopg.InternalError) as error:
            reason = self._reason(error, role)
            if not reason:
                raise
            raise DatabaseUnavailable(reason=reason) from error
        except DatabaseUnavailable as error:
            outage = self.unfenced.outage  # a fenced copy is as old as its job
            if outage and outage not in str(error):
                raise DatabaseUnavailable(reason=outage) from error
            raise
        except psycopg.DataError as error:
            raise InvalidInput(
                f"The database cannot take one of the values: {sentence(error)} Change it, and send it again."
            ) from error
        except psycopg.DatabaseError as error:
            if error.sqlstate == LEASE_LOST:
                raise LeaseLost from error
            if type(error) is not psycopg.DatabaseError or error.sqlstate is not None:
                raise
            raise DatabaseUnavailable(reason=sentence(error)) from error  # lost in the middle of a result

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

    async def last_replayed(self) -> datetime | None:
        """When the last change was made that a standby has; None on a primary, and where it is not known."""
        async with self.connection("search") as connection:
            row = await fetch_row(connection, queries("session")["last_replayed"])
        return row["moment"] if row else None

    def require_space(self, adding: int = 0) -> None:
        """Raises `StorageFull` when `adding` bytes are too many for the disk. Deleting is never refused."""
        if self._disk is not None:
            self._disk.require(adding)

    def require_space_for_a_line(self) -> None:
        """Raises `StorageFull` when the disk cannot hold even one more line of the audit log."""
        if self._disk is not None:
            self._disk.require_any()

    async def ping(self) -> None:
        """Raises `DatabaseUnavailable` unless the database, and in a cluster each server with documents, answers in the
        three roles that queries use."""
        for role in ROLES:
            async with self.connection(role) as connection:
                await connection.execute(queries("session")["reach" if role == "search" else "ping"])

    def block(self, connection: Connection) -> AbstractAsyncContextManager[object]:
        """A transaction around a statement that sets the scope itself: a cluster forwards the scope only in one."""
        return connection.transaction() if self.on_cluster else nullcontext()

    async def commits_ended(self, connection: Connection) -> None:
        """Wait for the end of changes whose number may be visible before their rows are: the other servers of a cluster
        commit after this one. Raises `DatabaseUnavailable`.
        """
        if not self.on_cluster:
            return
        statement, until = queries("session")["changing"], time.monotonic() + COMMIT_TIMEOUT
        changing = {row["transaction"] for row in await fetch(connection, statement)}
        while changing:
            if time.monotonic() > until:
                raise DatabaseUnavailable(reason="a change does not end on all servers of the cluster.")
            await asyncio.sleep(COMMIT_LOOK_S)
            changing &= {row["transaction"] for row in await fetch(connection, statement)}


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


async def repeated(transaction: Callable[[], Awaitable[T]]) -> T:
    """The result of a transaction, run again when another one held the same rows or tables."""
    for _ in range(CONTESTED_ATTEMPTS - 1):
        try:
            return await transaction()
        except CONTESTED:
            continue
    return await transaction()


async def fetch(connection: AsyncConnection[DictRow], statement: LiteralString, values: Values = None) -> list[DictRow]:
    """All rows of a statement."""
    return await (await connection.execute(statement, values)).fetchall()


async def fetch_row(
    connection: AsyncConnection[DictRow], statement: LiteralString, values: Values = None
) -> DictRow | None:
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
                await connection.execute(queries("session")["one_shard_at_a_time"])
                await connection.execute(statements["create_migrations"])
                for statement in split_statements(known[name]):
                    await connection.execute(statement.encode())
                await connection.execute(statements["add_migration"], {"name": name, "version": __version__})
        return len(missing)
    finally:
        await connection.execute(queries("locks")["release"], {"lock": Lock.MIGRATIONS})


_PIECES = re.compile(r"(\$\w*\$).*?\1|'[^']*'|--[^\n]*|;|[^$';-]+|.", re.DOTALL)
"""A function's body, a string, a comment, the end of a statement, other text."""


def split_statements(text: str) -> list[str]:
    """The statements of a migration, without comments: a cluster takes one at a time."""
    statements = [""]
    for piece in (match[0] for match in _PIECES.finditer(text)):
        if piece == ";":
            statements.append("")
        elif not piece.startswith("--"):
            statements[-1] += piece
    return [statement.strip() for statement in statements if statement.strip()]


async def compute_inside(connection: Connection, seconds: float) -> None:
    """Let the transaction be idle for so long between two statements; 0: ever."""
    statement = sql.SQL(queries("session")["compute_inside"])
    await connection.execute(statement.format(ms=sql.Literal(int(seconds * 1000))))


async def _is_there(connection: AsyncConnection[Any], name: str) -> bool:
    row = await (await connection.execute(queries("session")[name])).fetchone()
    return bool(row and row[0])


async def _applied(connection: AsyncConnection[Any], known: Collection[str]) -> set[str]:
    statements = queries("schema")
    cursor = await connection.execute(statements["migrations_table"])
    row = await cursor.fetchone()
    if row is None or row[0] is None:
        return set()
    cursor = await connection.execute(statements["newest_unknown_migration"], {"known": list(known)})
    if unknown := await cursor.fetchone():
        if unknown[0] == CONVERTING:
            raise DatabaseUnavailable(
                reason="its conversion for a cluster has not ended. Complete it with: dtrag cluster convert."
            )
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


def _silent(seconds: float) -> dict[str, str]:
    return {**_SETTINGS, "idle_in_transaction_session_timeout": milliseconds(int(seconds * 1000))}


def _given_options(conninfo: str) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(conninfo).get("options") or "")


_OF_OTHER_SERVER = re.compile(r"remote node|connection marked as essential|while executing command on ")
"""Of errors of a cluster whose reason is another server."""


def sentence(error: psycopg.Error) -> str:
    """The first line of an error, without passwords, addresses of servers in a cluster and numbers of shards."""
    first = str(error).strip().split("\n")[0] or type(error).__name__
    if _OF_OTHER_SERVER.search(first):
        return "a server of the database cluster does not respond."
    first = re.sub(r"(?<=\w)_10\d{4}\b", "", first)
    hidden = re.sub(r"password=\S+|:[^:@/\s]+@", "", first)
    return hidden if hidden.endswith(".") else hidden + "."
