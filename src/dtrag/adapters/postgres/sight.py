"""Which documents a scope may see, by their ids: asked for whatever was made of documents and kept."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.queries import queries
from dtrag.core.access.scope import Scope


class PostgresSight:
    """The documents of one database."""

    def __init__(self, database: Database):
        self._database = database

    async def visible(self, document_ids: Collection[uuid.UUID], scope: Scope) -> frozenset[uuid.UUID]:
        """Those of the documents that are there and in scope."""
        if not document_ids:
            return frozenset()
        asked = {"document_ids": list(document_ids)}
        async with self._database.scoped("reader", scope) as connection:
            rows = await (await connection.execute(queries("content")["visible"], asked)).fetchall()
        return frozenset(row["document_id"] for row in rows)
