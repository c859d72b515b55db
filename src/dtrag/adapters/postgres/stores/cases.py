"""The case memory and the experiences in the database: `CaseStore` and `LearningStore` over their tables."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from psycopg import AsyncCursor, Rollback
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from dtrag.adapters.case_codec import (
    FORGOTTEN,
    NAMES,
    NODES,
    PASSAGES,
    STATISTICS,
    CaseCodec,
    ColumnForm,
    Row,
    decision_counts,
    vector_values,
)
from dtrag.adapters.postgres.database import Connection, Database
from dtrag.adapters.postgres.queries import queries
from dtrag.core.access.scope import EVERYTHING, Scope
from dtrag.core.cases.bandit import Experience
from dtrag.core.cases.case import (
    Case,
    CaseChange,
    CaseLog,
    CaseQuery,
    CitedPassage,
    DecisionCounts,
    QuestionVector,
    ReuseDecision,
    ScoredCases,
    SimilarityMethod,
    Vote,
)
from dtrag.core.cases.index import CaseIndex, admits
from dtrag.core.cases.statistics import CaseStatistics
from dtrag.core.cases.votes import CaseRecord, Replacement, Tally, count_vote, records_of, voted_log

T = TypeVar("T")
Cursor = AsyncCursor[DictRow]
_CANDIDATES = 64
"""Cases of a limited scope that are checked at once, at least; more than are returned, so that hidden ones cost no
time."""
_MOST_UPDATES = 2
"""Times that a search starts again because cases changed meanwhile; then its result counts, so that a stream of changes
cannot hold it up. Its cases are read from the database: only a case that changed just now may be missing."""
_CHANGES = 2_000
"""Changed cases that are read at once, to leave the event loop to others in between."""
_SMALL = 5_000
"""An index of fewer cases is searched in the event loop: that takes less than handing it to a thread."""


def _passage_values(passages: Sequence[CitedPassage]) -> dict[str, object]:
    return {
        "chunk_ids": [passage.chunk_id for passage in passages],
        "content_hashes": [passage.content_hash for passage in passages],
        "document_ids": sorted({passage.document_id for passage in passages}),
    }


def _passages_of(row: Row) -> tuple[CitedPassage, ...]:
    pairs = zip(row["chunk_ids"], row["content_hashes"], strict=True)
    return tuple(CitedPassage(chunk_id, bytes(digest)) for chunk_id, digest in pairs)


CODEC = CaseCodec(
    {
        NAMES: ColumnForm(list, tuple),
        NODES: ColumnForm(
            lambda nodes: None if nodes is None else sorted(nodes),
            lambda value: None if value is None else frozenset(value),
        ),
        PASSAGES: ColumnForm(_passage_values, _passages_of, spread=True),
        Mapping[str, Any]: ColumnForm(lambda value: Jsonb(dict(value))),
    },
    {(CaseLog, "timestamp"): "logged_at"},
)


class PostgresCases:
    """The cases of one database. Each process has its own index of them, kept up to date by their revision."""

    def __init__(self, database: Database, *, cache_seconds: float = 0.0):
        self._database = database
        self._sql = queries("cases")
        self._index = CaseIndex(cache_seconds=cache_seconds)
        self._lock = asyncio.Lock()
        self._changing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def close(self) -> None:
        """Nothing is open; the database is closed by the app."""

    async def add(self, case: Case) -> bool:
        """See `CaseStore`."""
        self._database.require_space()
        async with self._database.connection("owner") as connection:
            return (await connection.execute(self._sql["add_case"], CODEC.values(case))).rowcount == 1

    async def get(self, case_id: str, scope: Scope) -> Case | None:
        """See `CaseStore`."""
        return (await self.of([case_id], scope)).get(case_id)

    async def of(self, case_ids: Collection[str], scope: Scope) -> dict[str, Case]:
        """See `CaseStore`."""
        rows = await self._read("cases", scope, case_ids=list(case_ids))
        return {row["case_id"]: CODEC.of(Case, row) for row in rows}

    async def change(self, case_id: str, change: CaseChange, at: datetime, scope: Scope) -> tuple[Case, Case] | None:
        """See `CaseStore`."""

        async def work(connection: Connection, case: Case, reads: Sequence[Cursor]) -> tuple[Case, Case]:
            changed = change.applied_to(case, at)
            await connection.execute(self._sql["update_case"], CODEC.values(changed))
            forgotten = FORGOTTEN if change.replaces_answer(case) else ()
            for name in (*forgotten, "changed"):
                await connection.execute(self._sql[name], {"case_id": case_id})
            return case, changed

        return await self._locked(case_id, scope, work)

    async def delete(self, case_id: str, scope: Scope) -> bool:
        """See `CaseStore`."""

        async def work(connection: Connection, case: Case, reads: Sequence[Cursor]) -> bool:
            for name in ("delete_logs", "unname_case", "delete_case", "changed"):
                await connection.execute(self._sql[name], {"case_id": case.case_id})
            return True

        return await self._locked(case_id, scope, work) or False

    async def _locked(
        self,
        case_id: str,
        scope: Scope,
        work: Callable[[Connection, Case, Sequence[Cursor]], Awaitable[T]],
        statements: Sequence[str] = (),
        values: Mapping[str, object] = MappingProxyType({}),
    ) -> T | None:
        """The work in a transaction that has locked the case; None when it is unknown or out of scope.

        The statements run right after the lock, with these values; the work gets their cursors. Changes of one case
        wait for each other here, not in connections that others need meanwhile.
        """
        changing = self._changing.setdefault(case_id, asyncio.Lock())
        async with changing:
            return await self._in_transaction(case_id, scope, work, statements, values)

    async def _in_transaction(
        self,
        case_id: str,
        scope: Scope,
        work: Callable[[Connection, Case, Sequence[Cursor]], Awaitable[T]],
        statements: Sequence[str],
        values: Mapping[str, object],
    ) -> T | None:
        while True:
            seen = await self.get(case_id, scope) if scope.nodes is not None else None
            if scope.nodes is not None and seen is None:
                return None
            async with (
                self._database.connection("owner") as connection,
                connection.pipeline(),
                connection.transaction(),
            ):
                locked = await connection.execute(self._sql["locked_case"], {"case_id": case_id})
                reads = [await connection.execute(self._sql[name], values) for name in statements]
                row = await locked.fetchone()
                if row is None:
                    return None
                case = CODEC.of(Case, row)
                if seen is not None and seen.is_elsewhere(case):
                    raise Rollback  # it was moved meanwhile: whether it is in scope has to be checked again
                return await work(connection, case, reads)

    async def nearest(self, query: CaseQuery, scope: Scope) -> ScoredCases:
        """See `CaseStore`."""
        count = query.limit if scope.nodes is None else max(_CANDIDATES, 4 * query.limit)
        async with self._lock:
            if query.method is SimilarityMethod.SEMANTIC and not self._index.vectors:
                self._index = self._index.emptied(vectors=True)
        updates = 0
        while True:
            async with self._lock:
                index = self._index
                if len(index) < _SMALL:
                    ranked = index.nearest(query, scope.nodes, count)
                else:
                    ranked = await asyncio.to_thread(index.nearest, query, scope.nodes, count)
                used = index.revision
            cases, revision = await self._first_visible([case_id for case_id, _ in ranked], query.limit, scope)
            if revision != used and updates < _MOST_UPDATES:
                updates += 1
                await self._update_index()
                continue
            scored = [(cases[key], score) for key, score in ranked if key in cases and admits(query, cases[key])]
            if len(scored) >= query.limit or len(ranked) < count:
                return scored
            count *= 4

    async def _first_visible(self, case_ids: Sequence[str], limit: int, scope: Scope) -> tuple[dict[str, Case], int]:
        """The first `limit` visible ones of the cases, and the revision of the store."""
        async with self._database.scoped("reader", scope) as connection:
            cursor = await connection.execute(self._sql["nearest"], {"case_ids": case_ids, "limit": limit})
            rows = await cursor.fetchall()
            revision = max((row.pop("store_revision") for row in rows), default=0)
            return {row["case_id"]: CODEC.of(Case, row) for row in rows if row["case_id"] is not None}, revision

    async def _update_index(self) -> None:
        """Bring the index to the revision of the store."""
        async with self._lock, self._database.connection("owner") as connection:
            row = await (await connection.execute(self._sql["revision"])).fetchone()
            index, revision = self._index, row["revision"] if row else 0
            if revision < index.revision:  # an older state of the database was restored
                index = self._index = index.emptied(vectors=index.vectors)
            while index.revision < revision:
                values = {"known": index.revision, "vectors": index.vectors, "limit": _CHANGES}
                rows = await (await connection.execute(self._sql["changes"], values)).fetchall()
                if len(rows) < _SMALL // 100:
                    index.apply(rows, CODEC.entry_of)
                else:
                    await asyncio.to_thread(index.apply, rows, CODEC.entry_of)
                if len(rows) < _CHANGES:
                    index.revision = max(index.revision, revision)

    async def page(self, scope: Scope, limit: int, after: str | None = None) -> Sequence[Case]:
        """See `CaseStore`."""
        return [CODEC.of(Case, row) for row in await self._read("page", scope, after=after, limit=limit)]

    async def without_vector(self, spaces: Collection[str], limit: int, after: str | None = None) -> Sequence[Case]:
        """See `CaseStore`."""
        values = {"spaces": list(spaces), "limit": limit, "after": after}
        return [CODEC.of(Case, row) for row in await self._as_owner("without_vector", **values)]

    async def put_vectors(self, vectors: Sequence[tuple[Case, QuestionVector]]) -> None:
        """See `CaseStore`."""
        self._database.require_space()
        ids = [case.case_id for case, _ in vectors]
        async with self._database.connection("owner") as connection, connection.transaction():
            await connection.execute(self._sql["locked_cases"], {"case_ids": ids})
            async with connection.pipeline():
                for case, vector in vectors:
                    values = {"case_id": case.case_id, "query": case.query, **vector_values(vector)}
                    await connection.execute(self._sql["put_vector"], values)
                for case_id in ids:
                    await connection.execute(self._sql["changed"], {"case_id": case_id})

    async def vote(self, vote: Vote, scope: Scope) -> Case | None:
        """See `CaseStore`."""
        self._database.require_space()
        whose = {"case_id": vote.case_id, "voter": vote.voter, "log_id": vote.log_id, "at": vote.at}

        async def work(connection: Connection, case: Case, reads: Sequence[Cursor]) -> Case:
            votes, tally, _, locked = reads
            earlier = [CODEC.vote_of(row) for row in await votes.fetchall()]
            (counts,), (log,) = await tally.fetchall(), await locked.fetchall()
            counted = count_vote(case, vote, earlier, Tally(**counts))
            if counted is None:
                return case
            after, stored = counted
            await connection.execute(self._sql["put_vote"], CODEC.vote_values(stored))
            await connection.execute(self._sql["update_case"], CODEC.values(after))
            if log["user_id"] == vote.voter:
                values = CODEC.log_values(voted_log(CODEC.of(CaseLog, log), vote, case)) | {"voted": True}
                await connection.execute(self._sql["put_log"], values)
            await connection.execute(self._sql["changed"], {"case_id": case.case_id})
            return after

        statements = ("votes_of_voter", "tally", "open_log", "locked_log")
        return await self._locked(vote.case_id, scope, work, statements, whose)

    async def votes(self, case_ids: Collection[str], scope: Scope) -> dict[str, Sequence[Vote]]:
        """See `CaseStore`."""
        grouped: dict[str, list[Vote]] = {case_id: [] for case_id in await self.of(case_ids, scope)}
        for row in await self._as_owner("votes", case_ids=list(grouped)):
            grouped[row["case_id"]].append(CODEC.vote_of(row).vote)
        return dict(grouped)

    async def add_log(self, log: CaseLog) -> None:
        """See `CaseStore`."""
        self._database.require_space()
        async with self._database.connection("owner") as connection:
            await connection.execute(self._sql["put_log"], CODEC.log_values(log) | {"voted": False})

    async def log(self, log_id: str, user_id: str) -> CaseLog | None:
        """See `CaseStore`."""
        rows = await self._as_owner("log", log_id=log_id)
        return next((CODEC.of(CaseLog, row) for row in rows if row["user_id"] == user_id), None)

    async def logs(self, scope: Scope, limit: int, *, success_only: bool = False) -> Sequence[CaseLog]:
        """See `CaseStore`."""
        return [
            CODEC.of(CaseLog, row) for row in await self._read("logs", scope, success_only=success_only, limit=limit)
        ]

    async def shown_since(self, since: datetime) -> dict[str, datetime]:
        """See `CaseStore`."""
        return {row["case_id"]: row["shown_at"] for row in await self._as_owner("shown_since", since=since)}

    async def add_decision(self, decision: ReuseDecision) -> None:
        """See `CaseStore`."""
        self._database.require_space()
        async with self._database.connection("owner") as connection:
            await connection.execute(self._sql["put_decision"], CODEC.values(decision))

    async def decisions(self, case_id: str | None = None, scope: Scope = EVERYTHING) -> DecisionCounts:
        """See `CaseStore`."""
        if scope.nodes is not None:
            values = {"case_id": case_id, "nodes": sorted(scope.nodes)}
            counted = {row["case_id"]: row for row in await self._as_owner("decisions_by_case", **values)}
            visible = await self._read("ids_in_scope", scope, case_ids=list(counted))
            return decision_counts(counted[row["case_id"]] for row in visible)
        return decision_counts(await self._as_owner("decision_counts", case_id=case_id))

    async def statistics(self, scope: Scope) -> CaseStatistics:
        """See `CaseStore`."""
        async with self._database.scoped("reader", scope) as connection:
            cursors = {name: await connection.execute(self._sql[name]) for name in STATISTICS}
            return CODEC.statistics_of({name: await cursor.fetchall() for name, cursor in cursors.items()})

    async def forget_logs(self, before: datetime) -> int:
        """See `CaseStore`."""
        async with self._database.connection("owner") as connection:
            return (await connection.execute(self._sql["forget_logs"], {"before": before})).rowcount

    async def records(self, limit: int, after: str | None = None) -> Sequence[CaseRecord]:
        """See `CaseStore`."""
        cases = await self.page(EVERYTHING, limit, after)
        ids = [case.case_id for case in cases]
        votes = [CODEC.vote_of(row) for row in await self._as_owner("votes", case_ids=ids)]
        decisions = [CODEC.of(ReuseDecision, row) for row in await self._as_owner("decisions", case_ids=ids)]
        return records_of(cases, votes, decisions)

    async def put(self, record: CaseRecord) -> bool:
        """See `CaseStore`."""
        self._database.require_space()
        async with self._database.connection("owner") as connection, connection.transaction():
            added = await connection.execute(self._sql["add_case"], CODEC.values(record.case))
            if added.rowcount != 1:
                return False
            async with connection.pipeline():
                for vote in record.votes:
                    await connection.execute(self._sql["put_vote"], CODEC.vote_values(vote))
                for decision in record.decisions:
                    await connection.execute(self._sql["put_decision"], CODEC.values(decision))
        return True

    async def replace(self, replacements: Sequence[Replacement]) -> bool:
        """See `CaseStore`."""
        self._database.require_space()
        ids = [each.before.case_id for each in replacements]
        async with self._database.connection("owner") as connection, connection.transaction():
            cursor = await connection.execute(self._sql["locked_cases"], {"case_ids": ids})
            stored = {row["case_id"]: CODEC.of(Case, row) for row in await cursor.fetchall()}
            if any(stored.get(each.before.case_id) != each.before for each in replacements):
                return False
            async with connection.pipeline():
                for each in replacements:
                    removed = {"case_id": each.before.case_id, "log_ids": list(each.removed)}
                    await connection.execute(self._sql["remove_votes"], removed)
                    for counted in each.added:
                        await connection.execute(self._sql["put_vote"], CODEC.vote_values(counted))
                    await connection.execute(self._sql["update_case"], CODEC.values(each.after))
                for case_id in ids:
                    await connection.execute(self._sql["changed"], {"case_id": case_id})
        return True

    async def log_page(self, limit: int, after: str | None = None) -> Sequence[CaseLog]:
        """See `CaseStore`."""
        return [CODEC.of(CaseLog, row) for row in await self._as_owner("log_page", after=after, limit=limit)]

    async def _as_owner(self, name: str, **values: object) -> list[DictRow]:
        async with self._database.connection("owner") as connection:
            return await (await connection.execute(self._sql[name], values)).fetchall()

    async def _read(self, name: str, scope: Scope, **values: object) -> list[DictRow]:
        async with self._database.scoped("reader", scope) as connection:
            return await (await connection.execute(self._sql[name], values)).fetchall()


class PostgresLearning:
    """The experiences of one database."""

    def __init__(self, database: Database):
        self._database = database
        self._sql = queries("learning")

    async def add(self, experiences: Sequence[Experience], most: int) -> None:
        """See `LearningStore`."""
        self._database.require_space()
        values = {
            "ids": [each.experience_id for each in experiences],
            "times": [each.at for each in experiences],
            "states": [each.state for each in experiences],
            "actions": [each.action for each in experiences],
            "propensities": [each.propensity for each in experiences],
            "rewards": [each.reward for each in experiences],
            "next_states": [each.next_state for each in experiences],
            "explored": [each.explored for each in experiences],
        }
        async with self._database.connection("owner") as connection, connection.transaction():
            await connection.execute(self._sql["add"], values)
            await connection.execute(self._sql["trim"], {"most": most})

    async def follow(self, experience_id: str, state: int) -> None:
        """See `LearningStore`."""
        async with self._database.connection("owner") as connection:
            await connection.execute(self._sql["follow"], {"experience_id": experience_id, "state": state})

    async def experiences(self) -> list[Experience]:
        """See `LearningStore`."""
        async with self._database.connection("owner") as connection:
            rows = await (await connection.execute(self._sql["experiences"])).fetchall()
        return [Experience(**row) for row in rows]

    async def exploration(self) -> float:
        """See `LearningStore`."""
        async with self._database.connection("owner") as connection:
            row = await (await connection.execute(self._sql["exploration"])).fetchone()
        return float(row["share"]) if row else 0.0

    async def explore(self, share: float) -> None:
        """See `LearningStore`."""
        async with self._database.connection("owner") as connection:
            await connection.execute(self._sql["explore"], {"share": share})
