"""Port of the case memory's store."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

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
from dtrag.core.cases.statistics import CaseStatistics
from dtrag.core.cases.votes import CaseRecord, Replacement


class CaseStore(Protocol):
    """Cases, their votes, interactions and reuse decisions.

    A case is in a scope when the scope holds its node and every document that it cites, and reads what was asked in its
    scope (`Scope.reads`); with the whole tree every case is, also one without a node or with deleted documents. Every
    read takes the caller's scope, and nothing outside of it is returned, counted or changed. All methods raise
    `DatabaseUnavailable` when the store cannot be reached, and those that add data `StorageFull`. What is acknowledged
    is durable.
    """

    async def add(self, case: Case) -> bool:
        """Store a case; False, without a change, when its id is in use (in any scope)."""

    async def get(self, case_id: str, scope: Scope) -> Case | None:
        """The case, archived or not; None when unknown or out of scope."""

    async def of(self, case_ids: Collection[str], scope: Scope) -> dict[str, Case]:
        """Case id -> case, for those in scope."""

    async def change(self, case_id: str, change: CaseChange, at: datetime, scope: Scope) -> tuple[Case, Case] | None:
        """Replace fields in one transaction; the case before and after, or None when unknown or out of scope."""

    async def delete(self, case_id: str, scope: Scope) -> bool:
        """Delete the case with its votes, decisions and the logs that name only it; other logs no longer name it.

        False when unknown or out of scope.
        """

    async def nearest(self, query: CaseQuery, scope: Scope) -> ScoredCases:
        """The `limit` most similar active cases in scope: exactly those that comparing every case would give."""

    async def page(self, scope: Scope, limit: int, after: str | None = None) -> Sequence[Case]:
        """The next `limit` cases after the id `after`, by id; archived ones, too."""

    async def without_vector(self, spaces: Collection[str], limit: int, after: str | None = None) -> Sequence[Case]:
        """The next `limit` active cases with text whose vector is of none of the spaces, after the id `after`."""

    async def put_vectors(self, vectors: Sequence[tuple[Case, QuestionVector]]) -> None:
        """Store vectors of these cases; those that were deleted or have another question by now are left out."""

    async def vote(self, vote: Vote, scope: Scope) -> Case | None:
        """Apply the vote (core/cases/votes.py) to case and log in one transaction; the case after it.

        None when the case is unknown or out of scope. The same vote again changes nothing. A log id that is unknown
        gets a log of its own.
        """

    async def votes(self, case_ids: Collection[str], scope: Scope) -> dict[str, Sequence[Vote]]:
        """Case id -> the votes on it, oldest first, for those in scope."""

    async def add_log(self, log: CaseLog) -> None:
        """Store an interaction; one with a known id is replaced unless it has feedback."""

    async def log(self, log_id: str, user_id: str) -> CaseLog | None:
        """The interaction of this user, or None."""

    async def logs(self, scope: Scope, limit: int, *, success_only: bool = False) -> Sequence[CaseLog]:
        """The newest interactions whose category, named cases and question are all in scope, newest first."""

    async def shown_since(self, since: datetime) -> dict[str, datetime]:
        """Case id -> when it was last shown with an answer, for those that were shown at `since` or later."""

    async def add_decision(self, decision: ReuseDecision) -> None:
        """Store a reuse decision about a stored case; another of the same asker replaces it, but no replay a vote."""

    async def decisions(self, case_id: str | None = None, scope: Scope = EVERYTHING) -> DecisionCounts:
        """Counts of the reuse decisions about questions that the scope reads: of all cases in scope, or of one."""

    async def statistics(self, scope: Scope) -> CaseStatistics:
        """Figures over what is in scope."""

    async def forget_logs(self, before: datetime) -> int:
        """Delete interactions older than `before`; votes and decisions stay. Returns their number."""

    async def records(self, limit: int, after: str | None = None) -> Sequence[CaseRecord]:
        """The next `limit` cases after the id `after`, with votes and decisions, for a copy of the whole store."""

    async def put(self, record: CaseRecord) -> bool:
        """Store a copied case with its votes and decisions as they are; False, without a change, for a known id."""

    async def replace(self, replacements: Sequence[Replacement]) -> bool:
        """Replace all cases, in one transaction; False, without a change, when one is not stored as it was read."""

    async def log_page(self, limit: int, after: str | None = None) -> Sequence[CaseLog]:
        """The next `limit` interactions after the id `after`, by id, for a copy of the whole store."""

    async def close(self) -> None:
        """Release what the store holds."""
