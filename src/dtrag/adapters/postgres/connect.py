"""Opens the `Database` of the settings, on the embedded server or behind a URL, supervises it and inspects it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from dtrag.adapters.postgres import search_files
from dtrag.adapters.postgres.database import (
    CONNECT_TIMEOUT,
    READ_ONLY,
    ROLE_NAMES,
    ROLES,
    Database,
    Role,
    migration_texts,
    sentence,
)
from dtrag.adapters.postgres.disk import Disk
from dtrag.adapters.postgres.lexical.merge import recover
from dtrag.adapters.postgres.queries import Lock, lock, queries
from dtrag.adapters.postgres.server.cluster import MAX_CONNECTIONS, RESERVED_CONNECTIONS
from dtrag.adapters.postgres.server.server import EmbeddedServer, ServerAddress
from dtrag.errors import DatabaseDamaged, DatabaseStartFailed, DatabaseUnavailable, InvalidInput
from dtrag.personal_data import personal_data_of
from dtrag.settings import Settings

_NETWORK: dict[str, int] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""A server that vanished without closing its connections is noticed within half a minute, not within hours."""
NO_ADDRESS = "DTRAG_DATABASE_URL is not a PostgreSQL address such as postgresql://user@host/db."
UNFINISHED = "dtrag: a restore is not finished"
"""The comment of the schema while a restore into an external database runs."""
OTHER_CONNECTIONS = 15
"""Connections that workers leave to a command beside them."""
OUTSIDE_OF_POOLS = 3
"""Connections of a worker that belong to no pool: for locks that it holds for long."""


@asynccontextmanager
async def connect(settings: Settings, *, standby: bool = False) -> AsyncIterator[Database]:
    """The database that the settings name, migrated; the last process to close it stops an embedded server.

    `standby`: a standby behind the URL is accepted, which is not migrated.
    """
    if settings.database_url:
        conninfos = await _behind_url(settings.database_url)
        async with _database(conninfos.__getitem__, settings, standby=standby) as database:
            yield database
        return
    server = await _open(settings)
    disk = Disk(settings.data_dir, settings.min_free_mb)
    try:
        name = settings.database_name

        def conninfo(role: Role) -> str:
            return server.address.conninfo(ROLE_NAMES[role], name)  # the address may change with a restart

        await create_database(server.address.conninfo(ROLE_NAMES["owner"], "postgres"), name)
        await make_schema(conninfo("owner"))
        async with _database(conninfo, settings, disk) as database, _supervised(server, database, disk):
            yield database
    finally:
        await asyncio.shield(asyncio.to_thread(server.close))


def conninfo_at(address: ServerAddress) -> Callable[[Role, str], str]:
    """The address for a role and the name of a database of an embedded server."""
    return lambda role, name: address.conninfo(ROLE_NAMES[role], name)


@dataclass(frozen=True, slots=True)
class Attachment:
    """A server that nothing was created or migrated on, for backups of its databases and what replaces them."""

    database: str
    """The one of the settings; it may not exist."""
    conninfo: Callable[[Role, str], str]
    """The address for a role and the name of a database."""
    server: EmbeddedServer | None
    """None behind a URL."""

    def opened(self, name: str, settings: Settings) -> Database:
        """The database with this name, which is migrated when it is opened."""
        return _database(lambda role: self.conninfo(role, name), settings)


@asynccontextmanager
async def attached(settings: Settings) -> AsyncIterator[Attachment]:
    """The server of the settings. Raises `DatabaseUnavailable`."""
    if settings.database_url:
        conninfos = await _behind_url(settings.database_url, unfinished=True)
        name = str(psycopg.conninfo.conninfo_to_dict(settings.database_url).get("dbname") or "")
        yield Attachment(name, lambda role, other: make_conninfo(conninfos[role], dbname=other), None)
        return
    server = await _open(settings)
    try:
        yield Attachment(settings.database_name, conninfo_at(server.address), server)
    finally:
        await asyncio.shield(asyncio.to_thread(server.close))


@asynccontextmanager
async def connect_throwaway(settings: Settings) -> AsyncIterator[Database]:
    """A new database beside the settings' own (embedded server only), dropped at the end."""
    if settings.database_url:
        raise InvalidInput("A throw-away database needs the embedded server; leave DTRAG_DATABASE_URL unset.")
    name = f"dtrag_scratch_{uuid.uuid4().hex[:12]}"
    server = await _open(settings)
    try:
        try:
            async with connect(replace(settings, database_name=name)) as database:
                yield database
        finally:
            template = server.address.conninfo(ROLE_NAMES["owner"], "postgres")
            async with await psycopg.AsyncConnection.connect(template, autocommit=True) as connection:
                await connection.execute(named("drop_database", name=name))
    finally:
        await asyncio.shield(asyncio.to_thread(server.close))


async def _open(settings: Settings) -> EmbeddedServer:
    """An attachment to the embedded server; a cancelled caller releases it."""
    opening = asyncio.ensure_future(asyncio.to_thread(EmbeddedServer.open, settings.data_dir))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        with contextlib.suppress(DatabaseUnavailable):
            await asyncio.to_thread((await opening).close)
        raise


@asynccontextmanager
async def _supervised(server: EmbeddedServer, database: Database, disk: Disk) -> AsyncIterator[None]:
    """While the block runs, the server is started again when it dies, and its disk is watched."""
    await asyncio.to_thread(disk.look)
    supervising = asyncio.create_task(Supervisor(server, database, disk).run(), name="dtrag-supervisor")
    try:
        yield
    finally:
        supervising.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await supervising


def _database(
    conninfo: Callable[[Role], str], settings: Settings, disk: Disk | None = None, *, standby: bool = False
) -> Database:
    return Database(
        conninfo,
        pool_size=settings.pool_size,
        statement_timeout_ms=settings.statement_timeout_ms,
        disk=disk,
        search_folder=settings.data_dir / search_files.FOLDER,
        standby=standby,
        personal_data=personal_data_of(settings),
    )


async def create_database(conninfo: str, name: str) -> None:
    """Create a database where none has this name, over a connection to another one. Raises `DatabaseUnavailable`."""
    try:
        async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as connection:
            cursor = await connection.execute(queries("schema")["database_exists"], {"name": name})
            if await cursor.fetchone() is None:
                try:
                    await connection.execute(named("create_database", name=name))
                except psycopg.errors.DuplicateDatabase:
                    pass  # another process created it meanwhile
                except psycopg.errors.UniqueViolation:
                    pass
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(reason=sentence(error)) from error


async def make_schema(conninfo: str) -> None:
    """Extension and schema, as the owner; in the embedded server the extension comes with the template."""
    async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as connection:
        cursor = await connection.execute(queries("schema")["schema_exists"])
        if await cursor.fetchone() is None:
            async with connection.transaction():
                await lock(connection, Lock.SCHEMA)
                await connection.execute(queries("schema")["create_schema"])


async def _behind_url(url: str, *, unfinished: bool = False) -> dict[Role, str]:
    """Conninfos whose sessions take on the three roles; makes roles, extension and schema where they are missing.

    Of several hosts the one is used that takes changes, unless the URL has other target_session_attrs. A database with
    an interrupted restore is refused, unless it may be `unfinished`.
    """
    try:
        parameters = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise InvalidInput(NO_ADDRESS) from error
    if "," in f"{parameters.get('host')}{parameters.get('hostaddr')}" and "target_session_attrs" not in parameters:
        url = make_conninfo(url, target_session_attrs="read-write")
    try:
        async with await psycopg.AsyncConnection.connect(
            url, autocommit=True, connect_timeout=CONNECT_TIMEOUT
        ) as connection:
            await make_roles(connection)
            mark = await (await connection.execute(queries("backup")["mark"])).fetchone()
            if not unfinished and mark is not None and mark[0] == UNFINISHED:
                raise DatabaseUnavailable(reason="a restore into it was interrupted. Run again: dtrag restore FILE.")
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(reason=sentence(error)) from error
    added = {name: value for name, value in _NETWORK.items() if name not in parameters}
    return {role: make_conninfo(url, **added, options=f"-c role={name}") for role, name in ROLE_NAMES.items()}


async def pool_size_of_worker(settings: Settings) -> int:
    """Connections of each role for each of the workers, so that they and one successor fit into the database.

    Raises `InvalidInput` when not even one fits, and `DatabaseUnavailable`.
    """
    allowed = MAX_CONNECTIONS - RESERVED_CONNECTIONS
    if settings.database_url:
        try:
            async with await psycopg.AsyncConnection.connect(
                settings.database_url, autocommit=True, connect_timeout=CONNECT_TIMEOUT
            ) as connection:
                cursor = await connection.execute(queries("schema")["connections_allowed"])
                row = await cursor.fetchone()
                allowed = row[0] if row is not None else allowed
        except psycopg.ProgrammingError as error:
            raise InvalidInput(NO_ADDRESS) from error
        except psycopg.OperationalError as error:
            raise DatabaseUnavailable(reason=sentence(error)) from error
    size = ((allowed - OTHER_CONNECTIONS) // (settings.workers + 1) - OUTSIDE_OF_POOLS) // len(ROLES)
    if size < 1:
        most = (allowed - OTHER_CONNECTIONS) // (len(ROLES) + OUTSIDE_OF_POOLS) - 1
        raise InvalidInput(
            f"The database allows {allowed} connections, which are too few for {settings.workers} workers. "
            + (f"Start at most {most} with --workers" if most > 0 else "Start one (--workers 1)")
            + (", or raise its max_connections." if settings.database_url else ".")
        )
    return min(settings.pool_size, size)


async def make_roles(connection: psycopg.AsyncConnection[Any], *, login: bool = False) -> None:
    """Make the roles, the extension and the schema where they are missing. `login`: new roles may log in."""
    if connection.info.server_version < 140_000:
        raise DatabaseUnavailable(reason="it is older than PostgreSQL 14.")
    cursor = await connection.execute(queries("schema")["roles_ready"], {"roles": list(ROLE_NAMES.values())})
    if await cursor.fetchone() is not None:
        return
    try:
        async with connection.transaction():
            await lock(connection, Lock.SCHEMA)
            for name in ROLE_NAMES.values():
                known = await connection.execute(queries("schema")["role_exists"], {"role": name})
                if await known.fetchone() is None:
                    await connection.execute(named("create_login" if login else "create_role", role=name))
                await connection.execute(named("grant_role", role=name))
            await connection.execute(queries("schema")["create_schema"])
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported) as error:
        raise DatabaseUnavailable(
            reason=f"{sentence(error)} Let an administrator run once: create role dtrag_owner nologin; create role "
            "dtrag_search nologin; create role dtrag_reader nologin; grant dtrag_owner, dtrag_search, dtrag_reader to "
            "YOUR_USER; create extension vector; create schema dtrag authorization dtrag_owner."
        ) from error


def named(statement: str, **identifiers: str) -> sql.Composed:
    """A statement of `sql/schema.sql` with these identifiers in it."""
    names = {key: sql.Identifier(name) for key, name in identifiers.items()}
    return sql.SQL(queries("schema")[statement]).format(**names)


LOOK_S = 0.5
"""A dead server is noticed after this time even without requests, in seconds."""
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0
"""Between attempts while the server does not come back; they grow from the first to this."""
_LOG = logging.getLogger(__name__)


class Supervisor:
    """Keeps the server of one attachment running until its task is cancelled."""

    def __init__(self, server: EmbeddedServer, database: Database, disk: Disk) -> None:
        self._server = server
        self._database = database
        self._disk = disk

    async def run(self) -> None:
        """Look after the server for ever."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._database.lost.wait(), LOOK_S)
            self._database.lost.clear()
            try:
                await asyncio.to_thread(self._disk.look)
            except OSError as error:
                _LOG.error("the disk of the data folder cannot be looked at", exc_info=error)
            if not await asyncio.to_thread(self._server.is_alive):
                _LOG.warning("the embedded database is not running any more; it is being started again")
                await self._bring_back()
            elif (stuck := await asyncio.to_thread(self._server.stuck_process)) is not None:
                _LOG.warning("the embedded database is stuck (process %d); it is ended and started again", stuck)
                await self._bring_back(stuck)

    async def _bring_back(self, stuck: int | None = None) -> None:
        started, pause, told = time.monotonic(), FIRST_PAUSE_S, ""
        while True:
            try:
                if await self._revived(stuck):
                    break
            except DatabaseStartFailed as error:
                if isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EROFS:
                    self._database.outage = READ_ONLY
                if str(error) != told:
                    _LOG.error("the embedded database does not start; trying again", exc_info=error)
                told = str(error)
                pause = min(2 * pause, LONGEST_PAUSE_S)
            await asyncio.sleep(pause)
        self._database.outage = ""
        _LOG.warning("the embedded database is back after %.1f s", time.monotonic() - started)
        try:
            await recover(self._database)
        except DatabaseUnavailable as error:
            _LOG.warning("what an interrupted write left could not be counted yet", exc_info=error)

    async def _revived(self, stuck: int | None) -> bool:
        """One attempt. A cancellation waits for it (two seconds, as a rule): it holds the lock that a stop needs."""
        attempt = asyncio.ensure_future(asyncio.to_thread(self._server.revive, stuck))
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            await asyncio.wait([attempt])
            if not attempt.cancelled():
                attempt.exception()
            raise


@dataclass(frozen=True, slots=True)
class SchemaState:
    """Numbers of migrations."""

    applied: int
    known: int


@dataclass(frozen=True, slots=True)
class RoleRights:
    """`unrestricted`: a superuser, or one that bypasses row-level security."""

    role: str
    unrestricted: bool


async def schema_state(database: Database) -> SchemaState:
    """Which migrations are applied."""
    known = migration_texts()
    async with database.connection("owner") as connection:
        rows = await (await connection.execute(queries("schema")["migrations"])).fetchall()
    return SchemaState(len(rows), len(known))


async def role_rights(database: Database) -> list[RoleRights]:
    """The rights of the three roles, as their own connections see them."""
    rights = []
    for role in ROLES:
        async with database.connection(role) as connection:
            rows = await (await connection.execute(queries("schema")["role_rights"])).fetchall()
        rights += [RoleRights(row["role"], row["unrestricted"]) for row in rows]
    return rights


async def index_counts(database: Database) -> tuple[int, int]:
    """Numbers of vectors, and of batches that are being written or were interrupted."""
    async with database.connection("search") as connection:
        row = await (await connection.execute(queries("schema")["index_counts"])).fetchone()
    return (int(row["vectors"]), int(row["uncounted"])) if row else (0, 0)


async def personal_data_counts(database: Database) -> list[tuple[str, str, int]]:
    """Ids of policies that documents were stored with, kinds of personal data in them, and numbers of documents."""
    async with database.connection("owner") as connection:
        rows = await (await connection.execute(queries("schema")["personal_data_counts"])).fetchall()
    return [(row["policy"], row["kinds"], int(row["documents"])) for row in rows]


async def damaged_tables(database: Database) -> dict[str, str]:
    """Table -> the error, of the tables with a damaged page: all are read, so that their checksums are compared."""
    statements, damaged = queries("schema"), {}
    async with database.connection("owner") as connection:
        names = [row["name"] for row in await (await connection.execute(statements["tables"])).fetchall()]
    for name in names:
        statement = sql.SQL(statements["read_table"]).format(table=sql.Identifier(name))
        try:
            async with database.connection("owner") as connection:
                await connection.execute(statement)
        except DatabaseDamaged as error:
            damaged[name] = str(error)
    return damaged
