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

    async def add(self, conversation_id: str, owner: str, turn: Turn, max_turns: int) -> int:
        """Append the turn, whose own number is ignored, and delete all but the last `max_turns`; returns its number."""
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
                "trace_id": turn.trace_id,
            }
            await connection.execute(self._sql["add_turn"], {**whose, **values})
            if number > max_turns:
                await connection.execute(self._sql["trim"], {**whose, "last_gone": number - max_turns})
        return number

    async def turns(self, conversation_id: str, owner: str, limit: int, since: datetime) -> list[Turn]:
        """The last turns, oldest first; empty for a conversation idle since before `since`."""
        values = {"conversation_id": conversation_id, "owner": owner, "limit": limit, "since": since}
        async with self._database.connection("owner") as connection:
            rows = await (await connection.execute(self._sql["turns"], values)).fetchall()
        return [_turn(row) for row in rows]

    async def turn_of(self, trace_id: uuid.UUID, owner: str, since: datetime) -> Turn | None:
        """The owner's turn with the answer of this trace, or None."""
        values = {"trace_id": trace_id, "owner": owner, "since": since}
        async with self._database.connection("owner") as connection:
            row = await (await connection.execute(self._sql["turn_of"], values)).fetchone()
        return _turn(row) if row else None

    async def get(self, conversation_id: str, owner: str, max_turns: int, since: datetime) -> Conversation | None:
        """The conversation, or None."""
        values = {"conversation_id": conversation_id, "owner": owner, "max_turns": max_turns, "since": since}
        async with self._database.connection("owner") as connection:
            row = await (await connection.execute(self._sql["conversation"], values)).fetchone()
        return Conversation(**row) if row else None

    async def every(
        self, owner: str, max_turns: int, since: datetime, limit: int, offset: int
    ) -> tuple[list[Conversation], int]:
        """The owner's conversations, the newest first, and how many there are."""
        values = {"owner": owner, "max_turns": max_turns, "since": since, "limit": limit, "offset": offset}
        async with self._database.connection("owner") as connection:
            rows = await (await connection.execute(self._sql["conversations"], values)).fetchall()
            total = await (await connection.execute(self._sql["conversation_count"], values)).fetchone()
        return [Conversation(**row) for row in rows], total["total"] if total else 0

    async def delete(self, conversation_id: str, owner: str) -> bool:
        """Delete the conversation with its turns; False for an unknown one."""
        whose = {"conversation_id": conversation_id, "owner": owner}
        async with self._database.connection("owner") as connection:
            return await (await connection.execute(self._sql["delete_conversation"], whose)).fetchone() is not None

    async def forget(self, before: datetime) -> int:
        """Delete conversations idle since before that time; returns how many."""
        async with self._database.connection("owner") as connection:
            return (await connection.execute(self._sql["forget"], {"before": before})).rowcount


def _turn(row: DictRow) -> Turn:
    return Turn(
        row["turn"],
        row["question"],
        row["answer"],
        row["created_at"],
        tuple(row["document_ids"]),
        trace_id=row["trace_id"],
    )


class PostgresDocumentVisibility:
    """The documents of one database."""

    def __init__(self, database: Database):
        self._database = database

    async def visible(self, document_ids: Collection[uuid.UUID], scope: Scope) -> frozenset[uuid.UUID]:
        """Those of the documents that are there and in scope."""
        if not document_ids:
            return frozenset()
        values = {"document_ids": list(document_ids)}
        async with self._database.scoped("reader", scope) as connection:
            rows = await (await connection.execute(queries("content")["visible"], values)).fetchall()
        return frozenset(row["document_id"] for row in rows)

    async def titles(self, document_ids: Collection[uuid.UUID], scope: Scope) -> dict[uuid.UUID, str]:
        """The titles of those of the documents that are there and in scope."""
        if not document_ids:
            return {}
        values = {"document_ids": list(document_ids)}
        async with self._database.scoped("reader", scope) as connection:
            rows = await (await connection.execute(queries("content")["visible_titles"], values)).fetchall()
        return {row["document_id"]: row["title"] for row in rows}
