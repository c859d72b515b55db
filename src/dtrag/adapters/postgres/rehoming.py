"""Hangs documents on other nodes, in the transaction of whoever decides it: rows and postings move together."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from dtrag.adapters.postgres import upkeep
from dtrag.adapters.postgres.database import Connection
from dtrag.adapters.postgres.queries import queries
from dtrag.adapters.postgres.segments import (
    Pages,
    copy_pages,
    correction_parameters,
    forward_row,
    removed,
    segment_parameters,
)
from dtrag.core.segments import build


async def rehome(connection: Connection, moves: Mapping[uuid.UUID, int]) -> int:
    """Hang each document on its new node; returns how many were there. Inside the caller's transaction.

    The documents leave their segments by a correction and come back in a segment of their own, so that readers see
    them in the old place or in the new one.
    """
    sql, writing = queries("rehoming"), queries("writing")
    segment_id, moved = uuid.uuid4(), 0
    for document_id in sorted(moves):
        name = {"document_id": document_id, "node_id": moves[document_id], "segment_id": segment_id}
        await connection.execute(writing["lock_name"], {"key": upkeep.lock_key(document_id)})
        found = await (await connection.execute(writing["origin"], name)).fetchone()
        if found is None:
            continue
        if not moved:
            await connection.execute(writing["open_segment"], {**name, "now": datetime.now(UTC)})
        moved += 1
        origin = {"segment_id": found["segment_id"]}
        segment = await (await connection.execute(writing["counted_segment"], origin)).fetchone()
        await connection.execute(sql["move_document"], name)
        rows: list[dict[str, Any]] = await (
            await connection.execute(sql["lexical_of_document"], name, binary=True)
        ).fetchall()
        if rows and (segment is None or segment["counted"]):
            correction = removed(document_id, found["segment_id"], rows)
            await connection.execute(writing["add_correction"], correction_parameters(correction))
    if moved:
        rows = await (
            await connection.execute(writing["lexical_of_segment"], {"segment_id": segment_id}, binary=True)
        ).fetchall()
        segment_built, postings = build(segment_id, map(forward_row, rows))
        pages = Pages(segment_id)
        await copy_pages(connection, [*pages.rows(postings), *pages.last()])
        await connection.execute(writing["count_segment"], segment_parameters(segment_built))
        await connection.execute(writing["bump_generation"])
    return moved
