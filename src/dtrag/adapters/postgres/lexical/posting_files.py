"""The postings of large segments as mapped files, made from their pages by any process that misses them.

Every posting of a segment is in its file, whatever the scope: as in the pages, the reader selects what a caller may
see. A deleted document leaves the file when its segment is merged (`merge.py`).
"""

from __future__ import annotations

import asyncio
import uuid

from dtrag.adapters.postgres.database import Connection, Database, fetch
from dtrag.adapters.postgres.lexical.rows import cut_run, pages_of, segment_of
from dtrag.adapters.postgres.queries import queries
from dtrag.adapters.postgres.search_files import SearchFiles
from dtrag.core.ranking.bm25 import K1, B
from dtrag.core.ranking.posting_table import PostingTable
from dtrag.core.ranking.segments import FREQUENCY_UNIT, Segment

SMALLEST = 2_000
"""Passages of a segment with a file. A process reads all postings of a smaller one: less than a megabyte."""
PART_POSTINGS = 1_000_000
"""Postings that are read from the pages at a time: 5 MB."""
_PREFIX = "postings-"
_FORMULA = [K1, B, FREQUENCY_UNIT]
"""What the stored bounds depend on."""


def open_table(files: SearchFiles, segment: Segment) -> PostingTable | None:
    """The postings of a segment, mapped; None without a usable file. Reads all of the file."""
    name = _name(segment.segment_id)
    mapped = files.open(name) if len(segment) >= SMALLEST else None
    if mapped is None:
        return None
    if mapped.facts["formula"] != _FORMULA or len(mapped.arrays["starts"]) != len(segment.term_ids):
        files.remove({name})
        return None
    return PostingTable(**mapped.arrays, means=mapped.facts["means"])


async def make_files(database: Database) -> None:
    """Write the missing files of all segments, and remove those of segments that were merged away."""
    files = database.files
    if files is None:
        return
    # Listed before the segments: what another process adds for a newer segment stays.
    present = {name for name in await asyncio.to_thread(files.names) if name.startswith(_PREFIX)}
    async with database.connection("search") as connection:
        rows = await fetch(connection, queries("search")["segment_sizes"])
    sizes = {row["segment_id"]: row["passages"] for row in rows}
    await asyncio.to_thread(files.remove, present - set(map(_name, sizes)))
    for segment_id, passages in sizes.items():
        if passages >= SMALLEST and _name(segment_id) not in present:
            await _make_file(database, files, segment_id)


async def _make_file(database: Database, files: SearchFiles, segment_id: uuid.UUID) -> None:
    """Write the file of one segment, unless a merge removes the segment before its pages were read."""
    async with database.own_connection("search") as connection:
        cursor = await connection.execute(queries("search")["segments"], {"segment_ids": [segment_id]}, binary=True)
        row = await cursor.fetchone()
        segment = None if row is None else segment_of(row)
        table = None if segment is None else await read_table(connection, segment)
    if table is not None:
        arrays = {name: getattr(table, name) for name in ("starts", "chunks", "frequencies", "dense", "highest")}
        facts = {"means": table.means, "formula": _FORMULA}
        await asyncio.to_thread(files.write, _name(segment_id), arrays, facts)


async def read_table(connection: Connection, segment: Segment) -> PostingTable | None:
    """The postings of a segment from its pages; None when the segment was merged away."""
    table = await asyncio.to_thread(PostingTable.empty, segment)
    for part in PostingTable.parts(segment, PART_POSTINGS):
        span = int(segment.offsets[part[0]]), int(segment.offsets[part[1]])
        pages = pages_of(span)
        values = {"segment_id": segment.segment_id, "first": pages[0], "last": pages[-1]}
        cursor = await connection.execute(queries("search")["page_run"], values, binary=True)
        postings = [row["postings"] for row in await cursor.fetchall()]
        if len(postings) < len(pages):
            return None
        await asyncio.to_thread(table.take, segment, part, cut_run(span, postings))
    return table


def _name(segment_id: uuid.UUID) -> str:
    return f"{_PREFIX}{segment_id}"
