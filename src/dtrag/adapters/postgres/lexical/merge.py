"""Merges segments: several become one, without deleted documents, and the corrections are folded. Recovers others.

Sizes are kept geometric (a segment is larger than all smaller ones together, O'Neil et al. 1996, *The log-structured
merge-tree*): a passage is merged about log2(n) times, and n passages lie in about log2(n) segments at most.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from psycopg.rows import DictRow

from dtrag.adapters.postgres.database import Connection, Database, fetch, fetch_row
from dtrag.adapters.postgres.lexical import posting_files
from dtrag.adapters.postgres.lexical.posting_files import join_tables, name_of, read_heads, read_table, write_table
from dtrag.adapters.postgres.lexical.rows import (
    Correction,
    correction_of,
    correction_parameters,
    segment_parameters,
    write_stored_segment,
)
from dtrag.adapters.postgres.queries import Lock, lock_shared, queries, try_lock, uuid_key
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.ranking.segments import Segment, merged, whole

Name = TypeVar("Name")
MOST_SEGMENTS = 16
"""Small segments that may accumulate before a merge; every search reads each of them."""
LARGEST = 262_144
"""Passages of a segment that is not merged any more: about 100 MB of postings."""
MOST_CORRECTIONS = 256
"""More of them are folded into one: every reader loads each row."""
WORN_SHARE = 0.2
"""A segment with a larger share of deleted passages is rewritten without them."""
LONGEST_CORRECTED = timedelta(hours=1)
"""After this time a segment is rewritten without deleted documents, however few they are."""


async def merge(database: Database, most: int) -> bool:
    """Merge when there are more than `most` segments or too many corrections; whether anything was done.

    Does nothing while another process merges.
    """
    sql = queries("writing")
    async with database.connection("owner") as connection:
        async with connection.transaction():
            if not await try_lock(connection, Lock.MERGE):
                return False
            # Heads, corrections and the rows of the passages at one moment: what is deleted afterwards is in neither.
            async with connection.attended(), database.own_connection("search") as reading, reading.transaction():
                await reading.execute(queries("session")["read_one_state"])
                corrections = await _corrections(reading)
                inputs = await _inputs(reading, corrections, most)
                if not inputs and len(corrections) <= MOST_CORRECTIONS:
                    return False
                head, dropped = await _merged(database, reading, inputs, corrections)
            await connection.execute(sql["drop_segments"], {"segment_ids": [segment.segment_id for segment in inputs]})
            if len(head):
                name = {"segment_id": head.segment_id}
                await connection.execute(sql["open_segment"], {**name, "now": datetime.now(UTC)})
                await connection.execute(sql["count_segment"], segment_parameters(head))
            await _fold(connection, inputs, corrections, dropped)
            await connection.execute(sql["bump_generation"])
        await connection.execute(sql["vacuum_segments"])
    if database.files is not None:
        await asyncio.to_thread(database.files.remove, {name_of(segment.segment_id) for segment in inputs})
    return True


async def _inputs(connection: Connection, corrections: Sequence[Correction], most: int) -> list[Segment]:
    """The heads of the segments to merge, none when no merge is needed."""
    rows = await fetch(connection, queries("search")["segment_sizes"])
    sizes = {row["segment_id"]: row["passages"] for row in rows}
    overdue = any(datetime.now(UTC) - row.created_at > LONGEST_CORRECTED for row in corrections)
    chosen = chosen_for_merge(sizes, most)
    worn = await _worn(connection, sizes, corrections, chosen, 0.0 if overdue else WORN_SHARE)
    return sorted(await read_heads(connection, [*chosen, *worn]), key=len)


def chosen_for_merge(sizes: Mapping[Name, int], most: int) -> list[Name]:
    """Which segments to merge, given their sizes in passages, ascending; none when no merge is needed.

    The longest prefix whose last member is not larger than all before it together; beyond `most` segments at least the
    smaller half.
    """
    small = [name for name, size in sizes.items() if size <= LARGEST // 2]
    before, end = 0, 0
    for place, name in enumerate(small):
        if place and sizes[name] <= before:
            end = place + 1
        before += sizes[name]
    if len(small) > most:
        end = max(end, len(small) // 2)
    chosen: list[Name] = []
    for name in small[:end]:
        if sum(sizes[other] for other in chosen) + sizes[name] > LARGEST:
            break
        chosen.append(name)
    return chosen if len(chosen) > 1 else []


async def _worn(
    connection: Connection,
    sizes: Mapping[uuid.UUID, int],
    corrections: Sequence[Correction],
    chosen: Sequence[uuid.UUID],
    share: float,
) -> list[uuid.UUID]:
    """Other segments with a larger share of deleted passages, as many as fit beside the `chosen`; of the largest, one.

    Rewriting them, even alone, makes them smaller.
    """
    gone = [document for correction in corrections for document in correction.documents]
    if -sum(correction.statistics.chunks for correction in corrections) <= share * sum(sizes.values()):
        return []
    worn, total = [], sum(sizes[key] for key in chosen)
    for segment in await read_heads(connection, sizes.keys() - chosen):
        lost = int(segment.documents["chunks"][segment.rows_of(gone)].sum())
        if lost > share * len(segment) and (not total or total + len(segment) - lost <= LARGEST):
            worn.append(segment.segment_id)
            total += len(segment) - lost
    return worn


async def _merged(
    database: Database, connection: Connection, inputs: Sequence[Segment], corrections: Sequence[Correction]
) -> tuple[Segment, LexicalStatistics]:
    """The head of the inputs as one segment, and the statistics of the deleted documents. Writes its file.

    The file is there before other processes know of the segment, so that none has to wait for it.
    """
    gone = [document for correction in corrections for document in correction.documents]
    removed = [segment.rows_of(gone) for segment in inputs]
    head = await asyncio.to_thread(merged, uuid.uuid4(), inputs, removed)
    any_removed, files, dropped = any(map(len, removed)), database.files, LexicalStatistics()
    is_large = files is not None and len(head) >= posting_files.SMALLEST
    if any_removed:
        head, table = (await read_table(connection, head)).without_absent(head)
        every = LexicalStatistics.merged([segment.statistics() for segment in inputs])
        dropped = every.without(head.statistics())
    elif files is not None and is_large:
        table = await join_tables(connection, files, head, inputs)
    if files is not None and is_large:
        await asyncio.to_thread(write_table, files, head, table)
    return head, dropped


async def _fold(
    connection: Connection, inputs: Sequence[Segment], corrections: Sequence[Correction], dropped: LexicalStatistics
) -> None:
    """Replace all corrections by one, without the documents of the inputs."""
    if not corrections:
        return
    sql = queries("writing")
    left = [document for correction in corrections for document in correction.documents]
    for segment in inputs:
        here = set(_identities(segment, segment.rows_of(left)))
        left = [document for document in left if document not in here]
    await connection.execute(sql["drop_corrections"], {"correction_ids": [row.correction_id for row in corrections]})
    statistics = LexicalStatistics.merged([*(correction.statistics for correction in corrections), dropped])
    if left:
        first = min(correction.created_at for correction in corrections)
        folded = Correction(uuid.uuid4(), tuple(left), statistics, first)
        await connection.execute(sql["add_correction"], correction_parameters(folded))


def _identities(segment: Segment, rows: NDArray[np.intp]) -> list[tuple[uuid.UUID, uuid.UUID]]:
    return [(whole(row["document_id"]), whole(row["origin"])) for row in segment.documents[rows]]


async def _corrections(connection: Connection) -> list[Correction]:
    ids: list[DictRow] = await fetch(connection, queries("search")["correction_ids"])
    values = {"correction_ids": [row["correction_id"] for row in ids]}
    rows = await (await connection.execute(queries("search")["corrections"], values, binary=True)).fetchall()
    return [correction_of(row) for row in rows]


async def recover(database: Database) -> int:
    """Write the segments that a crash left uncounted; returns how many. Batches in progress keep theirs."""
    sql = queries("writing")
    async with database.connection("owner") as connection:
        rows = await fetch(connection, sql["uncounted_segments"])
    recovered = 0
    for row in rows:
        segment_id = row["segment_id"]
        async with database.connection("owner") as connection, connection.transaction():
            if not await try_lock(connection, uuid_key(segment_id)):
                continue
            # Before any row: `index_settings.forget` holds this lock, then takes the table.
            await lock_shared(connection, Lock.WRITERS)
            if await fetch_row(connection, sql["lock_uncounted_segment"], {"segment_id": segment_id}) is None:
                continue  # counted meanwhile, by its writer or by another recovery
            await write_stored_segment(connection, segment_id)
            recovered += 1
    return recovered


async def merge_all(database: Database) -> None:
    """Merge as far as the sizes of the segments and the times of the corrections allow."""
    while await merge(database, MOST_SEGMENTS):
        pass


async def tidy(database: Database) -> None:
    """`merge_all`, and update the statistics of the planner."""
    await merge_all(database)
    async with database.connection("owner") as connection:
        # Every search reads the entries of the indexes' pending lists one by one until they are merged.
        await connection.execute(queries("writing")["clean_pending_lists"])
        await connection.execute(queries("writing")["analyze"])
