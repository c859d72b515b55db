"""What puts the index right after a crash and keeps it quick after many writes."""

from __future__ import annotations

import uuid

from dtrag.adapters.postgres.database import Connection, Database
from dtrag.adapters.postgres.lexical.merge import MOST_SEGMENTS, merge
from dtrag.adapters.postgres.lexical.rows import Pages, copy_pages, forward_row, segment_parameters
from dtrag.adapters.postgres.locks import Lock, lock_shared, try_lock
from dtrag.adapters.postgres.queries import queries
from dtrag.core.ranking.segments import build


async def recover(database: Database) -> int:
    """Build the segments that a crash left uncounted; returns how many. Batches in progress are left alone."""
    sql = queries("writing")
    async with database.connection("owner") as connection:
        rows = await (await connection.execute(sql["uncounted_segments"])).fetchall()
    recovered = 0
    for row in rows:
        segment_id = row["segment_id"]
        async with database.connection("owner") as connection, connection.transaction():
            if not await try_lock(connection, lock_key(segment_id)):
                continue
            # Before any row: `identity.forget` holds it, then takes the table.
            await lock_shared(connection, Lock.WRITERS)
            still = await connection.execute(sql["lock_uncounted_segment"], {"segment_id": segment_id})
            if await still.fetchone() is None:
                continue  # its writer, or another who recovers, was quicker
            await _build(connection, segment_id)
            recovered += 1
    return recovered


async def _build(connection: Connection, segment_id: uuid.UUID) -> None:
    """Count a batch from the rows of its documents."""
    sql = queries("writing")
    cursor = await connection.execute(sql["lexical_of_segment"], {"segment_id": segment_id}, binary=True)
    segment, postings = build(segment_id, map(forward_row, await cursor.fetchall()))
    pages = Pages(segment_id)
    await copy_pages(connection, [*pages.rows(postings), *pages.last()])
    await connection.execute(sql["bump_generation"])
    await connection.execute(sql["count_segment"], segment_parameters(segment))


async def after_write(database: Database) -> None:
    """Merge when many small segments have come together."""
    await merge(database, MOST_SEGMENTS)


async def tidy(database: Database) -> None:
    """After a run of writes: as few segments as their sizes allow, and what helps the planner."""
    while await merge(database, MOST_SEGMENTS):
        pass
    async with database.connection("owner") as connection:
        # Entries that wait in the indexes' pending lists are read one by one by every search until they are merged.
        await connection.execute(queries("writing")["clean_pending_lists"])
        await connection.execute(queries("writing")["analyze"])


def lock_key(identity: uuid.UUID) -> int:
    """A 64-bit key for PostgreSQL's advisory locks."""
    return int.from_bytes(identity.bytes[:8], "big", signed=True)
