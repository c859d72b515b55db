"""`Run`: the collaborators, permissions and limits of one run of the pipeline; steps take it from their state."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from dtrag.concurrency import Admission, limit_clock
from dtrag.core.access import confinement
from dtrag.core.access.scope import Scope, Viewer
from dtrag.core.answer_record import TextKey
from dtrag.core.answers.passage_confidence import Policy
from dtrag.core.chat import Message, Usage
from dtrag.core.documents import SearchResult
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.taxonomy.grades import Grades, TreeGrades
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.core.text.questions import content_terms, weighted_terms
from dtrag.core.text.sentences import Preceding, beginning_of, begins_inside
from dtrag.core.trace import CallTrace, StepTrace
from dtrag.current_app import active
from dtrag.destinations import Outgoing, limit_of
from dtrag.ports import ChatModel, Embedder, Index, IndexSnapshot
from dtrag.retrieval.request import CANDIDATES
from dtrag.settings import active_flags

if TYPE_CHECKING:
    from dtrag.core.cases.bandit import WayToAnswer
    from dtrag.ports.cases import AnswersRecalled, Recalled
    from dtrag.ports.stores import Learner
    from dtrag.retrieval.engine import HybridSearchEngine
    from dtrag.tools.registry import ToolRegistry

PRECEDING_PASSAGES = 12
"""Passages before one that are read for the header of its table: about 20,000 characters."""
Emit = Callable[[str, Mapping[str, Any]], None]


@dataclass(slots=True)
class Recording:
    """The record of a run in progress, to which the steps add."""

    trace_id: uuid.UUID = field(default_factory=uuid.uuid4)
    keeps_text: bool = False
    started: float = field(default_factory=limit_clock)
    """When the first step could begin: the origin of the times of steps and calls."""
    steps: list[StepTrace] = field(default_factory=list)
    calls: list[CallTrace] = field(default_factory=list)
    way: WayToAnswer | None = None
    """The choice of weights and composing, if there is one."""
    recalled: Recalled | None = None
    """What the case memory knows about the question; None when it was not used, failed or was late."""
    filters: Mapping[str, Any] = field(default_factory=dict)
    """What the search was restricted to, with categories of the active tree."""
    facts: dict[str, object] = field(default_factory=dict)
    """Facts about the current step; moved into its StepTrace when it ends."""


def _silent(event: str, data: Mapping[str, Any]) -> None:
    """No listener."""


async def _allowed() -> str | None:
    """Model calls are not restricted."""
    return None


def _no_key() -> None:
    """Questions are not recorded."""


async def _ready() -> None:
    """Nothing to prepare."""


async def _only_active(version: str) -> Taxonomy | None:
    """No version but the active one is known."""
    return None


async def _uncharged(usage: Usage) -> None:
    """Usage is not charged."""


@dataclass(frozen=True, slots=True)
class DebateEvent:
    """The start of a debate, or its end with an outcome and the rounds and calls until then."""

    outcome: Literal["started", "finished", "failed", "timeout", "cancelled"]
    rounds: int = 0
    calls: int = 0


def _unobserved(event: DebateEvent) -> None:
    """Debates are not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run. `emit(event, data)` receives its events: step, token, citations (see docs/explanation/pipeline.md).

    `forbidden()` returns the reason why model calls are blocked, or None; it is called before every call of a model,
    and `charge` after it. `learning` chooses the fusion weights, if a flag or exploration asks for it.
    `prepare` updates the registry before a plan is made. `tools_allowed` are the tools that the caller may use, None
    for all that the policy allows.
    `on_debate` is called when a debate starts and when it ends.
    `flags` are those that were on when the run began; a flag that is switched later affects the next run.
    `taxonomy_version` is the version of the tree that the request's paths refer to, None or `active` for the active
    one; `tree_of` returns the tree of another version.
    `debates` is `always`, or `auto` where the calibrated confidence decides whether a debate is worth its cost.
    `retrieved` is the number of passages to retrieve, None: as many as the question needs.
    `policy` decides how sure an answer must be. `reads`: the model orders the first passages before it composes.
    `reuse` finds earlier answers to the same question, if the flag `cbr_enabled` is on; without `memory` this run does
    not use them, and is not remembered either.
    `owner` is the id of the asker's key, "" without one. `history` are the earlier messages of a conversation, oldest
    first, and `history_documents` the ids of the documents that their answers rest on.
    `identity` names the models and settings of the service that decide an answer, and `text_key` gives the key of the
    hashes of questions in the record of an answer; None: they are not recorded.
    """

    engine: HybridSearchEngine
    index: Index
    embedder: Embedder | None
    model: ChatModel | None = None
    critic: ChatModel | None = None
    tools: ToolRegistry | None = None
    prepare: Callable[[], Awaitable[None]] = _ready
    tools_allowed: tuple[str, ...] | None = None
    debate_allowed: bool = True
    reads: bool = True
    flags: frozenset[str] = field(default_factory=active_flags)
    debates: str = "always"
    policy: Policy = "balanced"
    scope: Viewer = field(default_factory=Scope.everything)
    filters: Mapping[str, Any] | None = None
    owner: str = ""
    learning: Learner | None = None
    reuse: AnswersRecalled | None = None
    memory: bool = True
    taxonomy_version: str | None = None
    tree_of: Callable[[str], Awaitable[Taxonomy | None]] = _only_active
    retrieved: int | None = None
    candidates: tuple[int, int] = (CANDIDATES, CANDIDATES)
    history: Sequence[Message] = ()
    history_documents: tuple[str, ...] = ()
    forbidden: Callable[[], Awaitable[str | None]] = _allowed
    charge: Callable[[Usage], Awaitable[None]] = _uncharged
    on_debate: Callable[[DebateEvent], None] = _unobserved
    emit: Emit = _silent
    identity: Mapping[str, str] = field(default_factory=dict)
    text_key: Callable[[], TextKey | None] = _no_key
    grades: Grades = Grades()
    admission: Admission = field(default_factory=Admission)
    recording: Recording = field(default_factory=Recording)

    @property
    def has_listener(self) -> bool:
        """Whether events go anywhere: without a listener nothing is streamed."""
        return self.emit is not _silent

    async def tree_grades(self) -> TreeGrades:
        """The grades of the tree that the search has read last."""
        return self.grades.of((self.index.latest or await self.index.snapshot()).taxonomy)

    async def outgoing(self, model: ChatModel | None) -> Outgoing:
        """What the model may be sent."""
        return Outgoing(await self.tree_grades(), limit_of(model))


def of_active_app() -> Run:
    """A run of the open app, for a step or a debate that is called alone. Raises `NoActiveApp`."""
    run: Run = active().run
    return replace(run, flags=active_flags(), recording=Recording(), scope=confinement.bounded())


async def preceding_texts(passages: Sequence[SearchResult], run: Run, taxonomy: Taxonomy) -> dict[str, Preceding]:
    """Id of a passage that begins inside a table or a list -> the beginning of that table or list, in scope."""
    distinct = {passage.chunk_id: passage for passage in passages}.values()
    inside = [passage for passage in distinct if passage.start and begins_inside(passage.text)]
    if not inside:
        return {}
    keys = [passage.chunk_id for passage in inside]
    before = await run.index.preceding(keys, run.scope.resolved(taxonomy), PRECEDING_PASSAGES)
    beginnings = {passage.chunk_id: beginning_of(passage.start, before.get(passage.chunk_id, ())) for passage in inside}
    return {chunk_id: preceding for chunk_id, preceding in beginnings.items() if preceding is not None}


async def question_statistics(
    question: str, run: Run, more: Iterable[tuple[int, float]] = ()
) -> tuple[IndexSnapshot, LexicalStatistics]:
    """The state of the index that the search has read last, and the frequencies of the question's terms and `more` in
    the caller's scope."""
    snapshot = run.index.latest or await run.index.snapshot()
    question_terms = {*content_terms(question), *(term for term, _ in (*weighted_terms(question), *more))}
    return snapshot, await run.index.statistics(question_terms, run.scope.resolved(snapshot.taxonomy))
