"""The case memory in an SQLite file: `CaseStore` over cases.sql."""

from __future__ import annotations

import functools
import json
import sqlite3
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from dtrag.adapters.case_codec import FORGOTTEN, STATISTICS, decision_counts, vector_values
from dtrag.adapters.sqlite.connection import (
    CODEC,
    SQL,
    CaseFile,
    nodes_of,
    passages_of,
    path_of,
    rows,
    time_text,
    transaction,
    translated,
)
from dtrag.core.access.scope import EVERYTHING, Scope
from dtrag.core.cases.case import (
    Case,
    CaseChange,
    CaseLog,
    CaseQuery,
    DecisionCounts,
    QuestionVector,
    ReuseDecision,
    ScoredCases,
    SimilarityMethod,
    Vote,
)
from dtrag.core.cases.index import CaseEntry, CaseIndex, admits
from dtrag.core.cases.statistics import CaseStatistics
from dtrag.core.cases.votes import CaseRecord, Replacement, Tally, count_vote, records_of, voted_log
from dtrag.core.text.personal_data_policy import OFF, PersonalDataPolicy
from dtrag.errors import DatabaseUnavailable, StorageFull

T = TypeVar("T")
Ranked = list[tuple[str, float]]
Visible = Callable[[Collection[uuid.UUID], Scope], Awaitable[frozenset[uuid.UUID]]]
"""Which of these documents exist and are in scope."""
_CANDIDATES = 256
"""Cases of a limited scope that are checked at once; more than are returned, so that hidden ones cost no time."""


async def no_documents(document_ids: Collection[uuid.UUID], scope: Scope) -> frozenset[uuid.UUID]:
    """`Visible` where there are no documents: only the whole tree sees cases with passages."""
    return frozenset()


@dataclass(slots=True)
class _WaitingLog:
    """An interaction that is to be written, and why it was not."""

    log: CaseLog
    error: DatabaseUnavailable | StorageFull | None = None


class SqliteCases:
    """The cases in the file `cbr_system.db` of a folder. It is opened at the first use."""

    def __init__(
        self,
        folder: Path,
        visible: Visible = no_documents,
        *,
        cache_seconds: float = 0.0,
        personal_data: PersonalDataPolicy = OFF,
    ) -> None:
        self.folder = folder
        self._file = CaseFile(folder, personal_data)
        self._visible = visible
        self._index = CaseIndex(cache_seconds=cache_seconds)
        self._waiting: deque[_WaitingLog] = deque()

    async def close(self) -> None:
        """Close the file; a later use opens it again."""
        await self._file.close()

    async def add(self, case: Case) -> bool:
        """See `CaseStore`."""

        def work(connection: sqlite3.Connection) -> bool:
            with transaction(connection):
                return connection.execute(SQL["add_case"], CODEC.values(case)).rowcount == 1

        return await self._file.run(work)

    async def get(self, case_id: str, scope: Scope) -> Case | None:
        """See `CaseStore`."""
        return (await self.of([case_id], scope)).get(case_id)

    async def of(self, case_ids: Collection[str], scope: Scope) -> dict[str, Case]:
        """See `CaseStore`."""
        cases = await self._file.run(lambda connection: _cases(connection, case_ids))
        return {case.case_id: case for case in await self._in_scope(cases, scope)}

    async def _in_scope(self, cases: Sequence[Case], scope: Scope) -> list[Case]:
        if scope.nodes is None:
            return list(cases)
        cases = [case for case in cases if case.node_id in scope.nodes and scope.reads(case.asked_in)]
        cited = frozenset(document_id for case in cases for document_id in case.document_ids)
        visible = await self._visible(cited, scope) if cited else frozenset()
        return [case for case in cases if case.document_ids <= visible]

    async def change(self, case_id: str, change: CaseChange, at: datetime, scope: Scope) -> tuple[Case, Case] | None:
        """See `CaseStore`."""

        def work(connection: sqlite3.Connection, case: Case) -> tuple[Case, Case]:
            changed = change.applied_to(case, at)
            connection.execute(SQL["update_case"], CODEC.values(changed))
            if change.replaces_answer(case):
                for name in FORGOTTEN:
                    connection.execute(SQL[name], {"case_id": case_id})
            return case, changed

        return await self._locked(case_id, scope, work)

    async def delete(self, case_id: str, scope: Scope) -> bool:
        """See `CaseStore`."""

        def work(connection: sqlite3.Connection, case: Case) -> bool:
            return connection.execute(SQL["delete_case"], {"case_id": case.case_id}).rowcount == 1

        return await self._locked(case_id, scope, work) or False

    async def _locked(self, case_id: str, scope: Scope, work: Callable[[sqlite3.Connection, Case], T]) -> T | None:
        """The work in a transaction, with the case as it is then; None when it is unknown or out of scope."""
        while True:
            seen = await self.get(case_id, scope) if scope.nodes is not None else None
            if scope.nodes is not None and seen is None:
                return None

            def locked(connection: sqlite3.Connection, seen: Case | None = seen) -> tuple[bool, T | None]:
                with transaction(connection):
                    now = next(iter(_cases(connection, [case_id])), None)
                    if now is None:
                        return True, None
                    if seen is not None and seen.is_elsewhere(now):
                        return False, None  # it was moved meanwhile: whether it is in scope has to be checked again
                    return True, work(connection, now)

            done, result = await self._file.run(locked)
            if done:
                return result

    async def nearest(self, query: CaseQuery, scope: Scope) -> ScoredCases:
        """See `CaseStore`."""
        if scope.nodes is None:
            ranked, cases = await self._file.run(functools.partial(self._best, query))
        else:
            ranked, cases = await self._best_in_scope(query, scope)
        known = {case.case_id: case for case in cases if admits(query, case)}
        return [(known[case_id], score) for case_id, score in ranked if case_id in known]

    def _best(self, query: CaseQuery, connection: sqlite3.Connection) -> tuple[Ranked, list[Case]]:
        ranked = self._current_index(connection, query).nearest(query, None, query.limit)
        return ranked, _cases(connection, [case_id for case_id, _ in ranked])

    async def _best_in_scope(self, query: CaseQuery, scope: Scope) -> tuple[Ranked, list[Case]]:
        count = max(_CANDIDATES, 4 * query.limit)
        while True:
            ranked, entries = await self._file.run(functools.partial(self._candidates, query, scope, count))
            readable = {entry.case_id: entry.document_ids for entry in entries if scope.reads(entry.asked_in)}
            documents = frozenset[uuid.UUID]().union(*readable.values())
            visible = await self._visible(documents, scope) if documents else frozenset()
            shown = [(key, score) for key, score in ranked if key in readable and readable[key] <= visible]
            shown = shown[: query.limit]
            if len(shown) >= query.limit or len(ranked) < count:
                return shown, list((await self.of([case_id for case_id, _ in shown], scope)).values())
            count *= 4

    def _candidates(
        self, query: CaseQuery, scope: Scope, count: int, connection: sqlite3.Connection
    ) -> tuple[Ranked, list[CaseEntry]]:
        """The nearest cases in the categories of the scope, and their entries."""
        index = self._current_index(connection, query)
        ranked = index.nearest(query, scope.nodes, count)
        return ranked, [index.entry(case_id) for case_id, _ in ranked]

    def _current_index(self, connection: sqlite3.Connection, query: CaseQuery) -> CaseIndex:
        """The index with all changes; with embeddings where the query compares them."""
        if query.method is SimilarityMethod.SEMANTIC and not self._index.vectors:
            self._index = self._index.emptied(vectors=True)
        index = self._index
        revision = rows(connection, "revision", {})[0]["revision"]
        if revision < index.revision:  # an older state of the file was restored
            index = self._index = index.emptied(vectors=index.vectors)
        if revision != index.revision:
            values = {"known": index.revision, "vectors": index.vectors}
            index.apply(connection.execute(SQL["changes"], values), _entry_of)
            index.revision = max(index.revision, revision)
        return index

    async def page(self, scope: Scope, limit: int, after: str | None = None) -> Sequence[Case]:
        """See `CaseStore`."""
        page: list[Case] = []
        while len(page) < limit:
            values = {"after": after, "limit": limit}
            cases = [CODEC.of(Case, row) for row in await self._rows("page", values)]
            page += await self._in_scope(cases, scope)
            if len(cases) < limit:
                break
            after = cases[-1].case_id
        return page[:limit]

    async def without_vector(self, spaces: Collection[str], limit: int, after: str | None = None) -> Sequence[Case]:
        """See `CaseStore`."""
        values = {"spaces": json.dumps(list(spaces)), "limit": limit, "after": after}
        return [CODEC.of(Case, row) for row in await self._rows("without_vector", values)]

    async def put_vectors(self, vectors: Sequence[tuple[Case, QuestionVector]]) -> None:
        """See `CaseStore`."""
        values = [{"case_id": case.case_id, "query": case.query, **vector_values(vector)} for case, vector in vectors]

        def work(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                connection.executemany(SQL["put_vector"], values)

        await self._file.run(work)

    async def vote(self, vote: Vote, scope: Scope) -> Case | None:
        """See `CaseStore`."""

        def work(connection: sqlite3.Connection, case: Case) -> Case:
            place = {"case_id": case.case_id, "voter": vote.voter}
            earlier = [CODEC.vote_of(row) for row in rows(connection, "votes_of_voter", place)]
            tally = rows(connection, "tally", {"case_id": case.case_id})[0]
            counted = count_vote(case, vote, earlier, Tally(tally["votes"], tally["successes"]))
            if counted is None:
                return case
            after, stored = counted
            connection.execute(SQL["put_vote"], CODEC.vote_values(stored))
            connection.execute(SQL["update_case"], CODEC.values(after))
            log = _log(connection, vote.log_id)
            if log is None or log.user_id == vote.voter:
                _put_log(connection, voted_log(log, vote, case))
            return after

        return await self._locked(vote.case_id, scope, work)

    async def votes(self, case_ids: Collection[str], scope: Scope) -> dict[str, Sequence[Vote]]:
        """See `CaseStore`."""
        grouped: dict[str, list[Vote]] = {case_id: [] for case_id in await self.of(case_ids, scope)}
        for row in await self._rows("votes", {"case_ids": json.dumps(list(grouped))}):
            grouped[row["case_id"]].append(CODEC.vote_of(row).vote)
        return dict(grouped)

    async def add_log(self, log: CaseLog) -> None:
        """See `CaseStore`. Those that wait at the same time are written in one transaction: one sync of the disk."""
        waiting = _WaitingLog(log)
        self._waiting.append(waiting)
        await self._file.run(self._write_waiting)
        if waiting.error is not None:
            raise waiting.error

    def _write_waiting(self, connection: sqlite3.Connection) -> None:
        batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if not batch:
            return
        try:
            with transaction(connection):
                for waiting in batch:
                    known = _log(connection, waiting.log.log_id)
                    if known is None or known.feedback is None:
                        _put_log(connection, waiting.log)
        except sqlite3.Error as error:
            for waiting in batch:
                waiting.error = translated(error, self.folder)

    async def log(self, log_id: str, user_id: str) -> CaseLog | None:
        """See `CaseStore`."""
        log = await self._file.run(lambda connection: _log(connection, log_id))
        return log if log is not None and log.user_id == user_id else None

    async def logs(self, scope: Scope, limit: int, *, success_only: bool = False) -> Sequence[CaseLog]:
        """See `CaseStore`."""
        logs: list[CaseLog] = []
        last: CaseLog | None = None
        while len(logs) < limit:
            values = {
                "timestamp": time_text(last.timestamp) if last else None,
                "log_id": last.log_id if last else None,
                "success_only": success_only,
                "limit": limit,
            }
            read = [CODEC.of(CaseLog, row) for row in await self._rows("logs_before", values)]
            logs += await self._logs_in_scope(read, scope)
            if len(read) < limit:
                break
            last = read[-1]
        return logs[:limit]

    async def _logs_in_scope(self, logs: Sequence[CaseLog], scope: Scope) -> list[CaseLog]:
        if scope.nodes is None:
            return list(logs)
        logs = [log for log in logs if log.node_id in scope.nodes and scope.reads(log.asked_in)]
        cases = await self.of({case_id for log in logs for case_id in log.case_ids}, scope)
        cited = frozenset(passage.document_id for log in logs for passage in log.passages)
        visible = await self._visible(cited, scope) if cited else frozenset()
        return [
            log
            for log in logs
            if log.case_ids <= cases.keys() and {passage.document_id for passage in log.passages} <= visible
        ]

    async def shown_since(self, since: datetime) -> dict[str, datetime]:
        """See `CaseStore`."""
        shown = await self._rows("shown_since", {"since": time_text(since)})
        return {row["case_id"]: datetime.fromisoformat(row["shown_at"]) for row in shown}

    async def add_decision(self, decision: ReuseDecision) -> None:
        """See `CaseStore`."""

        def work(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                connection.execute(SQL["put_decision"], CODEC.values(decision))

        await self._file.run(work)

    async def decisions(self, case_id: str | None = None, scope: Scope = EVERYTHING) -> DecisionCounts:
        """See `CaseStore`."""
        if scope.nodes is not None:
            decisions = [CODEC.of(ReuseDecision, row) for row in await self._rows("decisions_on", {"case_id": case_id})]
            readable = [decision for decision in decisions if scope.reads(decision.asked_in)]
            visible = await self.of({decision.case_id for decision in readable}, scope)
            correct = [decision.correct for decision in readable if decision.case_id in visible]
            return DecisionCounts(sum(correct), len(correct) - sum(correct))
        return decision_counts(await self._rows("decision_counts", {"case_id": case_id}))

    async def statistics(self, scope: Scope) -> CaseStatistics:
        """See `CaseStore`."""
        ids = {"cases": None, "logs": None} if scope.nodes is None else await self._ids_in_scope(scope)

        def work(connection: sqlite3.Connection) -> CaseStatistics:
            return CODEC.statistics_of({name: rows(connection, name, ids) for name in STATISTICS})

        return await self._file.run(work)

    async def _ids_in_scope(self, scope: Scope) -> Mapping[str, str]:
        """The ids of the cases and interactions in a limited scope, as JSON."""
        nodes = {"nodes": json.dumps(sorted(scope.nodes or ()))}
        case_rows = [row for row in await self._rows("case_places", nodes) if scope.reads(nodes_of(row["asked_in"]))]
        places = [(row["case_id"], _documents(row)) for row in case_rows]
        log_rows = [row for row in await self._rows("log_places", nodes) if scope.reads(nodes_of(row["asked_in"]))]
        cited = frozenset(key for _, documents in places for key in documents).union(*map(_documents, log_rows))
        visible = await self._visible(cited, scope) if cited else frozenset()
        cases = {case_id for case_id, documents in places if documents <= visible}
        logs = [row["log_id"] for row in log_rows if _named(row) <= cases and _documents(row) <= visible]
        return {"cases": json.dumps(sorted(cases)), "logs": json.dumps(logs)}

    async def forget_logs(self, before: datetime) -> int:
        """See `CaseStore`."""

        def work(connection: sqlite3.Connection) -> int:
            with transaction(connection):
                return connection.execute(SQL["forget_logs"], {"before": time_text(before)}).rowcount

        return await self._file.run(work)

    async def records(self, limit: int, after: str | None = None) -> Sequence[CaseRecord]:
        """See `CaseStore`."""

        def work(connection: sqlite3.Connection) -> list[CaseRecord]:
            cases = [CODEC.of(Case, row) for row in rows(connection, "page", {"after": after, "limit": limit})]
            ids = {"case_ids": json.dumps([case.case_id for case in cases])}
            votes = [CODEC.vote_of(row) for row in rows(connection, "votes", ids)]
            decisions = [CODEC.of(ReuseDecision, row) for row in rows(connection, "decisions", ids)]
            return records_of(cases, votes, decisions)

        return await self._file.run(work)

    async def put(self, record: CaseRecord) -> bool:
        """See `CaseStore`."""

        def work(connection: sqlite3.Connection) -> bool:
            with transaction(connection):
                if connection.execute(SQL["add_case"], CODEC.values(record.case)).rowcount != 1:
                    return False
                connection.executemany(SQL["put_vote"], map(CODEC.vote_values, record.votes))
                connection.executemany(SQL["put_decision"], map(CODEC.values, record.decisions))
            return True

        return await self._file.run(work)

    async def replace(self, replacements: Sequence[Replacement]) -> bool:
        """See `CaseStore`."""

        def work(connection: sqlite3.Connection) -> bool:
            with transaction(connection):
                stored = _cases(connection, [each.before.case_id for each in replacements])
                by_id = {case.case_id: case for case in stored}
                if any(by_id.get(each.before.case_id) != each.before for each in replacements):
                    return False
                for each in replacements:
                    removed = {"case_id": each.before.case_id, "log_ids": json.dumps(sorted(each.removed))}
                    connection.execute(SQL["remove_votes"], removed)
                    connection.execute(SQL["update_case"], CODEC.values(each.after))
                    connection.executemany(SQL["put_vote"], map(CODEC.vote_values, each.added))
            return True

        return await self._file.run(work)

    async def log_page(self, limit: int, after: str | None = None) -> Sequence[CaseLog]:
        """See `CaseStore`."""
        return [CODEC.of(CaseLog, row) for row in await self._rows("log_page", {"after": after, "limit": limit})]

    async def _rows(self, name: str, values: Mapping[str, object]) -> list[sqlite3.Row]:
        return await self._file.run(lambda connection: rows(connection, name, values))


def _cases(connection: sqlite3.Connection, case_ids: Iterable[str]) -> list[Case]:
    return [CODEC.of(Case, row) for row in rows(connection, "cases", {"case_ids": json.dumps(list(case_ids))})]


def _log(connection: sqlite3.Connection, log_id: str) -> CaseLog | None:
    return next((CODEC.of(CaseLog, row) for row in rows(connection, "log", {"log_id": log_id})), None)


def _put_log(connection: sqlite3.Connection, log: CaseLog) -> None:
    connection.execute(SQL["delete_log"], {"log_id": log.log_id})
    connection.execute(SQL["put_log"], CODEC.log_values(log))


def _entry_of(row: sqlite3.Row) -> CaseEntry:
    return CODEC.entry_of(row, _documents(row), nodes_of(row["asked_in"]))


def _documents(row: sqlite3.Row) -> frozenset[uuid.UUID]:
    return frozenset(passage.document_id for passage in passages_of(row["passages"]))


def _named(row: sqlite3.Row) -> frozenset[str]:
    shown = (row["shown_case_id"],) if row["shown_case_id"] else ()
    return frozenset({*path_of(row["suggested_case_ids"]), *path_of(row["picked_case_ids"]), *shown})
