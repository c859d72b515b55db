"""What one run of the pipeline works with and may do; the steps take it from their state."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from dtrag.concurrency import Admission
from dtrag.core.access import confinement
from dtrag.core.access.scope import Scope, Viewer
from dtrag.core.chat import Message, Usage
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.core.text.questions import content_terms, weighted_terms
from dtrag.core.trace import CallTrace, StepTrace
from dtrag.current_app import active
from dtrag.ports import ChatModel, Embedder, Index, IndexSnapshot
from dtrag.retrieval.request import CANDIDATES
from dtrag.settings import active_flags

if TYPE_CHECKING:
    from dtrag.retrieval.engine import HybridSearchEngine
    from dtrag.tools.registry import ToolRegistry

PASSAGES = 10
"""Passages retrieved for an answer; the composer takes the first five, the rest are evidence of agreement."""
Emit = Callable[[str, Mapping[str, Any]], None]


@dataclass(slots=True)
class Recording:
    """A run while it goes on; the steps add to it."""

    trace_id: uuid.UUID = field(default_factory=uuid.uuid4)
    keeps_text: bool = False
    steps: list[StepTrace] = field(default_factory=list)
    calls: list[CallTrace] = field(default_factory=list)
    facts: dict[str, object] = field(default_factory=dict)
    """Facts of the step that is running; moved into its StepTrace when it ends."""


def _silent(event: str, data: Mapping[str, Any]) -> None:
    """Nobody listens."""


async def _allowed() -> str | None:
    """Whoever runs the pipeline for themselves may call models."""
    return None


async def _ready() -> None:
    """Nothing to wait for."""


async def _only_active(version: str) -> Taxonomy | None:
    """The versions of the tree are not known: there is the active one alone."""
    return None


async def _uncharged(usage: Usage) -> None:
    """Nobody keeps accounts."""


@dataclass(frozen=True, slots=True)
class DebateEvent:
    """A debate started, or ended as finished, failed, timeout or cancelled; with the rounds and calls it had then."""

    outcome: Literal["started", "finished", "failed", "timeout", "cancelled"]
    rounds: int = 0
    calls: int = 0


def _uncounted(event: DebateEvent) -> None:
    """Nobody counts debates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run. `emit(event, data)` is told of what happens: step, token, citations (see docs/explanation/pipeline.md).

    `forbidden()` says in words why no model may be called now, or None; it is asked before every call, and `charge`
    told after it. `prepare` brings the registry up to date before a plan is made. `tools_allowed` are the tools that
    the caller may use, None for all that the policy allows.
    `on_debate` is called when a debate starts and when it ends.
    `flags` are those that were on when the run began: one that is switched meanwhile counts for the next run.
    `taxonomy_version` is the version in whose tree the paths of the request are meant, None or `active` for the active
    one; `tree_of` gives the tree of another version.
    `debates` is `auto` where the calibrated confidence decides whether a debate is worth its price.
    `history` are the earlier turns of a conversation, oldest first, and `history_documents` the ids of the documents
    that their answers rest on.
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
    flags: frozenset[str] = field(default_factory=active_flags)
    debates: str = "always"
    scope: Viewer = field(default_factory=Scope.everything)
    filters: Mapping[str, Any] | None = None
    taxonomy_version: str | None = None
    tree_of: Callable[[str], Awaitable[Taxonomy | None]] = _only_active
    retrieved: int = PASSAGES
    candidates: tuple[int, int] = (CANDIDATES, CANDIDATES)
    history: Sequence[Message] = ()
    history_documents: tuple[str, ...] = ()
    forbidden: Callable[[], Awaitable[str | None]] = _allowed
    charge: Callable[[Usage], Awaitable[None]] = _uncharged
    on_debate: Callable[[DebateEvent], None] = _uncounted
    emit: Emit = _silent
    admission: Admission = field(default_factory=Admission)
    recording: Recording = field(default_factory=Recording)

    @property
    def listened(self) -> bool:
        """Whether somebody wants to hear of what happens while it happens."""
        return self.emit is not _silent


def of_active_app() -> Run:
    """A run by the open app, for a step or a debate that is called alone. Raises `NoActiveApp`."""
    run: Run = active().run
    return replace(run, flags=active_flags(), recording=Recording(), scope=confinement.bounded())


async def counted(question: str, run: Run) -> tuple[IndexSnapshot, LexicalStatistics]:
    """The state of the index, and the counts of the question's terms in the caller's scope of it."""
    snapshot = await run.index.snapshot()
    asked = {*content_terms(question), *(term for term, _ in weighted_terms(question))}
    return snapshot, await run.index.statistics(asked, run.scope.resolved(snapshot.taxonomy))
