"""What the database answers its owner, whom no policy restricts: the isolation test compares responses with it."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence

from psycopg.rows import DictRow

from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.queries import queries
from dtrag.core.access.scope import Scope
from dtrag.core.documents import uuid_or_none
from dtrag.ports import valid_day


class UnscopedReads:
    """Reads of one database as its owner; `rows_under_policy` is the same read as a caller."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def documents_of_each_node(self, per_node: int) -> list[DictRow]:
        """Id, node and title of at most `per_node` documents of every node that has any, ordered by id."""
        return await self._read("documents_of_each_node", per_node=per_node)

    async def total(self) -> int:
        """The number of all documents."""
        [row] = await self._read("total")
        return int(row["documents"])

    async def count(self, scope: Scope) -> int:
        """The number of documents in scope that are valid on its day."""
        values = {"as_of": valid_day(scope), "text": "", "content_types": None, "nodes": sorted(scope.nodes or ())}
        async with self._database.connection("owner") as connection:
            row = await (await connection.execute(queries("content")["document_count_in"], values)).fetchone()
        return int(row["documents"]) if row else 0

    async def nodes(self, document_ids: Collection[str]) -> dict[str, int]:
        """Document id -> node, of those of the ids that documents have."""
        rows = await self._read("nodes", document_ids=list(document_ids)) if document_ids else []
        return {str(row["document_id"]): row["node_id"] for row in rows}

    async def texts(self, keys: Collection[str]) -> dict[str, str]:
        """Chunk id or document id -> its text."""
        places = [key.rpartition(":") for key in keys]
        passages = [(uuid_or_none(document), int(ordinal)) for document, colon, ordinal in places if colon]
        rows = await self._read(
            "passages", document_ids=[key for key, _ in passages], ordinals=[ordinal for _, ordinal in passages]
        )
        rows += await self._read("texts", document_ids=[document for _, colon, document in places if not colon])
        return {row["key"]: row["text"] for row in rows}

    async def tables_without_policy(self) -> list[str]:
        """Tables whose row-level security is off, or without a policy for callers."""
        return [row["name"] for row in await self._read("tables_without_policy")]

    async def rows_in_scope(self, scope: Scope, document_ids: Sequence[str]) -> dict[str, int]:
        """Table -> number of rows in scope; of passages only those of these documents."""
        [row] = await self._read("rows_in_scope", nodes=sorted(scope.nodes or ()), document_ids=_uuids(document_ids))
        return dict(row)

    async def rows_under_policy(self, scope: Scope, document_ids: Sequence[str]) -> dict[str, int]:
        """Table -> number of rows that a caller with this scope gets, when a statement names no scope itself."""
        values = {"document_ids": _uuids(document_ids)}
        async with self._database.scoped("reader", scope) as connection:
            row = await (await connection.execute(queries("unscoped")["rows_under_policy"], values)).fetchone()
        return dict(row or {})

    async def _read(self, name: str, **values: object) -> list[DictRow]:
        async with self._database.connection("owner") as connection:
            return await (await connection.execute(queries("unscoped")[name], values)).fetchall()


def _uuids(document_ids: Sequence[str]) -> list[uuid.UUID]:
    return [uuid.UUID(document_id) for document_id in document_ids]
