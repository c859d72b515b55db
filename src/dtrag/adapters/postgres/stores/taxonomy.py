"""`TaxonomyStore` in PostgreSQL: the active tree, the categories that an ingest adds, and versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from psycopg.types.json import Jsonb

from dtrag.adapters.postgres.database import Connection, Database, fetch, fetch_row
from dtrag.adapters.postgres.queries import Lock, lock, queries
from dtrag.adapters.postgres.stores import taxonomy_activation
from dtrag.adapters.postgres.stores.taxonomy_activation import Kind
from dtrag.adapters.postgres.stores.taxonomy_moves import active_tree, place_tree, tree_of
from dtrag.core.access.scope import Grant
from dtrag.core.access.taxonomy_impact import Grantee, Preview, TreeVersion
from dtrag.core.taxonomy.apply import applied
from dtrag.core.taxonomy.grades import Grades
from dtrag.core.taxonomy.operations import Operation, operations
from dtrag.core.taxonomy.tree import ROOT, CategoryPath, Node, Taxonomy
from dtrag.core.taxonomy.versions import next_version, parse_version
from dtrag.errors import Advice, Conflict, NotFound


class PostgresTaxonomy:
    """The taxonomy tables of one database. `terms` gives the ids of the terms of a text, for splits by keywords.

    `public` are the branches of callers without a key, whose access a new version may change, too. `grades` are those
    that a new version may lower.
    """

    def __init__(
        self,
        database: Database,
        terms: Callable[[str], list[int]] = lambda text: [],
        public: Callable[[], Grant | None] = lambda: None,
        grades: Grades = Grades(),
    ):
        self._database = database
        self._terms = terms
        self._grades = grades
        self._public = public

    async def active(self) -> Taxonomy:
        """The active version."""
        async with self._database.connection("search") as connection:
            return await active_tree(connection)

    async def tree(self, version: str) -> Taxonomy | None:
        """The tree of a version, or None."""
        async with self._database.connection("search") as connection:
            return await tree_of(connection, version)

    async def versions(self) -> list[TreeVersion]:
        """All versions, the newest first."""
        async with self._database.connection("owner") as connection:
            rows = await fetch(connection, queries("taxonomy")["versions"])
        return [TreeVersion(**{**row, "operations": _stored_operations(row["operations"])}) for row in rows]

    async def propose(
        self,
        operations: Sequence[Operation],
        rationale: str,
        parent: str | None,
        version: str | None,
        *,
        by: str,
        now: datetime,
    ) -> TreeVersion:
        """Store the result of the operations on the parent (None: the active version) as a version that is not active.

        Raises `InvalidInput` for impossible operations, `NotFound` for the parent, `Conflict` for a taken number.
        """
        sql = queries("taxonomy")
        async with self._database.connection("owner") as connection, connection.transaction():
            await lock(connection, Lock.TAXONOMY)
            base = await tree_of(connection, parent)
            if base is None:
                raise NotFound(f"There is no version {str(parent)[:40]!r}.", Advice.LIST_VERSIONS)
            taken = {row["version"] for row in await fetch(connection, sql["versions"])}
            number = version or next_version(base.version, {operation.kind for operation in operations}, taken)
            parse_version(number)
            if number in taken:
                raise Conflict(f"There is a version {number} already. Leave the number out, or take another.")
            grown = applied(base, operations, number, await _next_id(connection))
            values = {"version": number, "parent": base.version, "rationale": rationale, "by": by, "now": now}
            stored = Jsonb([operation.as_json() for operation in grown.operations])
            await connection.execute(sql["insert_version"], {**values, "operations": stored})
            await place_tree(connection, grown.taxonomy)
        return TreeVersion(number, base.version, rationale, False, grown.operations, by, now, None)

    async def preview(self, version: str, kind: Kind, now: datetime) -> Preview:
        """The effect of activating the version. Raises `NotFound` and `Conflict`."""
        return await taxonomy_activation.preview(
            self._database, version, kind, self._terms, now, grades=self._grades, grantees=self._grantees()
        )

    async def bring_in(
        self, version: str, kind: Kind, allowed: Callable[[Preview], None], *, by: str, now: datetime
    ) -> Preview:
        """Activate the version; nothing changes when `allowed` raises. Raises `NotFound` and `Conflict`."""
        return await taxonomy_activation.bring_in(
            self._database,
            version,
            kind,
            self._terms,
            allowed,
            by=by,
            now=now,
            grades=self._grades,
            grantees=self._grantees(),
        )

    def _grantees(self) -> tuple[Grantee, ...]:
        public = self._public()
        return () if public is None else (Grantee("public", "public", public),)

    async def counts(self) -> dict[int, int]:
        """Documents on each node; only nodes that have some."""
        async with self._database.connection("owner") as connection:
            rows = await fetch(connection, queries("taxonomy")["counts"])
        return {row["node_id"]: row["documents"] for row in rows}

    async def ensure(self, paths: Iterable[CategoryPath]) -> Taxonomy:
        """The active version with these paths in it; missing nodes are added, in one transaction of their own."""
        required = list(paths)
        taxonomy = await self.active()
        if all(taxonomy.find(path) is not None for path in required):
            return taxonomy
        async with self._database.connection("owner") as connection, connection.transaction():
            await lock(connection, Lock.TAXONOMY)
            taxonomy = await active_tree(connection)
            nodes = dict(taxonomy.nodes)
            next_id = await _next_id(connection)
            for path in required:
                parent = ROOT
                for name, key in zip(path.names, path.key, strict=True):
                    node_id = Taxonomy.of(taxonomy.version, nodes.values()).children.get(parent, {}).get(key)
                    if node_id is None:
                        node_id, next_id = next_id, next_id + 1
                        nodes[node_id] = Node(node_id, parent, name, key)
                        await _place(connection, taxonomy.version, nodes[node_id])
                    parent = node_id
            await connection.execute(queries("writing")["bump_generation"])
            return Taxonomy.of(taxonomy.version, nodes.values(), taxonomy.sources)


async def _next_id(connection: Connection) -> int:
    last = await fetch_row(connection, queries("writing")["last_node"])
    return (last["node_id"] if last else 0) + 1


def _stored_operations(rows: object) -> tuple[Operation, ...]:
    return operations(rows) if rows else ()


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
