"""The active taxonomy: read for every question, extended on ingest by the paths that documents name."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from dtrag.adapters.postgres.database import Connection, Database
from dtrag.adapters.postgres.queries import queries
from dtrag.core.taxonomy import ROOT, CategoryPath, Node, Taxonomy

TAXONOMY_LOCK = 7_203_114_002


class PostgresTaxonomy:
    """The taxonomy tables of one database."""

    def __init__(self, database: Database):
        self._database = database

    async def active(self) -> Taxonomy:
        """The active version."""
        async with self._database.connection("search") as connection:
            return await _active(connection)

    async def ensure(self, paths: Iterable[CategoryPath]) -> Taxonomy:
        """The active version with these paths in it; missing nodes are added, in one transaction of their own."""
        wanted = list(paths)
        taxonomy = await self.active()
        if all(taxonomy.find(path) is not None for path in wanted):
            return taxonomy
        async with self._database.connection("owner") as connection, connection.transaction():
            await connection.execute("select pg_advisory_xact_lock(%s)", (TAXONOMY_LOCK,))
            taxonomy = await _active(connection)
            nodes = dict(taxonomy.nodes)
            last = await (await connection.execute(queries("writing")["last_node"])).fetchone()
            next_id = (last["node_id"] if last else 0) + 1
            for path in wanted:
                parent = ROOT
                for name, key in zip(path.names, path.key, strict=True):
                    found = Taxonomy.of(taxonomy.version, nodes.values()).children.get(parent, {}).get(key)
                    if found is None:
                        found, next_id = next_id, next_id + 1
                        nodes[found] = Node(found, parent, name, key)
                        await _place(connection, taxonomy.version, nodes[found])
                    parent = found
            await connection.execute(queries("writing")["bump_generation"])
            return Taxonomy.of(taxonomy.version, nodes.values())


async def _active(connection: Connection) -> Taxonomy:
    rows: list[dict[str, Any]] = await (await connection.execute(queries("search")["taxonomy"])).fetchall()
    nodes = (Node(r["node_id"], r["parent_id"], r["name"], r["key"]) for r in rows if r["node_id"] is not None)
    return Taxonomy.of(rows[0]["version"], nodes)


async def _place(connection: Connection, version: str, node: Node) -> None:
    statements = queries("writing")
    await connection.execute(statements["insert_node"], {"node_id": node.node_id, "now": datetime.now(UTC)})
    await connection.execute(
        statements["place_node"],
        {
            "version": version,
            "node_id": node.node_id,
            "parent_id": node.parent_id,
            "name": node.name,
            "key": node.key,
        },
    )
