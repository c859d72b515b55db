"""Category trees as rows, and documents that move to another category."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from datetime import UTC, datetime

from psycopg.rows import DictRow

from dtrag.adapters.postgres import editions
from dtrag.adapters.postgres.database import Connection, fetch, fetch_row
from dtrag.adapters.postgres.lexical.rows import is_counted, subtract, write_stored_segment
from dtrag.adapters.postgres.queries import Lock, lock, lock_shared, queries, uuid_key
from dtrag.adapters.postgres.stores.vectors import next_change
from dtrag.core.source_rights import Rights, SourceAccess
from dtrag.core.taxonomy.apply import successor
from dtrag.core.taxonomy.tree import UNCLASSIFIED, Node, Taxonomy


async def active_tree(connection: Connection) -> Taxonomy:
    """The tree of the active version."""
    tree = await tree_of(connection, None)
    assert tree is not None  # noqa: S101 - the first migration activates a version
    return tree


async def tree_of(connection: Connection, version: str | None) -> Taxonomy | None:
    """The tree of a version (None: of the active one), or None for an unknown one."""
    rows = await fetch(connection, queries("taxonomy")["tree"], {"version": version})
    if not rows:
        return None
    nodes = (
        Node(r["node_id"], r["parent_id"], r["name"], r["key"], r["grade"]) for r in rows if r["node_id"] is not None
    )
    return Taxonomy.of(rows[0]["version"], nodes, await _source_access(connection))


async def _source_access(connection: Connection) -> list[SourceAccess]:
    """Part of every tree, so that no read resolves a scope without it."""
    sql = queries("sources")
    restricted = await fetch(connection, sql["restricted"])
    groups = await fetch(connection, sql["groups"]) if restricted else []
    result = []
    for origin in {row["origin"] for row in restricted}:
        groups_of: dict[str, set[str]] = {}
        own = [row for row in groups if row["origin"] == origin]
        for row in own:
            for name in row["users"]:
                groups_of.setdefault(name, set()).add(row["principal"])
        source = SourceAccess(
            {row["node_id"]: Rights.from_json(row["rights"]) for row in restricted if row["origin"] == origin},
            {name: frozenset(names) for name, names in groups_of.items()},
            frozenset(row["principal"] for row in own if not row["complete"]),
        )
        result.append(source)
    return result


async def place_tree(connection: Connection, taxonomy: Taxonomy) -> None:
    """Write the tree of a version; replaces its earlier rows."""
    sql, nodes = queries("taxonomy"), list(taxonomy.nodes.values())
    values = {"node_ids": [node.node_id for node in nodes], "parent_ids": [node.parent_id for node in nodes]}
    names = {"names": [node.name for node in nodes], "keys": [node.key for node in nodes]}
    names["grades"] = [node.grade for node in nodes]
    await connection.execute(sql["drop_tree"], {"version": taxonomy.version})
    await connection.execute(sql["insert_nodes"], {"node_ids": values["node_ids"], "now": datetime.now(UTC)})
    await connection.execute(sql["insert_tree"], {"version": taxonomy.version, **values, **names})


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
        origin = await fetch_row(connection, queries("writing")["origin"], values)
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
        values = {"change": await next_change(connection), "document_ids": [row["document_id"] for row in moved]}
        await connection.execute(statements["follow_segment"], values)
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
    rows = await fetch(connection, sql["vacated"])
    succession = [{int(node): to for node, to in row["vacated"].items()} for row in rows]
    living |= await _living(connection, {node for step in succession for pair in step.items() for node in pair})
    return {node: successor(node, living, succession) for node in nodes}


async def _living(connection: Connection, nodes: Collection[int]) -> set[int]:
    rows = await fetch(connection, queries("taxonomy")["living"], {"node_ids": sorted(set(nodes))})
    return {row["node_id"] for row in rows} | {UNCLASSIFIED}
