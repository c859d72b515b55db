"""What travels through the pipeline, and what goes in and comes out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any

from dtrag.core.answers.confidence import Confidence
from dtrag.core.chat import Usage
from dtrag.core.documents import Answer, Citation, SearchMetrics, SearchResult
from dtrag.core.ranking.bm25 import LexicalStatistics

if TYPE_CHECKING:
    from dtrag.core.debate import DebateResult
    from dtrag.pipeline.run import Run


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the retrieve step found, as the search engine tells it; chunks of the state are made of it."""

    passages: tuple[SearchResult, ...]
    statistics: LexicalStatistics
    metrics: SearchMetrics
    confidence: Confidence


@dataclass
class PipelineState:
    """Steps fill the fields. A step that is skipped leaves the state equal to what it was.

    `retrieved_chunks`: dicts with chunk_id, text, title, source_url, taxonomy_path, score, date, version.
    `sources`: what the answer cites, dicts with number, label, chunk_id, document_id, url, title, date, version, quote,
    start, end. `confidence` in [0, 1]. `step_timings` in seconds, of the steps that ran.
    `search_query` is what is searched for where that is not the question itself (a follow-up, rewritten). `model` is
    the model that wrote the answer, None for quotations. `unfinished`: the answer is that there was not time enough.
    `plan`: {tools, steps, strategy, reasoning, inputs: {tool: input}}; `tool_results`: dicts with tool, success,
    result, error, elapsed. There is no `debate_result` until a debate has finished.
    """

    query: str
    intent: str = ""
    retrieved_chunks: list[dict[str, Any]] = field(default_factory=list)
    answer: str | None = None
    sources: list[dict[str, Any]] = field(default_factory=list)
    confidence: float = 0.0
    taxonomy_version: str = "1.0.0"
    canonical_filter: list[list[str]] | None = None
    start_time: float = field(default_factory=time.perf_counter, compare=False)
    step_timings: dict[str, float] = field(default_factory=dict)
    plan: dict[str, Any] | None = None
    tool_results: list[dict[str, Any]] = field(default_factory=list)
    decision: str = ""
    reason: str = ""
    degraded: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    citations: tuple[Citation, ...] = ()
    model: str | None = None
    unfinished: bool = False
    search_query: str | None = None
    evidence: Evidence | None = field(default=None, repr=False)
    if TYPE_CHECKING:  # an attribute, which type checkers do not know of an InitVar
        run: Run | None = None
    else:
        run: InitVar[Run | None] = None
        """What the steps work with. No field: `asdict`, `==` and `repr` leave it out."""

        def __post_init__(self, run: Run | None) -> None:
            self.run = run

    @property
    def debate_result(self) -> DebateResult:
        """The finished debate. Raises `AttributeError` until there is one. No field, either."""
        if "_debate_result" not in vars(self):
            raise AttributeError("No debate has finished: this state has no debate_result.")
        return self._debate_result

    @debate_result.setter
    def debate_result(self, result: DebateResult) -> None:
        self._debate_result = result


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRequest:
    """A question.

    `taxonomy_version` is the version of the category tree in which the paths of `canonical_filter` are meant: None or
    `active` for the active one. Another one does not bring back the documents of that time: those are searched that
    belong to its categories now, and a note says so.
    `options`: top_k (passages to retrieve, 1 to 50), debate (bool: asks for one, if the flag is on)."""

    query: str
    taxonomy_version: str | None = None
    canonical_filter: list[list[str]] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineResponse:
    """The answer. `latency` and `step_timings` in seconds, `cost` in won, `confidence` in [0, 1].

    `decision` is answer, review (given on weak evidence) or abstain; `model` is None for an answer made of quotations.
    `unfinished`: the question was not answered in time, and nothing is known about what the documents say.
    `baseline_confidence` is the formula of the acceptance text, beside the calibrated `confidence`.
    """

    query: str
    answer: str
    sources: list[dict[str, Any]]
    confidence: float
    taxonomy_version: str
    latency: float
    cost: float
    intent: str
    step_timings: dict[str, float]
    decision: str
    reason: str
    degraded: tuple[str, ...]
    notes: tuple[str, ...]
    citations: tuple[Citation, ...]
    retrieved_chunks: list[dict[str, Any]]
    usage: Usage
    model: str | None
    baseline_confidence: float
    trace_id: str
    tool_results: list[dict[str, Any]]
    debate: DebateResult | None = None
    unfinished: bool = False

    def as_answer(self) -> Answer:
        """The same as `App.ask` returns it; the times of the stages in milliseconds."""
        return Answer(
            question=self.query,
            text=self.answer,
            citations=self.citations,
            confidence=self.confidence,
            decision=self.decision,
            reason=self.reason,
            stages={name: round(seconds * 1000, 2) for name, seconds in self.step_timings.items()},
            degraded=self.degraded,
            notes=self.notes,
            model=self.model,
            cost=self.cost,
            trace_id=self.trace_id,
            unfinished=self.unfinished,
        )
