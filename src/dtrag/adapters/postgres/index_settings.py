"""Settings kept in the index: what it was built with (analyzer, embedder), recorded once and compared at every start,
and the calibration of the confidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from dtrag.adapters.postgres.database import Connection, Database
from dtrag.adapters.postgres.locks import Lock, lock
from dtrag.adapters.postgres.queries import queries
from dtrag.core.answers.confidence import SETTING
from dtrag.ports import Embedder, check_identity


async def register(database: Database, analyzer: str, embedder: Embedder | None) -> None:
    """Record analyzer and embedder in an index that has none yet. Raises `IndexMismatch` when it has others."""
    async with database.connection("owner") as connection, connection.transaction():
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


async def forget(database: Database) -> None:
    """Empty the index of everything that depends on analyzer and embedder; the documents stay, to be indexed anew.

    Waits for all batches being written, and holds new ones off: a batch counts its segment in a row that this removes.
    """
    async with database.connection("owner") as connection, connection.transaction():
        for name in (Lock.WRITERS, Lock.MERGE, Lock.IDENTITY):
            await lock(connection, name)
        await connection.execute(
            "truncate embeddings, lexical_index, lexical_corrections, lexical_segments, posting_pages, sources"
        )
        await connection.execute("drop index if exists embeddings_hnsw")
        await connection.execute("delete from index_settings where name = any (%s)", (["analyzer", "embedder"],))
        await connection.execute("update documents set fingerprint = ''")
        await _set(connection, "rebuilding", True)
        await connection.execute(queries("writing")["bump_generation"])


async def rebuilt(database: Database) -> None:
    """The index is complete again."""
    async with database.connection("owner") as connection, connection.transaction():
        await connection.execute("delete from index_settings where name = 'rebuilding'")
        await connection.execute(queries("writing")["bump_generation"])


async def _stored(connection: Connection) -> dict[str, Any]:
    rows = await (await connection.execute(queries("search")["settings"])).fetchall()
    return {row["name"]: row["value"] for row in rows}


async def _set(connection: Connection, name: str, value: object) -> None:
    await connection.execute(queries("writing")["set_setting"], {"name": name, "value": Jsonb(value)})


async def _shape_vectors(connection: Connection, dim: int) -> None:
    """Give the (empty) vector column its dimension, and the index that needs one."""
    await connection.execute(
        sql.SQL("alter table embeddings alter column vec type halfvec({})").format(sql.Literal(dim))
    )
    await connection.execute(
        "create index if not exists embeddings_hnsw on embeddings using hnsw (vec halfvec_cosine_ops)"
        " with (m = 16, ef_construction = 100)"
    )


async def store_calibration(database: Database, value: Mapping[str, Any]) -> None:
    """Put the calibration in the place of the one before."""
    async with database.connection("owner") as connection, connection.transaction():
        await connection.execute(queries("writing")["set_setting"], {"name": SETTING, "value": Jsonb(dict(value))})
        await connection.execute(queries("writing")["bump_generation"])


async def forget_calibration(database: Database) -> bool:
    """Back to the shipped weights; whether there was a calibration."""
    async with database.connection("owner") as connection, connection.transaction():
        cursor = await connection.execute(queries("writing")["forget_setting"], {"name": SETTING})
        await connection.execute(queries("writing")["bump_generation"])
        return cursor.rowcount > 0
