"""Moves documents to other nodes, in the transaction of the caller: rows and postings move together."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from datetime import UTC, datetime

from psycopg.rows import DictRow

from dtrag.adapters.postgres import editions
from dtrag.adapters.postgres.database import Connection
from dtrag.adapters.postgres.lexical.segment_writer import is_counted, subtract, write_stored_segment
from dtrag.adapters.postgres.locks import Lock, lock, lock_shared, uuid_key
from dtrag.adapters.postgres.queries import queries
from dtrag.core.taxonomy.apply import successor
from dtrag.core.taxonomy.tree import UNCLASSIFIED


async def rehome(connection: Connection, moves: Mapping[uuid.UUID, int]) -> int:
    """Move each document to its new node, in the caller's transaction; returns how many documents existed.

    A correction takes the documents out of their segments, and a new segment holds them: readers see each document on
    the old node or on the new one.
    """
    statements, segment_id = queries("taxonomy_moves"), uuid.uuid4()
    moved: list[DictRow] = []
    await lock_shared(connection, Lock.WRITERS)
    living = await living_nodes(connection, moves.values())
    for document_id in sorted(moves):
        values = {"document_id": document_id, "node_id": living[moves[document_id]], "segment_id": segment_id}
        await lock(connection, uuid_key(document_id))
        origin = await (await connection.execute(queries("writing")["origin"], values)).fetchone()
        if origin is None:
            continue
        if not moved:
            await connection.execute(queries("writing")["open_segment"], {**values, "now": datetime.now(UTC)})
        moved.append(origin)
        counted = await is_counted(connection, origin["segment_id"])
        await connection.execute(statements["move_document"], values)
        if counted:
            passages = await connection.execute(statements["lexical_of_document"], values, binary=True)
            await subtract(connection, document_id, origin["segment_id"], await passages.fetchall())
    if moved:
        await write_stored_segment(connection, segment_id)
        await editions.moved(connection, moved, {*living.values(), *(origin["node_id"] for origin in moved)})
    return len(moved)


async def living_nodes(connection: Connection, nodes: Collection[int]) -> dict[int, int]:
    """Node -> itself, or for a deleted node the one that took its documents; UNCLASSIFIED where none did.

    The caller holds `Lock.WRITERS`, and the result is valid for as long.
    """
    sql = queries("taxonomy")
    living = await _living(connection, nodes)
    if all(node in living for node in nodes):
        return {node: node for node in nodes}
    rows = await (await connection.execute(sql["vacated"])).fetchall()
    succession = [{int(node): to for node, to in row["vacated"].items()} for row in rows]
    living |= await _living(connection, {node for step in succession for pair in step.items() for node in pair})
    return {node: successor(node, living, succession) for node in nodes}


async def _living(connection: Connection, nodes: Collection[int]) -> set[int]:
    rows = await (await connection.execute(queries("taxonomy")["living"], {"node_ids": sorted(set(nodes))})).fetchall()
    return {row["node_id"] for row in rows} | {UNCLASSIFIED}
