"""Category trees as rows."""

from __future__ import annotations

from datetime import UTC, datetime

from dtrag.adapters.postgres.database import Connection
from dtrag.adapters.postgres.queries import queries
from dtrag.core.taxonomy.tree import Node, Taxonomy


async def active_tree(connection: Connection) -> Taxonomy:
    """The tree of the active version."""
    tree = await tree_of(connection, None)
    assert tree is not None  # noqa: S101 - the first migration activates a version
    return tree


async def tree_of(connection: Connection, version: str | None) -> Taxonomy | None:
    """The tree of a version (None: of the active one), or None for an unknown one."""
    rows = await (await connection.execute(queries("taxonomy")["tree"], {"version": version})).fetchall()
    if not rows:
        return None
    nodes = (Node(r["node_id"], r["parent_id"], r["name"], r["key"]) for r in rows if r["node_id"] is not None)
    return Taxonomy.of(rows[0]["version"], nodes)


async def place_tree(connection: Connection, taxonomy: Taxonomy) -> None:
    """Write the tree of a version; replaces its earlier rows."""
    sql, nodes = queries("taxonomy"), list(taxonomy.nodes.values())
    values = {"node_ids": [node.node_id for node in nodes], "parent_ids": [node.parent_id for node in nodes]}
    names = {"names": [node.name for node in nodes], "keys": [node.key for node in nodes]}
    await connection.execute(sql["drop_tree"], {"version": taxonomy.version})
    await connection.execute(sql["insert_nodes"], {"node_ids": values["node_ids"], "now": datetime.now(UTC)})
    await connection.execute(sql["insert_tree"], {"version": taxonomy.version, **values, **names})
