"""Dumps of a database and their restoration, by `pg_dump` and `pg_restore` of the embedded server's wheel."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg import pq, sql
from psycopg.rows import DictRow, dict_row

from dtrag.adapters.backup_file import Manifest
from dtrag.adapters.postgres.database import CONNECT_TIMEOUT, fetch_row, sentence
from dtrag.adapters.postgres.queries import queries
from dtrag.adapters.postgres.server.programs import MAJOR, StartFailure, program
from dtrag.core.access.audit_chain import START
from dtrag.core.version import __version__
from dtrag.errors import BackupFailed, DatabaseUnavailable

PIECE = 1 << 20
"""Bytes of a dump that are read at a time."""
_FEW_LINES = 3
_DUMP = ("--format=custom", "--schema=dtrag", "--enable-row-security", "--no-owner", "--compress=gzip:3")
"""Level 3 of gzip takes half of the processor time of the default and adds a twentieth to the size."""
_RESTORE = ("--schema=dtrag", "--enable-row-security", "--no-owner", "--exit-on-error", "--single-transaction")
Rows = psycopg.AsyncConnection[DictRow]


@asynccontextmanager
async def reading(conninfo: str) -> AsyncIterator[Rows]:
    """A connection in autocommit that migrates nothing. Raises `DatabaseUnavailable`."""
    try:
        async with await psycopg.AsyncConnection.connect(
            conninfo, autocommit=True, row_factory=dict_row, connect_timeout=CONNECT_TIMEOUT
        ) as connection:
            await connection.execute(queries("backup")["no_time_limit"])
            yield connection
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(reason=sentence(error)) from error


@asynccontextmanager
async def dumping(conninfo: str, backup_id: str) -> AsyncIterator[tuple[Manifest, AsyncIterator[bytes]]]:
    """What a database contains at this moment, and its dump, while others read and write.

    Raises `BackupFailed` for a database that dtrag has not made, or of a later PostgreSQL than the programs.
    """
    async with reading(conninfo) as connection:
        version = connection.info.server_version
        if version // 10_000 > MAJOR:
            raise BackupFailed(
                work="backed up",
                reason=f"it is PostgreSQL {version // 10_000}, later than the programs of this dtrag ({MAJOR}). Update "
                "dtrag, or use pg_dump of that version.",
            )
        cluster: Any = await fetch_row(connection, queries("session")["distributing"])
        others: Any = await fetch_row(connection, queries("backup")["sessions"])
        if next(iter(cluster.values())) and others["sessions"]:
            raise BackupFailed(
                work="backed up",
                reason="a cluster has no state that all its servers share: stop every dtrag process first.",
            )
        async with connection.transaction():
            await connection.execute(queries("session")["read_one_state"])
            manifest = await _manifest(connection, backup_id)
            snapshot = await fetch_row(connection, queries("backup")["snapshot"])
            assert snapshot is not None  # noqa: S101 - a function returns a row
            arguments = [*_DUMP, f"--snapshot={snapshot['snapshot']}"]
            yield manifest, _output("pg_dump", arguments, conninfo)


async def load(conninfo: str, pieces: AsyncIterator[bytes]) -> None:
    """Restore a dump into the empty schema of a database: all of it, or nothing. Raises `BackupFailed`."""
    database = psycopg.conninfo.conninfo_to_dict(conninfo).get("dbname")
    process, errors = await _start("pg_restore", [*_RESTORE, f"--dbname={database}"], conninfo, feeds=True)
    assert process.stdin is not None  # noqa: S101 - `feeds`
    try:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has failed: its code and output say why
            async for piece in pieces:
                process.stdin.write(piece)
                await process.stdin.drain()
            process.stdin.close()
            await process.stdin.wait_closed()
        await _ended(process, errors, "restored")
    finally:
        await _end(process, errors)
    async with reading(conninfo) as connection:
        await connection.execute(queries("backup")["grant_schema"])


async def table_counts(connection: Rows) -> dict[str, int]:
    """Table -> number of rows, of the schema."""
    statements, counts = queries("backup"), {}
    for row in await (await connection.execute(queries("schema")["tables"])).fetchall():
        statement = sql.SQL(statements["count_table"]).format(table=sql.Identifier(row["name"]))
        counted = await (await connection.execute(statement)).fetchone()
        counts[row["name"]] = int(counted["rows"]) if counted else 0
    return counts


async def is_made(connection: Rows) -> bool:
    """Whether the database has a schema of dtrag."""
    row = await (await connection.execute(queries("schema")["migrations_table"])).fetchone()
    return row is not None and next(iter(row.values())) is not None


async def audit_line(connection: Rows, number: int | None = None) -> tuple[int, str]:
    """Number and hash of a line of the audit log, of the newest by default; 0 where it has none."""
    present = await fetch_row(connection, queries("backup")["audit_log"])
    if present is None or present["present"] is None:  # before 0003
        return START.number, START.hash.hex()
    row = await fetch_row(connection, queries("backup")["audit_line"], {"number": number})
    return (row["number"], bytes(row["hash"]).hex()) if row else (START.number, START.hash.hex())


async def identity(connection: Rows) -> str:
    """The identity of the database; "" where the user may not read it."""
    try:
        async with connection.transaction():
            row = await (await connection.execute(queries("schema")["identity"])).fetchone()
    except psycopg.errors.InsufficientPrivilege:
        return ""
    return str(next(iter(row.values()))) if row else ""


async def _manifest(connection: Rows, backup_id: str) -> Manifest:
    if not await is_made(connection):
        raise BackupFailed(work="backed up", reason="dtrag has not made anything in it.")
    rows = await (await connection.execute(queries("backup")["migrations"])).fetchall()
    number, newest = await audit_line(connection)
    _, first = await audit_line(connection, 1)
    generation: Any = await fetch_row(connection, queries("backup")["generation"])
    version = connection.info.server_version
    return Manifest(
        backup_id=backup_id,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        dtrag=__version__,
        postgres=f"{version // 10_000}.{version % 10_000}",
        dump_major=MAJOR,
        migrations=[row["name"] for row in rows],
        identity=await identity(connection),
        generation=int(generation["value"]) if generation else 0,
        audit_number=number,
        audit_hash=newest,
        audit_first=first if number else "",
        tables=await table_counts(connection),
    )


async def _output(name: str, arguments: Sequence[str], conninfo: str) -> AsyncIterator[bytes]:
    process, errors = await _start(name, arguments, conninfo)
    assert process.stdout is not None  # noqa: S101 - not `feeds`
    try:
        while piece := await process.stdout.read(PIECE):
            yield piece
        await _ended(process, errors, "backed up")
    finally:
        await _end(process, errors)


async def _start(
    name: str, arguments: Sequence[str], conninfo: str, *, feeds: bool = False
) -> tuple[asyncio.subprocess.Process, asyncio.Task[bytes]]:
    try:
        path = program(name)
    except StartFailure as failure:
        raise BackupFailed(work="restored" if feeds else "backed up", reason=str(failure)) from failure
    process = await asyncio.create_subprocess_exec(
        path,
        *arguments,
        stdin=asyncio.subprocess.PIPE if feeds else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL if feeds else asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", **_variables(conninfo)},
        limit=PIECE,
        start_new_session=True,  # Ctrl-C is ours to handle
    )
    assert process.stderr is not None  # noqa: S101 - a pipe
    return process, asyncio.create_task(process.stderr.read())


def _variables(conninfo: str) -> dict[str, str]:
    """The address as variables of the environment: a password must not be in a command line, which all users see."""
    defaults: Iterable[pq.ConninfoOption] = pq.Conninfo.get_defaults()
    options = [*defaults, *pq.Conninfo.parse(conninfo.encode())]
    return {
        option.envvar.decode(): option.val.decode() for option in options if option.envvar and option.val is not None
    }


async def _ended(process: asyncio.subprocess.Process, errors: asyncio.Task[bytes], work: str) -> None:
    """Raises `BackupFailed` when the program failed."""
    lines = (await errors).decode("utf-8", "replace").splitlines()
    if await process.wait():
        reason = (
            " ".join(line.strip() for line in lines[:_FEW_LINES]) or f"the program ended with {process.returncode}."
        )
        raise BackupFailed(work=work, reason=reason)


async def _end(process: asyncio.subprocess.Process, errors: asyncio.Task[bytes]) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    errors.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await errors
