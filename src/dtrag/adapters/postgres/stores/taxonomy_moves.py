"""Hangs documents on other nodes, in the transaction of whoever decides it: rows and postings move together."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from dtrag.adapters.postgres.database import Connection
from dtrag.adapters.postgres.lexical import maintenance
from dtrag.adapters.postgres.lexical.rows import (
    Pages,
    copy_pages,
    correction_parameters,
    forward_row,
    removed,
    segment_parameters,
)
from dtrag.adapters.postgres.locks import Lock, lock_shared
from dtrag.adapters.postgres.queries import queries
from dtrag.core.ranking.segments import build
from dtrag.core.taxonomy.apply import successor
from dtrag.core.taxonomy.tree import UNCLASSIFIED


async def rehome(connection: Connection, moves: Mapping[uuid.UUID, int]) -> int:
    """Hang each document on its new node; returns how many were there. Inside the caller's transaction.

    The documents leave their segments by a correction and come back in a segment of their own, so that readers see
    them in the old place or in the new one.
    """
    sql, writing = queries("taxonomy_moves"), queries("writing")
    segment_id, moved = uuid.uuid4(), 0
    await lock_shared(connection, Lock.WRITERS)
    living = await living_nodes(connection, moves.values())
    for document_id in sorted(moves):
        name = {"document_id": document_id, "node_id": living[moves[document_id]], "segment_id": segment_id}
        await connection.execute(queries("locks")["transaction"], {"lock": maintenance.lock_key(document_id)})
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


async def living_nodes(connection: Connection, nodes: Collection[int]) -> dict[int, int]:
    """Each node with itself, or with the one that took its documents when it went; UNCLASSIFIED where none did.

    Under `Lock.WRITERS`: the answer holds for as long as it is kept.
    """
    sql = queries("taxonomy")
    found = await _living(connection, nodes)
    if all(node in found for node in nodes):
        return {node: node for node in nodes}
    rows = await (await connection.execute(sql["vacated"])).fetchall()
    succession = [{int(node): to for node, to in row["vacated"].items()} for row in rows]
    everyone = {node for step in succession for pair in step.items() for node in pair}
    found |= await _living(connection, everyone)
    return {node: successor(node, found, succession) for node in nodes}


async def _living(connection: Connection, nodes: Collection[int]) -> set[int]:
    rows = await (await connection.execute(queries("taxonomy")["living"], {"node_ids": sorted(set(nodes))})).fetchall()
    return {row["node_id"] for row in rows} | {UNCLASSIFIED}
