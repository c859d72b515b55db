"""Classification's samples and results, and the review queue, as rows."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import TypedDict

import numpy as np
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from dtrag.adapters.postgres.database import Connection, Store, fetch, fetch_row
from dtrag.adapters.postgres.queries import Lock, lock, queries
from dtrag.adapters.postgres.stores.taxonomy_moves import rehome
from dtrag.core.access.scope import Grant, Scope
from dtrag.core.documents import Vector
from dtrag.core.ranking.segments import FREQUENCY_UNIT
from dtrag.core.taxonomy.centroids import FIRST_PASSAGES, Sample, TermCounts
from dtrag.core.taxonomy.classification import TRUSTED
from dtrag.core.taxonomy.review import MAX_WAITING_ANSWERS, Decision, Placement, ReviewItem


class PostgresReview(Store):
    """The tables of classification and review of one database."""

    subject = "review"

    async def samples(self, nodes: Sequence[int], per_node: int, space: str) -> list[Sample]:
        """Documents with a reliable category, at most `per_node` of each; reviewed ones first."""
        values = {"nodes": list(nodes), "per_node": per_node, "trusted": TRUSTED, "passages": FIRST_PASSAGES}
        async with self._database.connection("owner") as connection:
            rows = await (await connection.execute(self._sql["samples"], values, binary=True)).fetchall()
            vectors = await self._vectors(connection, {row["document_id"] for row in rows}, space)
        return await asyncio.to_thread(_samples, rows, vectors)  # half a second of arithmetic at the most

    async def _vectors(
        self, connection: Connection, document_ids: Iterable[uuid.UUID], space: str
    ) -> dict[uuid.UUID, Vector]:
        values = {"document_ids": list(document_ids), "passages": FIRST_PASSAGES, "space": space}
        rows = await fetch(connection, self._sql["sample_vectors"], values)
        return {row["document_id"]: row["vec"].to_numpy().astype(np.float32) for row in rows}

    async def decided(self, document_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, int]:
        """Document id -> node, for the documents that a reviewer decided."""
        async with self._database.connection("owner") as connection:
            return {
                row["document_id"]: row["node_id"]
                for row in await fetch(connection, self._sql["decided"], {"document_ids": list(document_ids)})
            }

    async def record(self, placements: Sequence[Placement], settled: Sequence[uuid.UUID]) -> None:
        """Remember what was placed without a person, and queue what waits for one; forget it of `settled`."""
        everyone = [*(placement.document_id for placement in placements), *settled]
        accepted = [placement for placement in placements if placement.classification.accepted]
        async with self._database.connection("owner") as connection, connection.transaction():
            await connection.execute(self._sql["forget_placements"], {"document_ids": everyone})
            await connection.execute(self._sql["forget_waiting"], {"document_ids": everyone})
            if accepted:
                await connection.execute(self._sql["add_placements"], _columns(accepted))
            for placement in placements:
                if not placement.classification.accepted:
                    await self._insert(connection, ReviewItem.of(placement))

    async def answer_grants(self) -> list[Grant]:
        """The branches of the agents whose answers are in the queue."""
        async with self._database.scoped("reader", Scope(frozenset())) as connection:
            rows = await fetch(connection, self._sql["answer_grants"])
        return [Grant.from_json(row["branches"]) for row in rows]

    async def waiting(
        self, scope: Scope, limit: int, offset: int, grants: Sequence[Grant] = ()
    ) -> tuple[list[ReviewItem], int]:
        """Items that wait, the least sure first, and how many there are in all.

        `grants` are the branches of agents whose answers the caller may see; all of them with the whole tree.
        """
        values = {"everything": scope.nodes is None, "grants": _json(grants), "limit": limit, "offset": offset}
        async with self._database.scoped("reader", scope) as connection:
            rows = await fetch(connection, self._sql["waiting"], values)
            if not rows and offset:
                return [], sum(
                    row["total"]
                    for row in await fetch(connection, self._sql["waiting"], {**values, "limit": 1, "offset": 0})
                )
        return [_item(row) for row in rows], rows[0]["total"] if rows else 0

    async def get(self, item_id: uuid.UUID, scope: Scope, grants: Sequence[Grant] = ()) -> ReviewItem | None:
        """An item in scope, or None; `grants` as in `waiting`."""
        values = {"everything": scope.nodes is None, "grants": _json(grants), "item_id": item_id}
        row = await self._database.read_row(scope, self._sql["item"], values)
        return _item(row) if row else None

    async def answered(self, scope: Scope, limit: int, grants: Sequence[Grant] = ()) -> list[ReviewItem]:
        """The newest decided answers with chosen passages in scope, newest first; `grants` as in `waiting`."""
        values = {"everything": scope.nodes is None, "grants": _json(grants), "limit": limit}
        rows = await self._database.read(scope, self._sql["answered"], values)
        return [_item(row) for row in rows]

    async def add(self, item: ReviewItem) -> bool:
        """Queue an item, an answer once for each question; False when less confident ones fill the queue."""
        if item.kind == "classification":
            async with self._database.connection("owner") as connection:
                await self._insert(connection, item)
            return True
        same = {
            "question_hash": item.proposal["question_hash"],
            "as_of": item.proposal.get("as_of", ""),
            "agent_id": item.agent_id,
            "grant": Jsonb(item.proposal.get("grant")),
        }
        async with self._database.connection("owner") as connection, connection.transaction():
            await lock(connection, Lock.REVIEW)
            if await fetch_row(connection, self._sql["same_answer"], same) is not None:
                return True
            surest = await fetch_row(connection, self._sql["surest_answer"])
            if surest is not None and surest["total"] >= MAX_WAITING_ANSWERS:
                if item.confidence is None or item.confidence >= surest["confidence"]:
                    return False
                await connection.execute(self._sql["forget_item"], {"item_id": surest["item_id"]})
            await self._insert(connection, item)
        return True

    async def decide(self, item: ReviewItem, decision: Decision) -> bool:
        """Settle a waiting item, move its document if it gets a node; False when it does not wait any more."""
        values: dict[str, object] = {"item_id": item.item_id, "status": decision.status, "note": decision.note}
        values["addition"] = Jsonb(decision.addition())
        who: _Who = {"at": decision.at, "by": decision.by}
        async with self._database.connection("owner") as connection, connection.transaction():
            if await fetch_row(connection, self._sql["settle_item"], {**values, **who}) is None:
                return False
            if decision.node_id is not None and item.document_id is not None:
                await place(connection, [item.document_id], decision.node_id, **who)
        return True

    async def _insert(self, connection: Connection, item: ReviewItem) -> None:
        values = {
            "item_id": item.item_id,
            "kind": item.kind,
            "document_id": item.document_id,
            "agent_id": item.agent_id,
            "node_id": item.node_id,
            "proposal": Jsonb(dict(item.proposal)),
            "confidence": item.confidence,
            "created_at": item.created_at,
        }
        await connection.execute(self._sql["add_item"], values)


class _Who(TypedDict):
    at: datetime
    by: str


async def place(
    connection: Connection, document_ids: Sequence[uuid.UUID], node_id: int, *, at: datetime, by: str
) -> None:
    """Move documents to where a person puts them, in the caller's transaction: later ingests leave them there."""
    sql, documents = queries("review"), {"document_ids": list(document_ids)}
    await connection.execute(sql["set_signals"], {**documents, "node_id": node_id, "at": at, "by": by})
    await connection.execute(sql["forget_placements"], documents)
    await rehome(connection, dict.fromkeys(document_ids, node_id))


def _json(grants: Sequence[Grant]) -> list[Jsonb]:
    return [Jsonb(grant.as_json()) for grant in grants]


def _samples(rows: Sequence[DictRow], vectors: Mapping[uuid.UUID, Vector]) -> list[Sample]:
    return [
        _sample(list(passages), vectors.get(document_id))
        for document_id, passages in groupby(rows, lambda row: row["document_id"])
    ]


def _sample(passages: Sequence[DictRow], vector: Vector | None) -> Sample:
    terms = TermCounts.of(
        [np.frombuffer(row["terms"], np.int32) for row in passages],
        [np.frombuffer(row["frequencies"], np.uint8) * FREQUENCY_UNIT for row in passages],
    )
    first = passages[0]
    return Sample(first["document_id"], first["node_id"], terms, vector, first["decided"])


def _columns(placements: Sequence[Placement]) -> dict[str, object]:
    return {
        "document_ids": [placement.document_id for placement in placements],
        "confidences": [placement.classification.confidence for placement in placements],
        "times": [placement.at for placement in placements],
    }


def _item(row: DictRow) -> ReviewItem:
    return ReviewItem(**{name: value for name, value in row.items() if name != "total"})
