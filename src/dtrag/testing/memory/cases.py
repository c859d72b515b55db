"""The case memory in memory: `CaseStore` by comparing every case."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from statistics import fmean

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
    Vote,
)
from dtrag.core.cases.similarity import admits, case_similarity, order
from dtrag.core.cases.statistics import CaseStatistics, CategoryCount, VoterCount
from dtrag.core.cases.votes import (
    POSITIVE,
    CaseRecord,
    CountedVote,
    Replacement,
    Tally,
    count_vote,
    records_of,
    voted_log,
    without_case,
)
from dtrag.testing.memory.state import MemoryState

Visible = Callable[[Collection[uuid.UUID], Scope], Awaitable[frozenset[uuid.UUID]]]


class MemoryCases:
    """Cases of one state; `visible` tells which documents are in a scope."""

    def __init__(self, state: MemoryState, visible: Visible) -> None:
        self._visible = visible
        self._cases, self._logs = state.cases, state.case_logs
        self._votes, self._decisions = state.case_votes, state.case_decisions

    async def add(self, case: Case) -> bool:
        """See `CaseStore`."""
        added = case.case_id not in self._cases
        self._cases.setdefault(case.case_id, case)
        return added

    async def get(self, case_id: str, scope: Scope) -> Case | None:
        """See `CaseStore`."""
        return (await self.of([case_id], scope)).get(case_id)

    async def of(self, case_ids: Collection[str], scope: Scope) -> dict[str, Case]:
        """See `CaseStore`."""
        cases = [self._cases[case_id] for case_id in case_ids if case_id in self._cases]
        return {case.case_id: case for case in await self._in_scope(cases, scope)}

    async def _in_scope(self, cases: Collection[Case], scope: Scope) -> list[Case]:
        if scope.nodes is None:
            return list(cases)
        visible = await self._visible(frozenset(key for case in cases for key in case.document_ids), scope)
        return [
            case
            for case in cases
            if case.node_id in scope.nodes and scope.reads(case.asked_in) and case.document_ids <= visible
        ]

    async def change(self, case_id: str, change: CaseChange, at: datetime, scope: Scope) -> tuple[Case, Case] | None:
        """See `CaseStore`."""
        case = await self.get(case_id, scope)
        if case is None:
            return None
        self._cases[case_id] = change.applied_to(case, at)
        if change.replaces_answer(case):
            self._forget_confirmations(case_id)
        return case, self._cases[case_id]

    def _forget_confirmations(self, case_id: str) -> None:
        for vote_key, counted in [item for item in self._votes.items() if item[0][0] == case_id]:
            if counted.vote.feedback in POSITIVE:
                del self._votes[vote_key]
        for decision_key, decision in [item for item in self._decisions.items() if item[0][0] == case_id]:
            if decision.correct:
                del self._decisions[decision_key]

    async def delete(self, case_id: str, scope: Scope) -> bool:
        """See `CaseStore`."""
        if await self.get(case_id, scope) is None:
            return False
        del self._cases[case_id]
        for vote_key in [key for key in self._votes if key[0] == case_id]:
            del self._votes[vote_key]
        for decision_key in [key for key in self._decisions if key[0] == case_id]:
            del self._decisions[decision_key]
        for log in [log for log in self._logs.values() if case_id in log.case_ids]:
            if log.case_ids == {case_id}:
                del self._logs[log.log_id]
            else:
                self._logs[log.log_id] = without_case(log, case_id)
        return True

    async def nearest(self, query: CaseQuery, scope: Scope) -> ScoredCases:
        """See `CaseStore`."""
        cases = [case for case in await self._in_scope(self._cases.values(), scope) if admits(query, case)]
        scored = [(case, case_similarity(query, case)) for case in cases]
        return sorted(scored, key=lambda pair: order(*pair))[: query.limit]

    async def page(self, scope: Scope, limit: int, after: str | None = None) -> Sequence[Case]:
        """See `CaseStore`."""
        cases = await self._in_scope(self._cases.values(), scope)
        following = [case for case in cases if after is None or case.case_id > after]
        return sorted(following, key=lambda case: case.case_id)[:limit]

    async def without_vector(self, spaces: Collection[str], limit: int, after: str | None = None) -> Sequence[Case]:
        """See `CaseStore`."""
        cases = await self.page(EVERYTHING, len(self._cases), after)
        missing = [case for case in cases if case.vector is None or case.vector.space not in spaces]
        return [case for case in missing if case.query and case.status == "active"][:limit]

    async def put_vectors(self, vectors: Sequence[tuple[Case, QuestionVector]]) -> None:
        """See `CaseStore`."""
        for case, vector in vectors:
            stored = self._cases.get(case.case_id)
            if stored is not None and stored.query == case.query:
                self._cases[case.case_id] = replace(stored, vector=vector)

    async def vote(self, vote: Vote, scope: Scope) -> Case | None:
        """See `CaseStore`."""
        case = await self.get(vote.case_id, scope)
        if case is None:
            return None
        votes = [counted for key, counted in self._votes.items() if key[0] == case.case_id]
        earlier = [counted for counted in votes if counted.vote.voter == vote.voter]
        tally = Tally(len(votes), sum(counted.vote.success for counted in votes))
        counted = count_vote(case, vote, earlier, tally)
        if counted is None:
            return case
        self._cases[case.case_id], stored = counted
        self._votes[case.case_id, vote.voter, vote.log_id] = stored
        log = self._logs.get(vote.log_id)
        if log is None or log.user_id == vote.voter:
            self._logs[vote.log_id] = voted_log(log, vote, case)
        return self._cases[case.case_id]

    async def votes(self, case_ids: Collection[str], scope: Scope) -> dict[str, Sequence[Vote]]:
        """See `CaseStore`."""
        cases = await self.of(case_ids, scope)
        return {case_id: [counted.vote for counted in self._votes_of(case_id)] for case_id in cases}

    def _votes_of(self, case_id: str) -> list[CountedVote]:
        votes = [counted for key, counted in self._votes.items() if key[0] == case_id]
        return sorted(votes, key=lambda counted: (counted.vote.at, counted.vote.voter, counted.vote.log_id))

    async def add_log(self, log: CaseLog) -> None:
        """See `CaseStore`."""
        known = self._logs.get(log.log_id)
        if known is None or known.feedback is None:
            self._logs[log.log_id] = log

    async def log(self, log_id: str, user_id: str) -> CaseLog | None:
        """See `CaseStore`."""
        log = self._logs.get(log_id)
        return log if log is not None and log.user_id == user_id else None

    async def logs(self, scope: Scope, limit: int, *, success_only: bool = False) -> Sequence[CaseLog]:
        """See `CaseStore`."""
        logs = [log for log in await self._logs_in_scope(scope) if log.success or not success_only]
        return sorted(logs, key=lambda log: (log.timestamp, log.log_id), reverse=True)[:limit]

    async def _logs_in_scope(self, scope: Scope) -> list[CaseLog]:
        if scope.nodes is None:
            return list(self._logs.values())
        cases = {case.case_id for case in await self._in_scope(self._cases.values(), scope)}
        cited = {log.log_id: {passage.document_id for passage in log.passages} for log in self._logs.values()}
        visible = await self._visible(frozenset().union(*cited.values()), scope)
        return [
            log
            for log in self._logs.values()
            if log.node_id in scope.nodes
            and scope.reads(log.asked_in)
            and log.case_ids <= cases
            and cited[log.log_id] <= visible
        ]

    async def shown_since(self, since: datetime) -> dict[str, datetime]:
        """See `CaseStore`."""
        shown: dict[str, datetime] = {}
        for log in self._logs.values():
            if log.shown_case_id is not None and log.timestamp >= since:
                shown[log.shown_case_id] = max(log.timestamp, shown.get(log.shown_case_id, since))
        return shown

    async def add_decision(self, decision: ReuseDecision) -> None:
        """See `CaseStore`."""
        if decision.case_id not in self._cases:
            return
        known = self._decisions.get((decision.case_id, decision.asker))
        if known is None or decision.kind == "vote" or known.kind == "replay":
            self._decisions[decision.case_id, decision.asker] = decision

    async def decisions(self, case_id: str | None = None, scope: Scope = EVERYTHING) -> DecisionCounts:
        """See `CaseStore`."""
        visible = await self.of(self._cases, scope)
        decisions = [
            each for each in self._decisions.values() if each.case_id in visible and scope.reads(each.asked_in)
        ]
        correct = [each.correct for each in decisions if case_id in {None, each.case_id}]
        return DecisionCounts(sum(correct), len(correct) - sum(correct))

    async def statistics(self, scope: Scope) -> CaseStatistics:
        """See `CaseStore`."""
        cases, logs = await self._in_scope(self._cases.values(), scope), await self._logs_in_scope(scope)
        voted = [log for log in logs if log.feedback is not None]
        times = [log.execution_time_ms for log in logs if log.kind == "suggestion" and log.similarity_method]
        used = [case for case in cases if case.usage_count]
        methods = Counter(log.similarity_method for log in logs if log.similarity_method)
        return CaseStatistics(
            total_cases=sum(case.status == "active" for case in cases),
            archived_cases=sum(case.status != "active" for case in cases),
            total_interactions=len(logs),
            voters=_voters(voted),
            average_response_time_ms=fmean(times) if times else 0.0,
            average_quality_score=fmean(case.quality_score for case in cases) if cases else 0.0,
            total_usage_count=sum(case.usage_count for case in cases),
            most_used_case=min(used, key=lambda case: (-case.usage_count, case.case_id)).case_id if used else None,
            largest_categories=_largest_categories(cases),
            similarity_method_usage=dict(sorted(methods.items())),
        )

    async def forget_logs(self, before: datetime) -> int:
        """See `CaseStore`."""
        old = [log.log_id for log in self._logs.values() if log.timestamp < before]
        for log_id in old:
            del self._logs[log_id]
        return len(old)

    async def records(self, limit: int, after: str | None = None) -> Sequence[CaseRecord]:
        """See `CaseStore`."""
        following = sorted(case_id for case_id in self._cases if after is None or case_id > after)[:limit]
        votes = [counted for case_id in following for counted in self._votes_of(case_id)]
        decisions = [decision for _, decision in sorted(self._decisions.items())]
        return records_of([self._cases[case_id] for case_id in following], votes, decisions)

    async def put(self, record: CaseRecord) -> bool:
        """See `CaseStore`."""
        if not await self.add(record.case):
            return False
        for counted in record.votes:
            self._votes[counted.vote.case_id, counted.vote.voter, counted.vote.log_id] = counted
        for decision in record.decisions:
            await self.add_decision(decision)
        return True

    async def replace(self, replacements: Sequence[Replacement]) -> bool:
        """See `CaseStore`."""
        if any(self._cases.get(each.before.case_id) != each.before for each in replacements):
            return False
        for each in replacements:
            case_id = each.before.case_id
            self._cases[case_id] = each.after
            for key in [key for key in self._votes if key[0] == case_id and key[2] in each.removed]:
                del self._votes[key]
            for counted in each.added:
                self._votes[case_id, counted.vote.voter, counted.vote.log_id] = counted
        return True

    async def log_page(self, limit: int, after: str | None = None) -> Sequence[CaseLog]:
        """See `CaseStore`."""
        following = sorted(log_id for log_id in self._logs if after is None or log_id > after)
        return [self._logs[log_id] for log_id in following[:limit]]

    async def close(self) -> None:
        """Nothing is open."""


def _voters(logs: Sequence[CaseLog]) -> tuple[VoterCount, ...]:
    """The interactions by caller and kind."""
    grouped: dict[tuple[str, bool], list[bool]] = {}
    for log in logs:
        grouped.setdefault((log.user_id, log.kind == "answer"), []).append(bool(log.success))
    return tuple(VoterCount(*key, len(successes), sum(successes)) for key, successes in sorted(grouped.items()))


def _largest_categories(cases: Sequence[Case]) -> Sequence[CategoryCount]:
    """Cases by node, or by written path where they have none."""
    grouped: dict[tuple[int | None, tuple[str, ...]], list[tuple[str, ...]]] = {}
    for case in cases:
        key = (None, case.category_path) if case.node_id is None else (case.node_id, ())
        grouped.setdefault(key, []).append(case.category_path)
    counts = [CategoryCount(max(paths), node, len(paths)) for (node, _), paths in grouped.items()]
    return sorted(counts, key=lambda category: (-category.cases, category.category_path))[:10]
