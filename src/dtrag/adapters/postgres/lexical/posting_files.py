"""The postings of large segments as mapped files, made from the rows of their passages by any process that misses them.

Every posting of a segment is in its file, whatever the scope: the reader selects what a caller may see. A deleted
document leaves the file when its segment is merged (`merge.py`).
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import numpy as np

from dtrag.adapters.postgres.database import Connection, Database, fetch, fetch_row
from dtrag.adapters.postgres.lexical.rows import read_terms, segment_of
from dtrag.adapters.postgres.queries import Lock, queries, try_lock, uuid_key
from dtrag.adapters.postgres.search_files import SearchFiles
from dtrag.core.ranking.bm25 import K1, B
from dtrag.core.ranking.posting_table import PostingTable
from dtrag.core.ranking.segments import FREQUENCY_UNIT, Segment
from dtrag.errors import DatabaseDamaged

SMALLEST = 2_000
"""Passages of a segment with a file. A process reads all postings of a smaller one: less than a megabyte."""
PART_PASSAGES = 5_000
"""Passages whose terms are read at a time: about 3 MB, and .1 s."""
POLL_S = 0.05
"""How often a process looks whether another one has made a file."""
_PREFIX = "postings-"
_FORMULA = [3, K1, B, FREQUENCY_UNIT]
"""Number of the layout, and what the stored bounds depend on."""
_ARRAYS = ("starts", "counts", "chunks", "frequencies", "dense", "highest", "absent")


def open_table(files: SearchFiles, segment: Segment) -> PostingTable | None:
    """The postings of a segment, mapped; None without a usable file. Reads all of the file."""
    name = name_of(segment.segment_id)
    mapped = files.open(name) if len(segment) >= SMALLEST else None
    if mapped is None:
        return None
    if mapped.facts["formula"] != _FORMULA or len(mapped.arrays["starts"]) != len(segment.term_ids):
        files.remove({name})
        return None
    return PostingTable(**mapped.arrays, means=mapped.facts["means"])


def write_table(files: SearchFiles, segment: Segment, table: PostingTable) -> None:
    """Write the file of a segment, if the disk permits."""
    arrays = {name: getattr(table, name) for name in _ARRAYS}
    files.write(name_of(segment.segment_id), arrays, {"means": table.means, "formula": _FORMULA})


async def read_table(connection: Connection, segment: Segment) -> PostingTable:
    """The postings of a segment from the rows of its passages; also of one that a merge has removed meanwhile.

    Raises `DatabaseDamaged` when rows and segment contradict each other.
    """
    table = await asyncio.to_thread(PostingTable.empty, segment)
    await _take_rows(connection, segment, table, range(len(segment.documents)))
    return table


async def join_tables(
    connection: Connection, files: SearchFiles, segment: Segment, inputs: Sequence[Segment]
) -> PostingTable:
    """As `read_table`, for a segment of all documents of the inputs, in this order: from those files that there are."""
    table = await asyncio.to_thread(PostingTable.empty, segment)
    begin = beyond = passages = 0
    for part in inputs:
        known = await asyncio.to_thread(open_table, files, part)
        if known is not None and not known.lacks(None):
            await _take_rows(connection, segment, table, range(begin, beyond))
            with _damage():
                await asyncio.to_thread(table.append, segment, part, known, passages)
            begin = beyond + len(part.documents)
        beyond += len(part.documents)
        passages += len(part)
    await _take_rows(connection, segment, table, range(begin, beyond))
    return table


async def _take_rows(connection: Connection, segment: Segment, table: PostingTable, rows: range) -> None:
    """Take the terms of these documents of a segment into its table."""
    if not rows:
        return
    begin, end = segment.first[rows.start], segment.first[rows[-1]] + 1
    edges = np.searchsorted(segment.first, np.arange(begin, end, PART_PASSAGES))
    edges = np.unique([*edges.tolist(), rows.stop]).tolist()
    taking: list[Coroutine[Any, Any, None]] = []
    with _damage():
        for first, beyond in itertools.pairwise(edges):
            passages, *_ = await asyncio.gather(read_terms(connection, segment, range(first, beyond)), *taking)
            taking = [asyncio.to_thread(table.take, segment, passages)]
        await asyncio.gather(*taking)


@contextmanager
def _damage() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise DatabaseDamaged(reason=f"in the index of words, {error}.") from error


@asynccontextmanager
async def alone(connection: Connection, segment: Segment) -> AsyncIterator[None]:
    """No other process makes the file of this segment meanwhile: reading the rows takes seconds of all processors."""
    statements, values = queries("locks"), {"lock": uuid_key(segment.segment_id)}
    async with connection.armed():
        # Not by waiting for the lock: that is a statement, and statements have a time limit.
        while not ((row := await fetch_row(connection, statements["try_session"], values)) and row["free"]):  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)
        try:
            async with connection.attended():
                yield
        finally:
            if not connection.closed:
                await connection.execute(statements["release"], values)


async def make_files(database: Database) -> None:
    """Write the missing files of all segments, and remove those of segments that are there no more."""
    files = database.files
    if files is None:
        return
    async with database.own_connection("search") as connection:
        async with connection.transaction():
            # A merge in progress has written the file of a segment that is not there yet.
            if not await try_lock(connection, Lock.MERGE):
                return
            rows = await fetch(connection, queries("search")["segment_sizes"])
            present = {name for name in await asyncio.to_thread(files.names) if name.startswith(_PREFIX)}
            await asyncio.to_thread(files.remove, present - {name_of(row["segment_id"]) for row in rows})
        for row in rows:
            if row["passages"] >= SMALLEST and name_of(row["segment_id"]) not in present:
                for segment in await read_heads(connection, [row["segment_id"]]):
                    async with alone(connection, segment):
                        if await asyncio.to_thread(open_table, files, segment) is None:
                            await asyncio.to_thread(write_table, files, segment, await read_table(connection, segment))


async def read_heads(connection: Connection, segment_ids: Iterable[uuid.UUID]) -> list[Segment]:
    """The heads of these segments, of those that are there."""
    values = {"segment_ids": list(segment_ids)}
    cursor = await connection.execute(queries("search")["segments"], values, binary=True)
    return [segment_of(row) for row in await cursor.fetchall()]


def name_of(segment_id: uuid.UUID) -> str:
    """The name of the file of a segment."""
    return f"{_PREFIX}{segment_id}"
