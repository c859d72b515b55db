"""What is known of the files of sources, and the categories that the rights of a source restrict."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import blake2b

from psycopg.types.json import Jsonb

from dtrag.adapters.postgres.database import Store, fetch_row
from dtrag.adapters.postgres.queries import queries
from dtrag.adapters.postgres.stores.taxonomy_moves import rehome
from dtrag.core.source_rights import Membership, Rights
from dtrag.errors import Conflict
from dtrag.ports import StoredItem

MOVED_AT_ONCE = 200
"""Documents in one transaction: each takes a lock."""


class PostgresSources(Store):
    """`SourceStore` over the tables source_items, source_nodes and source_groups."""

    subject = "sources"

    @asynccontextmanager
    async def alone(self, origin: str) -> AsyncIterator[None]:
        """See `SourceStore`."""
        key = int.from_bytes(blake2b(origin.encode(), digest_size=8).digest(), "big", signed=True)
        async with self._database.own_connection("owner") as connection:
            row = await fetch_row(connection, queries("locks")["try_session"], {"lock": key})
            if row is None or not row["free"]:
                raise Conflict(f"{origin} is being read already. Wait until that has ended.")
            yield

    async def items(self, origin: str) -> list[StoredItem]:
        """See `SourceStore`."""
        return [StoredItem(**row) for row in await self._rows("items", {"origin": origin})]

    async def others_on(self, nodes: Collection[int], origin: str) -> int:
        """See `SourceStore`."""
        row = await self._row("others_on", {"node_ids": sorted(nodes), "origin": origin})
        return int(row["documents"]) if row else 0

    async def misplaced(self, places: Mapping[uuid.UUID, int]) -> dict[uuid.UUID, int]:
        """See `SourceStore`."""
        values = {"source_ids": list(places), "node_ids": list(places.values())}
        return {row["document_id"]: row["node_id"] for row in await self._rows("misplaced", values)}

    async def move(self, moves: Mapping[uuid.UUID, int]) -> None:
        """See `SourceStore`."""
        documents = sorted(moves)
        for start in range(0, len(documents), MOVED_AT_ONCE):
            page = {document: moves[document] for document in documents[start : start + MOVED_AT_ONCE]}
            async with self._database.connection("owner") as connection, connection.transaction():
                await rehome(connection, page)

    async def restrict(self, origin: str, rights: Mapping[int, Rights]) -> None:
        """See `SourceStore`."""
        async with self._database.connection("owner") as connection, connection.transaction():
            for node, stated in rights.items():
                values = {"node_id": node, "origin": origin, "rights": Jsonb(stated.as_json())}
                await connection.execute(self._sql["restrict"], values)
            await connection.execute(queries("writing")["bump_generation"])

    async def restricted(self) -> dict[int, str]:
        """See `SourceStore`."""
        return {row["node_id"]: row["origin"] for row in await self._rows("restricted")}

    async def groups(self, origin: str) -> dict[str, Membership]:
        """See `SourceStore`."""
        rows = await self._rows("groups_of", {"origin": origin})
        return {row["principal"]: Membership(frozenset(row["users"]), row["complete"]) for row in rows}

    async def set_groups(self, origin: str, groups: Mapping[str, Membership]) -> None:
        """See `SourceStore`."""
        async with self._database.connection("owner") as connection, connection.transaction():
            await connection.execute(self._sql["drop_groups"], {"origin": origin})
            for principal, members in groups.items():
                values = {"origin": origin, "principal": principal, "complete": members.complete}
                await connection.execute(self._sql["add_group"], {**values, "users": sorted(members.users)})
            await connection.execute(queries("writing")["bump_generation"])

    async def note(self, origin: str, items: Sequence[StoredItem]) -> None:
        """See `SourceStore`."""
        values = {"source_ids": [item.source_id for item in items], "marks": [item.mark for item in items]}
        await self._execute("note", {**values, "origin": origin, "uris": [item.uri for item in items]})

    async def forget(self, source_ids: Collection[uuid.UUID]) -> None:
        """See `SourceStore`."""
        await self._execute("forget", {"source_ids": list(source_ids)})
