"""The imagined questions in PostgreSQL: read under row-level security, written as the owner."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.locks import Lock, lock, lock_shared, uuid_key
from dtrag.adapters.postgres.queries import filtered, queries
from dtrag.core.access.scope import Scope
from dtrag.ports import ImaginedCounts, ImaginedPassage, NewQuestion, Passages, valid_day

FIRST = uuid.UUID(int=0)
_CURRENT = ("valid_on",)


class PostgresImagined:
    """The imagined questions of one database."""

    def __init__(self, database: Database):
        self._database = database
        self._sql = queries("imagined")

    async def passages(
        self, which: Passages, scope: Scope, limit: int, after: ImaginedPassage | None = None
    ) -> list[ImaginedPassage]:
        """The next passages in scope after a passage, by document and ordinal."""
        values = {
            "document_id": after.document_id if after is not None else FIRST,
            "ordinal": after.ordinal if after is not None else -1,
            "limit": limit,
            "as_of": valid_day(scope),
        }
        async with self._database.scoped("reader", scope) as connection:
            rows = await (await connection.execute(filtered(self._sql[which], _CURRENT), values)).fetchall()
        return [
            ImaginedPassage(
                row["document_id"],
                row["ordinal"],
                row["title"],
                tuple(row["breadcrumb"]),
                row["text"],
                row["language"],
                row["source_uri"],
                {**row["document_metadata"], **row["metadata"]},
                tuple(row["questions"]),
                row["origin"],
            )
            for row in rows
        ]

    async def counts(self, scope: Scope) -> ImaginedCounts:
        """The numbers in scope."""
        async with self._database.scoped("reader", scope) as connection:
            statement = filtered(self._sql["counts"], _CURRENT)
            row = await (await connection.execute(statement, {"as_of": valid_day(scope)})).fetchone()
        return ImaginedCounts(row["questions"], row["passages"], row["missing"], row["characters"]) if row else _NONE

    async def put(
        self, questions: Sequence[tuple[ImaginedPassage, Sequence[NewQuestion]]], origin: str, scope: Scope
    ) -> int:
        """Replace the questions of these passages in one transaction; returns how many were stored."""
        self._database.require_space()
        hashes = {passage.chunk_id: hashlib.sha256(passage.text.encode()).digest() for passage, _ in questions}
        rows = [
            (passage, hashes[passage.chunk_id], number, question)
            for passage, new_questions in questions
            for number, question in enumerate(new_questions)
        ]
        replaced = {
            "document_ids": [passage.document_id for passage, _ in questions],
            "hashes": [hashes[passage.chunk_id] for passage, _ in questions],
        }
        values = {
            "document_ids": [passage.document_id for passage, *_ in rows],
            "ordinals": [passage.ordinal for passage, *_ in rows],
            "hashes": [text_hash for _, text_hash, *_ in rows],
            "numbers": [number for *_, number, _ in rows],
            "languages": [question.language for *_, question in rows],
            "questions": [question.text for *_, question in rows],
            "terms": [f"{{{','.join(map(str, question.terms))}}}" for *_, question in rows],
            "nodes": _nodes(scope),
            "origin": origin,
            "now": datetime.now(UTC),
        }
        async with self._database.connection("owner") as connection, connection.transaction():
            await lock_shared(connection, Lock.WRITERS)
            for document_id in sorted({passage.document_id for passage, _ in questions}):
                await lock(connection, uuid_key(document_id))
            await connection.execute(self._sql["forget"], replaced | {"nodes": _nodes(scope)})
            stored = (await connection.execute(self._sql["put"], values)).rowcount
            await connection.execute(queries("vectors")["bump_vectors"])
        return stored

    async def drop(self, scope: Scope, documents: Collection[uuid.UUID] | None = None) -> int:
        """Delete the questions in scope, of these documents only; returns how many."""
        values = {"nodes": _nodes(scope), "document_ids": None if documents is None else list(documents)}
        async with self._database.connection("owner") as connection, connection.transaction():
            dropped = (await connection.execute(self._sql["drop"], values)).rowcount
            await connection.execute(queries("vectors")["bump_vectors"])
        return dropped


_NONE = ImaginedCounts()


def _nodes(scope: Scope) -> list[int] | None:
    return None if scope.nodes is None else sorted(scope.nodes)
