"""Conversations in the database: `ConversationStore` over the tables of migration 0004."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import datetime

from psycopg.rows import DictRow

from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.queries import queries
from dtrag.core.access.scope import Scope
from dtrag.core.conversation import Conversation, Turn


class PostgresConversations:
    """The conversations of one database."""

    def __init__(self, database: Database):
        self._database = database
        self._sql = queries("conversations")

    async def add(self, conversation_id: str, owner: str, turn: Turn, kept: int) -> int:
        """Add the turn as the next one, whatever its number, and drop those before the last `kept`."""
        whose = {"conversation_id": conversation_id, "owner": owner}
        self._database.require_space()
        async with self._database.connection("owner") as connection, connection.transaction():
            row = await (await connection.execute(self._sql["open_turn"], {**whose, "at": turn.created_at})).fetchone()
            number: int = row["turns"] if row else 1
            values = {
                "turn": number,
                "question": turn.question,
                "answer": turn.answer,
                "document_ids": list(turn.document_ids),
                "at": turn.created_at,
            }
            await connection.execute(self._sql["add_turn"], {**whose, **values})
            if number > kept:
                await connection.execute(self._sql["trim"], {**whose, "last_gone": number - kept})
        return number

    async def turns(self, conversation_id: str, owner: str, wanted: int, since: datetime) -> list[Turn]:
        """The last turns, oldest first; none of a conversation that has been at rest since before `since`."""
        asked = {"conversation_id": conversation_id, "owner": owner, "wanted": wanted, "since": since}
        async with self._database.connection("owner") as connection:
            rows = await (await connection.execute(self._sql["turns"], asked)).fetchall()
        return [_turn(row) for row in rows]

    async def get(self, conversation_id: str, owner: str, kept: int, since: datetime) -> Conversation | None:
        """The conversation, or None."""
        asked = {"conversation_id": conversation_id, "owner": owner, "kept": kept, "since": since}
        async with self._database.connection("owner") as connection:
            row = await (await connection.execute(self._sql["conversation"], asked)).fetchone()
        return Conversation(**row) if row else None

    async def every(
        self, owner: str, kept: int, since: datetime, wanted: int, skipped: int
    ) -> tuple[list[Conversation], int]:
        """The owner's conversations, the newest first, and how many there are."""
        asked = {"owner": owner, "kept": kept, "since": since, "wanted": wanted, "skipped": skipped}
        async with self._database.connection("owner") as connection:
            rows = await (await connection.execute(self._sql["conversations"], asked)).fetchall()
            total = await (await connection.execute(self._sql["conversation_count"], asked)).fetchone()
        return [Conversation(**row) for row in rows], total["total"] if total else 0

    async def delete(self, conversation_id: str, owner: str) -> bool:
        """Delete the conversation with its turns; False when there is none."""
        whose = {"conversation_id": conversation_id, "owner": owner}
        async with self._database.connection("owner") as connection:
            return await (await connection.execute(self._sql["delete_conversation"], whose)).fetchone() is not None

    async def forget(self, before: datetime) -> int:
        """Delete what has been at rest since before that time; returns how many."""
        async with self._database.connection("owner") as connection:
            return (await connection.execute(self._sql["forget"], {"before": before})).rowcount


def _turn(row: DictRow) -> Turn:
    return Turn(row["turn"], row["question"], row["answer"], row["created_at"], tuple(row["document_ids"]))


class PostgresDocumentVisibility:
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
