"""What keeps the term statistics right after a crash and quick after many writes."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
from psycopg.types.json import Jsonb

from dtrag.adapters.postgres.database import Connection, Database
from dtrag.adapters.postgres.queries import queries
from dtrag.adapters.postgres.rows import Weights
from dtrag.adapters.postgres.segments import Tally, parameters_of, statistics_of
from dtrag.core.scoring import LexicalStatistics, reweigh

WRITING_LOCK = 7_203_114_003
STATISTICS_LOCK = 7_203_114_004
MOST_SEGMENTS = 32
"""More segments than this are merged into one: reading them costs about a millisecond each, and memory."""
LENGTH_DRIFT = 1.5
"""When the mean chunk length of a language has become this many times longer or shorter, its weights are computed anew.
A stale mean acts like another k1 and b (1.65 and .82, or .9 and .67), the same for every chunk; at either end of the
range nDCG@10 moves by -.007 to +.004 (bench/README.md)."""


async def recover(database: Database) -> int:
    """Count the batches that a crash left uncounted; returns how many. Batches in progress are left alone."""
    sql = queries("writing")
    async with database.connection("owner") as connection:
        rows = await (await connection.execute(sql["uncounted_segments"])).fetchall()
    recovered = 0
    for row in rows:
        segment_id = row["segment_id"]
        async with database.connection("owner") as connection, connection.transaction():
            locked = await connection.execute(sql["try_lock_segment"], {"key": lock_key(segment_id)})
            free = await locked.fetchone()
            if free is None or not free["free"]:
                continue
            still = await connection.execute(sql["lock_uncounted_segment"], {"segment_id": segment_id})
            if await still.fetchone() is None:
                continue  # its writer, or another who recovers, was quicker
            tally = await count_documents(connection, segment_id)
            await connection.execute(sql["bump_generation"])
            await connection.execute(
                sql["count_segment"], {"segment_id": segment_id, **parameters_of(tally.statistics())}
            )
            recovered += 1
    return recovered


async def count_documents(connection: Connection, segment_id: uuid.UUID) -> Tally:
    """The tally of a batch from the index itself."""
    tally = Tally()
    name = {"segment_id": segment_id}
    cursor = await connection.execute(queries("writing")["lexical_of_segment"], name, binary=True)
    for row in await cursor.fetchall():
        tally.restore(row)
    return tally


async def merge(database: Database, most: int = MOST_SEGMENTS) -> LexicalStatistics:
    """Merge the statistics segments into one when there are more than `most`; returns their sum."""
    sql = queries("writing")
    async with database.connection("owner") as connection, connection.transaction():
        await connection.execute("select pg_advisory_xact_lock(%s)", (STATISTICS_LOCK,))
        rows = await (await connection.execute(sql["all_segments"], binary=True)).fetchall()
        statistics = LexicalStatistics.merged([statistics_of(row) for row in rows])
        if len(rows) > most:
            merged = {"segment_id": uuid.uuid4(), "now": datetime.now(UTC), **parameters_of(statistics)}
            await connection.execute(sql["add_segment"], merged)
            await connection.execute(sql["drop_segments"], {"segment_ids": [row["segment_id"] for row in rows]})
            await connection.execute(sql["bump_generation"])
    return statistics


async def tidy(database: Database) -> None:
    """After a run of writes: merge segments, weigh anew where the mean length has moved, help the planner."""
    await _weigh_anew(database, await merge(database))
    async with database.connection("owner") as connection:
        # Postings that wait in the indexes' pending lists are read one by one by every search until they are merged.
        await connection.execute(
            "select gin_clean_pending_list('lexical_index_terms'), gin_clean_pending_list('chunks_strict')"
        )
        await connection.execute("analyze documents, chunks, lexical_index, embeddings")


async def stored_means(connection: Connection) -> dict[str, float]:
    """Language -> the mean length that the stored weights refer to."""
    cursor = await connection.execute("select value from index_settings where name = 'mean_lengths'")
    row = await cursor.fetchone()
    return dict(row["value"]) if row else {}


def lock_key(identity: uuid.UUID) -> int:
    """A 64-bit key for PostgreSQL's advisory locks."""
    return int.from_bytes(identity.bytes[:8], "big", signed=True)


async def _weigh_anew(database: Database, statistics: LexicalStatistics) -> None:
    sql = queries("writing")
    async with database.connection("owner") as connection, connection.transaction():
        await connection.execute(sql["lock_writing"], {"key": WRITING_LOCK})
        stored = await stored_means(connection)
        moved = {
            language: total / count
            for language, (count, total) in statistics.lengths.items()
            if count > 0 and total > 0 and language in stored
            if not 1 / LENGTH_DRIFT <= total / count / stored[language] <= LENGTH_DRIFT
        }
        if not moved:
            return
        for language, mean in moved.items():
            async with (
                connection.cursor("weights", binary=True) as rows,
                connection.cursor() as update,
            ):
                await rows.execute(sql["weights_of_language"], {"language": language})
                while page := await rows.fetchmany(1_000):
                    values = [_weighed(row, stored[language], mean) for row in page]
                    await update.executemany(sql["set_weights"], values)
        await connection.execute(sql["set_setting"], {"name": "mean_lengths", "value": Jsonb(stored | moved)})
        await connection.execute(sql["bump_generation"])


def _weighed(row: Mapping[str, Any], old: float, new: float) -> dict[str, object]:
    ids = np.array(row["weights"].indices(), np.int32)
    weights = reweigh(np.array(row["weights"].values(), np.float32), row["length"], old, new)
    return {"document_id": row["document_id"], "ordinal": row["ordinal"], "weights": Weights(ids, weights)}
