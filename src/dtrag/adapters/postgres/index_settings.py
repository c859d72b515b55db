"""Settings kept in the index: the analyzer that it was built with, recorded once and compared at every start, the
calibration of the confidence, the own entries of the lexicon, and settings that administrators changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from dtrag.adapters.postgres.database import Connection, Database, fetch, fetch_row, repeated
from dtrag.adapters.postgres.queries import Lock, lock, queries
from dtrag.core.answers.passage_confidence import SETTING
from dtrag.ports import check_identity


class PostgresIndexSettings:
    """The settings of the index in one database."""

    def __init__(self, database: Database):
        self._database = database

    async def register(self, analyzer: str) -> str:
        """Record the analyzer in an index that has none yet. Raises `IndexMismatch` when it has another one.

        Returns what an earlier release added to the fingerprints of sources, or "".
        """
        async with self._database.connection("owner") as connection, connection.transaction():
            await lock(connection, Lock.IDENTITY)
            stored = await _stored(connection)
            check_identity(stored, analyzer)
            if "analyzer" not in stored:
                await _set(connection, "analyzer", analyzer)
                await connection.execute(queries("writing")["bump_generation"])
            return str(stored.get("sources_read_with", ""))

    async def forget(self) -> None:
        """Empty the index of everything that was computed from the documents, which stay, to be indexed again.

        Waits for all batches being written, and blocks new ones: a batch counts its segment in a row that this deletes.
        """
        async with self._database.connection("owner") as connection:
            await repeated(lambda: _forget(connection))

    async def rebuilt(self) -> None:
        """The index is complete again."""
        async with self._database.connection("owner") as connection, connection.transaction():
            await _remove(connection, "rebuilding")
            await connection.execute(queries("writing")["bump_generation"])

    async def store_calibration(self, value: Mapping[str, object]) -> None:
        """Put the calibration in the place of the one before."""
        async with self._database.connection("owner") as connection, connection.transaction():
            await _set(connection, SETTING, dict(value))
            await connection.execute(queries("writing")["bump_generation"])

    async def forget_calibration(self) -> bool:
        """Back to the shipped weights; whether there was a calibration."""
        async with self._database.connection("owner") as connection, connection.transaction():
            existed = await _remove(connection, SETTING)
            await connection.execute(queries("writing")["bump_generation"])
            return existed

    async def stored(self, name: str) -> Any:
        """The value of a setting; None when it is not stored."""
        async with self._database.connection("search") as connection:
            row = await fetch_row(connection, queries("index_settings")["setting"], {"name": name})
        return None if row is None else row["value"]

    async def replace(self, name: str, value: Mapping[str, object], previous: Mapping[str, object] | None) -> bool:
        """Replace a setting; False, without a change, when what is stored is not `previous`."""
        async with self._database.connection("owner") as connection, connection.transaction():
            await lock(connection, Lock.IDENTITY)
            if (await _stored(connection)).get(name) != previous:
                return False
            await _set(connection, name, dict(value))
            await connection.execute(queries("writing")["bump_generation"])
            return True


async def _forget(connection: Connection) -> None:
    async with connection.transaction():
        for name in (Lock.WRITERS, Lock.MERGE, Lock.IDENTITY):
            await lock(connection, name)
        statements = queries("index_settings")
        for statement in ("empty_index", "forget_fingerprints"):
            await connection.execute(statements[statement])
        await connection.execute(queries("vectors")["all_wait"])
        await _remove(connection, "analyzer", "sources_read_with")
        await _set(connection, "rebuilding", True)
        await connection.execute(queries("writing")["bump_generation"])


async def _stored(connection: Connection) -> DictRow:
    return {row["name"]: row["value"] for row in await fetch(connection, queries("search")["settings"])}


async def _set(connection: Connection, name: str, value: object) -> None:
    await connection.execute(queries("index_settings")["set_setting"], {"name": name, "value": Jsonb(value)})


async def _remove(connection: Connection, *names: str) -> bool:
    """Whether any of the settings existed."""
    cursor = await connection.execute(queries("index_settings")["forget_settings"], {"names": list(names)})
    return cursor.rowcount > 0
