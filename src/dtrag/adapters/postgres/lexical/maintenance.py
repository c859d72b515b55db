"""Recovery of the lexical index after a crash, and merging after many writes."""

from __future__ import annotations

from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.lexical.merge import MOST_SEGMENTS, merge
from dtrag.adapters.postgres.lexical.segment_writer import write_stored_segment
from dtrag.adapters.postgres.locks import Lock, lock_shared, try_lock, uuid_key
from dtrag.adapters.postgres.queries import queries


async def recover(database: Database) -> int:
    """Write the segments that a crash left uncounted; returns how many. Batches in progress keep theirs."""
    sql = queries("writing")
    async with database.connection("owner") as connection:
        rows = await (await connection.execute(sql["uncounted_segments"])).fetchall()
    recovered = 0
    for row in rows:
        segment_id = row["segment_id"]
        async with database.connection("owner") as connection, connection.transaction():
            if not await try_lock(connection, uuid_key(segment_id)):
                continue
            # Before any row: `index_settings.forget` holds this lock, then takes the table.
            await lock_shared(connection, Lock.WRITERS)
            still = await connection.execute(sql["lock_uncounted_segment"], {"segment_id": segment_id})
            if await still.fetchone() is None:
                continue  # counted meanwhile, by its writer or by another recovery
            await write_stored_segment(connection, segment_id)
            recovered += 1
    return recovered


async def after_write(database: Database) -> None:
    """Merge when there are many small segments."""
    await merge(database, MOST_SEGMENTS)


async def tidy(database: Database) -> None:
    """Merge as far as the sizes of the segments allow, and update the statistics of the planner."""
    while await merge(database, MOST_SEGMENTS):
        pass
    async with database.connection("owner") as connection:
        # Every search reads the entries of the indexes' pending lists one by one until they are merged.
        await connection.execute(queries("writing")["clean_pending_lists"])
        await connection.execute(queries("writing")["analyze"])
