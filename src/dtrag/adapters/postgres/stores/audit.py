"""The audit log in the database: `AuditStore` over the table audit_log, which its owner can only add to and read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.locks import Lock, lock
from dtrag.adapters.postgres.queries import queries
from dtrag.core.access.audit_chain import START, AuditEntry, AuditFilter, AuditRow, ChainHead, chained


class PostgresAudit:
    """The log of one database."""

    def __init__(self, database: Database):
        self._database = database
        self._sql = queries("audit")

    async def append(self, entries: Sequence[AuditEntry]) -> ChainHead:
        """Add the entries as the next lines of the chain, all or none; they are durable when this returns."""
        self._database.require_space_for_a_line()
        async with self._database.connection("owner") as connection, connection.transaction():
            await lock(connection, Lock.AUDIT)  # over all processes: the numbers of the lines have no gaps
            newest = await (await connection.execute(self._sql["head"])).fetchone()
            head = START if newest is None else ChainHead(newest["number"], bytes(newest["hash"]))
            rows = chained(entries, head)
            async with connection.cursor() as cursor:
                await cursor.executemany(self._sql["append"], [_values(row) for row in rows])
        return ChainHead(rows[-1].number, rows[-1].hash) if rows else head

    async def page(self, after: int, limit: int) -> list[AuditRow]:
        """Lines with numbers above `after`, at most so many, in order."""
        return await self._rows("page", {"after": after, "limit": limit})

    async def newest(self, limit: int, filters: AuditFilter) -> list[AuditRow]:
        """The newest lines that pass the filters, the newest first."""
        return await self._rows("newest", {"limit": limit, **asdict(filters)})

    async def _rows(self, name: str, values: Mapping[str, object]) -> list[AuditRow]:
        async with self._database.connection("owner") as connection:
            return [_row(row) for row in await (await connection.execute(self._sql[name], values)).fetchall()]


def _values(row: AuditRow) -> dict[str, object]:
    entry = row.entry
    return {
        "number": row.number,
        "at": entry.at,
        "actor": entry.actor,
        "action": entry.action,
        "scope": None if entry.scope is None else Jsonb(entry.scope),
        "subjects": Jsonb(entry.subjects),
        "decision": entry.decision,
        "details": Jsonb(entry.details),
        "previous": row.previous,
        "hash": row.hash,
    }


def _row(row: DictRow) -> AuditRow:
    entry = AuditEntry(
        row["at"], row["actor"], row["action"], row["scope"], row["subjects"], row["decision"], row["details"]
    )
    return AuditRow(row["number"], entry, bytes(row["previous"]), bytes(row["hash"]))
