"""Ports of the case memory: its store, and what answers and reviews use of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, Protocol

from dtrag.core.access.api_key import Caller
from dtrag.core.access.scope import EVERYTHING, Scope, Viewer
from dtrag.core.cases.case import (
    Case,
    CaseChange,
    CaseLog,
    CaseQuery,
    DecisionCounts,
    FeedbackType,
    QuestionVector,
    ReuseDecision,
    ScoredCases,
    Vote,
)
from dtrag.core.cases.statistics import CaseStatistics
from dtrag.core.cases.votes import CaseRecord, Replacement
from dtrag.core.documents import SearchResult
from dtrag.core.taxonomy.review import ReviewItem

Silence = Literal["", "no_case", "other_question", "stale", "evidence", "conflict", "late", "other_scope"]


@dataclass(frozen=True, slots=True)
class Recalled:
    """What the memory knows about a question.

    `case` may be shown, and `passages` are the ids of its current passages, in the order in which it cites them; None
    when the memory is silent, with the reason in `silence`. `raises`: they may change the ranking of the search, which
    passages chosen by hand never do. `same` are all cases with the same question whose passages
    are current: they are judged by the answer when the memory is silent. The numbers count candidates, those with the
    same question, and of these the ones with changed passages; `code` is the rule that the evidence of the best one
    breaks. `offered` are cases with a similar question, which may be shown as such, most similar first.
    """

    case: Case | None = None
    passages: tuple[str, ...] = ()
    raises: bool = False
    same: tuple[Case, ...] = ()
    silence: Silence = ""
    code: str = ""
    candidates: int = 0
    with_same_question: int = 0
    stale: int = 0
    offered: tuple[Case, ...] = ()


NotRetained = Literal["", "declined", "unfinished", "follow_up", "filtered", "no_category"]
"""Why an answered question makes no case; "" when it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredQuestion:
    """An answered question, as the pipeline hands it over.

    `cited` are the passages that the answer cites, in the order of its citations. `not_retained` says why it makes no
    case. `shown_case_id` is the case that was shown with it.
    """

    trace_id: str
    question: str
    owner: str
    viewer: Viewer
    answered_at: datetime
    cited: tuple[SearchResult, ...]
    decision: str
    confidence: float
    seconds: float
    not_retained: NotRetained = ""
    recalled: Recalled | None = None
    shown_case_id: str | None = None

    @property
    def as_of(self) -> date | None:
        """The day of the question; None for today."""
        return self.viewer.as_of


@dataclass(frozen=True, slots=True)
class CaseEffect:
    """What feedback on an answer did to the memory: it made a case, counted as a vote on one, or neither (`note`)."""

    effect: Literal["recorded", "case_made", "case_voted"] = "recorded"
    case_id: str | None = None
    note: str = ""


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


class AnswersRecalled(Protocol):
    """What a run asks of the case memory."""

    async def recall(self, question: str, viewer: Viewer) -> Recalled:
        """What the memory knows about the question, for this viewer on this day. Raises `DatabaseUnavailable`."""


class AnswersRetained(Protocol):
    """What feedback on answers does in the case memory."""

    async def interaction(self, trace_id: str, caller: Caller) -> CaseLog | None:
        """The interaction of an own answer; None for an unknown one. Raises `DatabaseUnavailable`."""

    async def feedback(self, log: CaseLog, kind: FeedbackType, caller: Caller) -> CaseEffect:
        """What the caller's feedback on an own answer does; durable when this returns."""


class AnswersReviewed(Protocol):
    """Makes cases from decisions of reviewers; while the memory is off (`enabled`) none."""

    @property
    def enabled(self) -> bool: ...

    async def add(self, item: ReviewItem, scope: Scope) -> str | None:
        """The id of the case for a decided answer, if it makes one."""

    async def add_missing(self, items: Iterable[ReviewItem]) -> list[str]:
        """As `add`, for answers that were decided while the memory was off; the ids of the new cases."""
