"""Settings kept in the index: what it was built with (analyzer, embedder), recorded once and compared at every start,
the calibration of the confidence, and the own entries of the lexicon."""

from __future__ import annotations

from collections.abc import Mapping

from psycopg import sql
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from dtrag.adapters.postgres.database import Connection, Database
from dtrag.adapters.postgres.locks import Lock, lock
from dtrag.adapters.postgres.queries import queries
from dtrag.core import lexicon_entry
from dtrag.core.answers.confidence import SETTING
from dtrag.ports import Embedder, check_identity


class PostgresIndexSettings:
    """The settings of the index in one database."""

    def __init__(self, database: Database):
        self._database = database

    async def register(self, analyzer: str, embedder: Embedder | None) -> None:
        """Record analyzer and embedder in an index that has none yet. Raises `IndexMismatch` when it has others."""
        async with self._database.connection("owner") as connection, connection.transaction():
            await lock(connection, Lock.IDENTITY)
            stored = await _stored(connection)
            check_identity(stored, analyzer, embedder)
            if "analyzer" not in stored:
                await _set(connection, "analyzer", analyzer)
            if embedder is not None and "embedder" not in stored:
                await _set(connection, "embedder", {"id": embedder.id, "dim": embedder.dim})
                await _shape_vectors(connection, embedder.dim)
            if embedder is not None or "analyzer" not in stored:
                await connection.execute(queries("writing")["bump_generation"])

    async def forget(self) -> None:
        """Empty the index of everything that depends on analyzer and embedder; the documents stay, to be indexed again.

        Waits for all batches being written, and blocks new ones: a batch counts its segment in a row that this deletes.
        """
        async with self._database.connection("owner") as connection, connection.transaction():
            for name in (Lock.WRITERS, Lock.MERGE, Lock.IDENTITY):
                await lock(connection, name)
            statements = queries("index_settings")
            for statement in ("empty_index", "drop_vector_index", "forget_fingerprints"):
                await connection.execute(statements[statement])
            await _remove(connection, "analyzer", "embedder")
            await _set(connection, "rebuilding", True)
            await connection.execute(queries("writing")["bump_generation"])

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

    async def replace_lexicon(self, value: Mapping[str, object], previous: Mapping[str, object] | None) -> bool:
        """Replace the own entries; False, without a change, when those stored are not `previous`."""
        async with self._database.connection("owner") as connection, connection.transaction():
            await lock(connection, Lock.IDENTITY)
            if (await _stored(connection)).get(lexicon_entry.SETTING) != previous:
                return False
            await _set(connection, lexicon_entry.SETTING, dict(value))
            await connection.execute(queries("writing")["bump_generation"])
            return True


async def _stored(connection: Connection) -> DictRow:
    rows = await (await connection.execute(queries("search")["settings"])).fetchall()
    return {row["name"]: row["value"] for row in rows}


async def _set(connection: Connection, name: str, value: object) -> None:
    await connection.execute(queries("index_settings")["set_setting"], {"name": name, "value": Jsonb(value)})


async def _remove(connection: Connection, *names: str) -> bool:
    """Whether any of the settings existed."""
    cursor = await connection.execute(queries("index_settings")["forget_settings"], {"names": list(names)})
    return cursor.rowcount > 0


async def _shape_vectors(connection: Connection, dim: int) -> None:
    """Give the (empty) vector column its dimension, and create its index, which needs one."""
    statements = queries("index_settings")
    await connection.execute(sql.SQL(statements["shape_vectors"]).format(dim=sql.Literal(dim)))
    await connection.execute(statements["create_vector_index"])
