"""The vectors of passages, of their sentences and of imagined questions, and those questions, in PostgreSQL.

What waits for a vector is what has none of the space of its language.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import numpy as np
from pgvector import HalfVector
from psycopg import sql
from psycopg.types.json import Jsonb

from dtrag.adapters.postgres.database import Connection, Store, fetch, fetch_row
from dtrag.adapters.postgres.queries import Lock, filtered, lock, lock_shared, queries, try_locks, uuid_key
from dtrag.core.access.scope import Scope
from dtrag.core.documents import Vector
from dtrag.errors import InvalidInput
from dtrag.ports import (
    Embedder,
    ImaginedCounts,
    ImaginedPassage,
    NewQuestion,
    Passages,
    QuestionBatch,
    WaitingBatch,
    WaitingPassage,
    WaitingQuestion,
    valid_day,
)

DOCUMENTS_AT_ONCE = 64
"""Documents among which a batch looks for passages, and which it may find complete."""
SPACES = "spaces"
"""Name of the setting: language -> id of its model, "" for no model."""
EMPTIED = "vectors_emptied"
"""Name of the setting: the number of the last change that removed vectors of documents which stay."""


class PostgresVectors(Store):
    """The vectors of one database."""

    subject = "vectors"

    async def languages(self) -> frozenset[str]:
        """The languages that have been assigned."""
        async with self._database.connection("owner") as connection:
            return frozenset(await _stored_spaces(connection))

    async def assign(self, models: Mapping[str, Embedder | None]) -> None:
        """Record the model of each of these languages; the passages of one whose model changes wait again."""
        dims = {model.dim for model in models.values() if model is not None}
        if len(dims) > 1:
            raise InvalidInput(f"The models of an embedder must have one dimension, not {sorted(dims)}.")
        ids = {code: model.id if model is not None else "" for code, model in models.items()}
        async with self._database.connection("owner") as connection, connection.transaction():
            await lock_shared(connection, Lock.WRITERS)
            await lock(connection, Lock.IDENTITY)
            stored: dict[str, str] = await _stored_spaces(connection)
            spaces = {row["id"]: row for row in await fetch(connection, self._sql["spaces"])}
            if dims and dims != {row["dim"] for row in spaces.values()}:
                await self._reshape(connection, dims.pop(), existed=bool(spaces))
                await _mark_emptied(connection, await next_change(connection))
                spaces = {}
            for model in {model.id: model for model in models.values() if model is not None}.values():
                if model.id not in spaces or spaces[model.id]["decides"] != model.decides:
                    space = {"id": model.id, "dim": model.dim, "decides": model.decides}
                    await connection.execute(self._sql["add_space"], space)
            changed = sorted(code for code, id_ in ids.items() if stored.get(code, id_) != id_)
            if changed:
                for statement in ("languages_wait", "drop_sentences", "questions_wait"):
                    await connection.execute(self._sql[statement], {"changed": changed})
            if ids.items() - stored.items():
                values = {"name": SPACES, "value": Jsonb(stored | ids)}
                await connection.execute(queries("index_settings")["set_setting"], values)
                await connection.execute(self._sql["bump_vectors"])

    async def _reshape(self, connection: Connection, dim: int, *, existed: bool) -> None:
        """Give the columns of vectors this dimension; an index of one is made again. Vectors of another one go."""
        if existed:
            for statement in ("empty_vectors", "empty_questions", "drop_spaces", "all_wait"):
                await connection.execute(self._sql[statement])
        statements = queries("index_settings")
        for name in ("shape_vectors", "shape_questions"):
            await connection.execute(sql.SQL(statements[name]).format(dim=sql.Literal(dim)))
        await connection.execute(statements["create_question_index"])

    async def waiting(self, limit: int) -> WaitingBatch | None:
        """Up to `limit` passages of the newest documents that wait; None when no document does."""
        async with self._database.unfenced.connection("owner") as connection, connection.transaction():
            await connection.execute(queries("session")["read_one_state"])
            rows = await fetch(connection, self._sql["waiting_documents"], {"limit": DOCUMENTS_AT_ONCE})
            if not rows:
                return None
            documents = {row["document_id"]: row["processed_at"] for row in rows}
            values = {"document_ids": list(documents), "limit": limit, **await self._assigned(connection)}
            passages = await fetch(connection, self._sql["waiting_passages"], values)
        return WaitingBatch(
            documents,
            tuple(
                WaitingPassage(
                    row["document_id"],
                    row["ordinal"],
                    row["language"],
                    row["title"],
                    tuple(row["breadcrumb"]),
                    row["text"],
                )
                for row in passages
                if row["assigned"]
            ),
            frozenset(row["language"] for row in passages if not row["assigned"]),
        )

    async def put(self, batch: WaitingBatch, vectors: Sequence[Vector | None]) -> int:
        """Store the vectors of a batch in one transaction; returns how many."""
        async with self._unchanged(batch) as (connection, versions, assigned):
            pairs = [pair for pair in zip(batch.passages, vectors, strict=True) if pair[0].document_id in versions]
            documents = {"documents": list(versions), "times": list(versions.values())}
            spaces = dict(zip(assigned["languages"], assigned["spaces"], strict=True))
            made = [(passage, vector) for passage, vector in pairs if vector is not None]
            values = _keys([passage for passage, _ in made]) | {
                "vectors": [HalfVector(vector.astype(np.float16)).to_text() for _, vector in made],
                "spaces": [spaces[passage.language] for passage, _ in made],
            }
            change = await next_change(connection)
            values |= documents | {"change": change}
            stored = (await connection.execute(self._sql["put_vectors"], values)).rowcount
            unspoken = [passage for passage, vector in pairs if vector is None]
            if (await connection.execute(self._sql["drop_vectors"], _keys(unspoken))).rowcount > 0:
                await _mark_emptied(connection, change)
            await connection.execute(self._sql["settle"], documents | assigned)
        return stored

    async def waiting_sentences(self, limit: int) -> WaitingBatch | None:
        """Up to `limit` passages, with their vectors, whose sentences wait; None when those of no document do."""
        async with self._database.unfenced.connection("owner") as connection, connection.transaction():
            await connection.execute(queries("session")["read_one_state"])
            rows = await fetch(connection, self._sql["waiting_sentence_documents"], {"limit": DOCUMENTS_AT_ONCE})
            if not rows:
                return None
            documents = {row["document_id"]: row["processed_at"] for row in rows}
            values = {"document_ids": list(documents), "limit": limit, **await self._assigned(connection)}
            passages = await fetch(connection, self._sql["waiting_sentence_passages"], values)
        return WaitingBatch(
            documents,
            tuple(
                WaitingPassage(row["document_id"], row["ordinal"], row["language"], "", (), row["text"])
                for row in passages
            ),
        )

    async def put_sentences(self, batch: WaitingBatch, packed: Sequence[bytes]) -> None:
        """Store the vectors of the sentences of a batch in one transaction."""
        async with self._unchanged(batch) as (connection, versions, assigned):
            pairs = [pair for pair in zip(batch.passages, packed, strict=True) if pair[0].document_id in versions]
            documents = {"documents": list(versions), "times": list(versions.values())}
            spaces = dict(zip(assigned["languages"], assigned["spaces"], strict=True))
            values = _keys([passage for passage, _ in pairs]) | {
                "spaces": [spaces[passage.language] for passage, _ in pairs],
                "hashes": [hashlib.sha256(passage.text.encode()).digest() for passage, _ in pairs],
                "vectors": [vectors for _, vectors in pairs],
            }
            await connection.execute(self._sql["put_sentences"], values | documents)
            await connection.execute(self._sql["settle_sentences"], documents | assigned)

    @asynccontextmanager
    async def _unchanged(
        self, batch: WaitingBatch
    ) -> AsyncIterator[tuple[Connection, dict[uuid.UUID, datetime], dict[str, list[object]]]]:
        """A transaction over documents of the batch, with the time of each and the languages that were assigned.

        The locks keep deletions, replacements and moves of these documents apart from it. One that another process
        holds is left for later, so that no writer ever waits for two of them in another order.
        """
        self._database.require_space()
        async with self._database.connection("owner") as connection, connection.transaction():
            await lock_shared(connection, Lock.WRITERS)
            free = await try_locks(connection, [uuid_key(key) for key in batch.documents])
            versions = {key: time for key, time in batch.documents.items() if uuid_key(key) in free}
            yield connection, versions, await self._assigned(connection)

    async def pending(self, scope: Scope) -> int:
        """How many passages in scope wait for a vector."""
        async with self._database.connection("search") as connection:
            nodes = None if scope.nodes is None else sorted(scope.nodes)
            rows = await fetch(connection, self._sql["pending"], {"nodes": nodes, **await self._assigned(connection)})
        return int(rows[0]["passages"])

    async def waiting_questions(self, limit: int) -> QuestionBatch | None:
        """Up to `limit` imagined questions without a vector of the model for their language."""
        async with self._database.unfenced.connection("owner") as connection, connection.transaction():
            await connection.execute(queries("session")["read_one_state"])
            waiting = {row["language"] for row in await fetch(connection, self._sql["waiting_languages"])}
            spaces = await _stored_spaces(connection)
            languages = sorted(code for code in waiting if spaces.get(code))
            unassigned = frozenset(waiting - spaces.keys())
            values = {"languages": languages, "limit": limit}
            rows = await fetch(connection, self._sql["waiting_questions"], values) if languages else []
        questions = tuple(
            WaitingQuestion(
                row["document_id"],
                bytes(row["text_hash"]),
                row["number"],
                row["language"],
                row["question"],
                row["created_at"],
            )
            for row in rows
        )
        return QuestionBatch(questions, unassigned) if questions or unassigned else None

    async def put_questions(self, batch: QuestionBatch, vectors: Sequence[Vector | None]) -> int:
        """Store the vectors of imagined questions in one transaction; returns how many."""
        self._database.require_space()
        pairs = [pair for pair in zip(batch.questions, vectors, strict=True) if pair[1] is not None]
        async with self._database.connection("owner") as connection, connection.transaction():
            await lock_shared(connection, Lock.WRITERS)
            assigned = await self._assigned(connection)
            spaces = dict(zip(assigned["languages"], assigned["spaces"], strict=True))
            values = {
                "document_ids": [question.document_id for question, _ in pairs],
                "hashes": [question.text_hash for question, _ in pairs],
                "numbers": [question.number for question, _ in pairs],
                "times": [question.created_at for question, _ in pairs],
                "vectors": [
                    HalfVector(vector.astype(np.float16)).to_text() for _, vector in pairs if vector is not None
                ],
                "spaces": [spaces[question.language] for question, _ in pairs],
            }
            stored = (await connection.execute(self._sql["put_questions"], values)).rowcount
            await connection.execute(self._sql["bump_vectors"])
        return stored

    async def _assigned(self, connection: Connection) -> dict[str, list[object]]:
        """The languages that were assigned, the number of the space of each, None for no model, and those of them whose
        model decides."""
        stored = await _stored_spaces(connection)
        spaces = {row["id"]: row for row in await fetch(connection, self._sql["spaces"])}
        return {
            "languages": list(stored),
            "spaces": [spaces[id_]["space"] if id_ in spaces else None for id_ in stored.values()],
            "deciding": [code for code, id_ in stored.items() if id_ in spaces and spaces[id_]["decides"]],
        }


def _keys(passages: Sequence[WaitingPassage]) -> dict[str, list[object]]:
    return {
        "document_ids": [passage.document_id for passage in passages],
        "ordinals": [passage.ordinal for passage in passages],
    }


async def next_change(connection: Connection) -> int:
    """The number of this transaction's change of the vectors. Waits for the end of any other change."""
    row = await fetch_row(connection, queries("vectors")["bump_vectors"])
    return int(row["change"]) if row else 0


async def _mark_emptied(connection: Connection, change: int) -> None:
    await connection.execute(queries("index_settings")["set_setting"], {"name": EMPTIED, "value": Jsonb(change)})


async def _stored_spaces(connection: Connection) -> dict[str, str]:
    rows = await fetch(connection, queries("search")["settings"])
    spaces: dict[str, str] = {row["name"]: row["value"] for row in rows}.get(SPACES, {})
    return spaces


FIRST = uuid.UUID(int=0)
_CURRENT = ("valid_on",)


class PostgresImagined(Store):
    """The imagined questions of one database."""

    subject = "imagined"

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
        rows = await self._database.read(scope, filtered(self._sql[which], _CURRENT), values)
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
            row = await fetch_row(connection, statement, {"as_of": valid_day(scope)})
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
