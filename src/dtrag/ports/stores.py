"""Ports of what is recorded of questions (conversations, traces, evaluation runs, experiences), and all stores."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from dtrag.core.access.scope import Scope
from dtrag.core.answer_feedback import AnswerFeedback
from dtrag.core.cases.bandit import Experience, WayToAnswer
from dtrag.core.conversation import Conversation, Turn
from dtrag.core.evaluation_run import EvaluationRun, RunSummary
from dtrag.core.trace import Trace
from dtrag.ports.cases import CaseStore
from dtrag.ports.connectors import SourceStore
from dtrag.ports.governance import (
    AgentStore,
    AuditSpoolStore,
    AuditStore,
    KeyStore,
    PeopleStore,
    PublicSpendingStore,
    RateLimitStore,
    SessionStore,
)
from dtrag.ports.index import DocumentChangeStore, DocumentIndex, FolderStore, IndexSettings, IndexWriter
from dtrag.ports.jobs import JobStore
from dtrag.ports.packs import RegulationStore
from dtrag.ports.taxonomy import PlacementStore, ReviewStore, TaxonomyStore
from dtrag.ports.tools import ApprovalStore
from dtrag.ports.vectors import ImaginedStore, VectorStore


class Learner(Protocol):
    """Chooses ways of answering, and learns which of them pay."""

    async def way_to_answer(
        self, complexity: str, intent: str, asker: str, flags: Collection[str]
    ) -> WayToAnswer | None:
        """The choice for a question, or None when nothing is to be chosen or learned. Never raises."""

    def finished(
        self, way: WayToAnswer, answer_id: str, confidence: float, seconds: float, flags: Collection[str]
    ) -> None:
        """Note what the answer earned; returns at once."""


class LearningStore(Protocol):
    """Experiences hold numbers only, no questions and no ids of documents: they have no scope.

    All methods raise `DatabaseUnavailable` when the store cannot be reached.
    """

    async def add(self, experiences: Sequence[Experience], most: int) -> None:
        """Append experiences, ignoring those with a known id, and delete all but the newest `most`."""

    async def follow(self, experience_id: str, state: int) -> None:
        """Set the next state of an experience; nothing happens when it is unknown."""

    async def experiences(self) -> list[Experience]:
        """All of them, the oldest first."""

    async def exploration(self) -> float:
        """The share of answers in [0, 1] that explore; 0.0 unless it was set."""

    async def explore(self, share: float) -> None:
        """Set that share."""


class TraceStore(Protocol):
    """Traces of pipeline runs, and feedback on their answers.

    All methods raise `DatabaseUnavailable`; those that add data raise `StorageFull`.
    """

    async def add(self, traces: Sequence[Trace]) -> None:
        """Store all traces, or none; traces with known ids are ignored."""

    async def get(self, trace_id: uuid.UUID, since: datetime) -> Trace | None:
        """The trace; None when unknown or older than `since`."""

    async def newest(
        self, limit: int, owner: str | None, since: datetime, after: Trace | None, *, until: datetime | None = None
    ) -> list[Trace]:
        """The next `limit` traces not older than `since`, but than `until`, that follow `after`, newest first.

        `owner` restricts to the owner's (None: all); `after` None starts with the newest.
        """

    async def outcomes(self, limit: int, since: datetime) -> tuple[int, int]:
        """The number of the newest traces not older than `since`, at most `limit`, and of those whose answer cites."""

    async def forget(self, before: datetime) -> int:
        """Delete all traces and feedback older than `before`; returns the number of traces."""

    async def put_feedback(self, feedback: AnswerFeedback) -> None:
        """Store the feedback durably; an earlier one of the same voter on the same answer is replaced.

        The trace need not be stored.
        """

    async def feedback_by(self, voter: str, trace_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, AnswerFeedback]:
        """The voter's own feedback on these answers, by trace id; answers without it are left out."""


class EvaluationStore(Protocol):
    """Runs of evaluations that were kept."""

    async def add(self, run: EvaluationRun) -> None:
        """Store the run; one with a known id is ignored."""

    async def get(self, run_id: uuid.UUID) -> EvaluationRun | None:
        """The run; None when it is unknown."""

    async def newest(self, limit: int, after: EvaluationRun | None) -> list[RunSummary]:
        """Summaries of the next `limit` runs after `after` (None: from the start), newest first, as stored."""

    async def delete(self, run_id: uuid.UUID) -> bool:
        """Delete the run; False when it is unknown."""


class DocumentVisibility(Protocol):
    """Tells which documents a scope may see: stored answers are shown only with all their documents visible."""

    async def visible(self, document_ids: Collection[uuid.UUID], scope: Scope) -> frozenset[uuid.UUID]:
        """The documents among these that exist and are in scope."""

    async def titles(self, document_ids: Collection[uuid.UUID], scope: Scope) -> dict[uuid.UUID, str]:
        """The titles of the documents among these that exist and are in scope."""


class ConversationStore(Protocol):
    """Conversations by id and owner: the same id with another owner is another conversation."""

    async def add(
        self, conversation_id: str, owner: str, turn: Turn, max_turns: int, traces: Sequence[Trace] = ()
    ) -> int:
        """Append the turn, whose own number is ignored, delete all but the last `max_turns` turns, and store `traces`.

        All of it or nothing. Returns its number. Concurrent turns are all stored, in an unspecified order.
        """

    async def turns(self, conversation_id: str, owner: str, limit: int, since: datetime) -> list[Turn]:
        """The last `limit` turns, oldest first; empty when the conversation's last turn is older than `since`."""

    async def turn_of(self, trace_id: uuid.UUID, owner: str, since: datetime) -> Turn | None:
        """The owner's turn with the answer of this trace, of a conversation not older than `since`; None if unknown."""

    async def get(self, conversation_id: str, owner: str, max_turns: int, since: datetime) -> Conversation | None:
        """The conversation with its last `max_turns` turns; None when unknown or older than `since`."""

    async def every(
        self, owner: str, max_turns: int, since: datetime, limit: int, offset: int, *, text: str = ""
    ) -> tuple[list[Conversation], int]:
        """A page of the owner's conversations not older than `since`, newest first, and their total number.

        Only those with `text`, in any case, in their title or in one of their questions.
        """

    async def rename(self, conversation_id: str, owner: str, title: str, since: datetime) -> bool:
        """Set the title of the conversation; False when it does not exist or is older than `since`."""

    async def delete(self, conversation_id: str, owner: str) -> bool:
        """Delete the conversation with its turns; False when it does not exist."""

    async def forget(self, before: datetime) -> int:
        """Delete all conversations whose last turn is older than `before`; returns their number."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of one database. What one of them writes, the others read.

    `audit_spool` takes lines of the audit log that the database cannot take; None: they are lost with an error.
    """

    index: DocumentIndex
    index_settings: IndexSettings
    writer: IndexWriter
    document_changes: DocumentChangeStore
    vectors: VectorStore
    imagined: ImaginedStore
    folders: FolderStore
    sources: SourceStore
    regulations: RegulationStore
    placements: PlacementStore
    review: ReviewStore
    taxonomy: TaxonomyStore
    agents: AgentStore
    public_spending: PublicSpendingStore
    keys: KeyStore
    sessions: SessionStore
    people: PeopleStore
    rate_limits: RateLimitStore
    audit: AuditStore
    approvals: ApprovalStore
    sight: DocumentVisibility
    conversations: ConversationStore
    traces: TraceStore
    evaluations: EvaluationStore
    cases: CaseStore
    jobs: JobStore
    learning: LearningStore
    audit_spool: AuditSpoolStore | None = None
