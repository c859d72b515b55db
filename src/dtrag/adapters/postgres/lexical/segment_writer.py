"""Writes segments, and corrections for the documents that leave them, in the transaction of the caller."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Sequence

from psycopg.rows import DictRow

from dtrag.adapters.postgres.database import Connection
from dtrag.adapters.postgres.lexical.rows import (
    Pages,
    copy_pages,
    correction_parameters,
    forward_row,
    removed,
    segment_parameters,
)
from dtrag.adapters.postgres.queries import queries
from dtrag.core.ranking.segments import ForwardRow, build


async def write_segment(connection: Connection, segment_id: uuid.UUID, passages: Iterable[ForwardRow]) -> None:
    """Write the postings and the head of an open segment, and count it in the statistics."""
    segment, postings = await asyncio.to_thread(build, segment_id, passages)
    pages = Pages(segment_id)
    await copy_pages(connection, [*pages.rows(postings), *pages.last()])
    await connection.execute(queries("writing")["bump_generation"])
    await connection.execute(queries("writing")["count_segment"], segment_parameters(segment))


async def write_stored_segment(connection: Connection, segment_id: uuid.UUID) -> None:
    """`write_segment` from the stored passages of the documents that belong to the segment."""
    values = {"segment_id": segment_id}
    cursor = await connection.execute(queries("writing")["lexical_of_segment"], values, binary=True)
    await write_segment(connection, segment_id, map(forward_row, await cursor.fetchall()))


async def is_counted(connection: Connection, segment_id: uuid.UUID) -> bool:
    """Whether the statistics hold the documents of the segment: it was counted, or merged into another.

    Locks an uncounted segment until the transaction ends, so that it stays uncounted.
    """
    cursor = await connection.execute(queries("writing")["counted_segment"], {"segment_id": segment_id})
    row = await cursor.fetchone()
    return row is None or bool(row["counted"])


async def subtract(
    connection: Connection, document_id: uuid.UUID, segment_id: uuid.UUID, passages: Sequence[DictRow]
) -> None:
    """Take a document out of the statistics of its counted segment. `passages` hold terms, length and language."""
    if passages:
        correction = removed(document_id, segment_id, passages)
        await connection.execute(queries("writing")["add_correction"], correction_parameters(correction))
