"""The state that the steps pass on, the request and the response of the pipeline."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from dtrag.core.answers.confidence import Confidence
from dtrag.core.chat import Usage
from dtrag.core.documents import (
    Answer,
    Citation,
    ContextKind,
    Declined,
    EarlierQuestion,
    FollowedCitation,
    PackFindings,
    SearchMetrics,
    SearchResult,
)
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.statements import all_statements, statements_of
from dtrag.core.text.sentences import Preceding
from dtrag.ports import NamedPassages
from dtrag.tools.registry import JsonObject
from dtrag.tools.result import ToolResult

if TYPE_CHECKING:
    from dtrag.core.debate import DebateResult
    from dtrag.pipeline.run import Run


class RetrievedChunk(TypedDict, total=False):
    """A retrieved passage; `score` is its rerank score, or its hybrid score without one."""

    chunk_id: str
    text: str
    title: str
    source_url: str
    taxonomy_path: list[str]
    score: float
    date: str
    version: str


class SourceContext(TypedDict):
    """Header, unit or lead-in of a quotation: exactly `document.text[start:end]`."""

    kind: ContextKind
    text: str
    start: int
    end: int


class Source(TypedDict, total=False):
    """A citation of the answer with the date and version of its document; offsets in characters of the document."""

    number: int
    label: str
    chunk_id: str
    document_id: str
    url: str
    title: str
    date: str
    version: str
    quote: str
    start: int
    end: int
    display: str
    context: list[SourceContext]
    highlights: list[tuple[int, int]]
    marked: list[tuple[int, int]]
    page: int | None


class Plan(TypedDict, total=False):
    """Which tools run: `tools` in order, `inputs` by tool, `steps` of the answer by name.

    `strategy` is direct, multi_step, or fallback when a model's plan could not be used; `complexity` is simple, medium
    or complex.
    """

    tools: list[str]
    inputs: dict[str, JsonObject]
    steps: list[str]
    strategy: str
    complexity: str
    reasoning: str
    notes: list[str]


@dataclass(frozen=True, slots=True)
class Reading:
    """The judgement of a language model on the first passages.

    `named` are the places, in the order of the search, of those that answer, the best one first; `answer` is whether
    that one answers the whole question or a part of it, or none does (`named` are then those that come nearest).
    """

    named: tuple[int, ...]
    answer: Literal["whole", "part", "none"]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a question that asks several things, or several parts that one provision answers.

    `passages` are those of its own search; `citations` are those of its answer, once there is one.
    """

    question: str
    passages: tuple[SearchResult, ...]
    pack: PackFindings | None
    confidence: Confidence
    citations: tuple[Citation, ...] = ()

    @property
    def absent(self) -> bool:
        """Whether the documents do not answer it."""
        return self.confidence.decision == "abstain"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Passages of the retrieve step with the statistics by which they were judged.

    `preceding`: id of a passage that begins inside a table or a list -> the beginning of that table or list.
    `named` are the provisions that the question names; their passages are the first ones. `notes`: id of a passage ->
    what the reader of an answer from it should know (amendments of a regulation, missing dates). `reading`: what the
    step `read` learned; the passages that it names are the first ones then, and `confidence` has its decision.
    `followed` are citations of other provisions in the first passages, and `cited` the passages of these. `parts` is
    empty for a question that asks one thing. `top_k`: how many of the passages the answer uses; the others only show
    how sure it is.
    """

    passages: tuple[SearchResult, ...]
    statistics: LexicalStatistics
    metrics: SearchMetrics
    confidence: Confidence
    preceding: Mapping[str, Preceding] = field(default_factory=dict)
    named: NamedPassages | None = None
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    followed: Sequence[FollowedCitation] = ()
    cited: Sequence[SearchResult] = ()
    reading: Reading | None = None
    parts: Sequence[Part] = ()
    top_k: int | None = None

    @property
    def used(self) -> tuple[SearchResult, ...]:
        """The passages that the answer uses."""
        return self.passages[: self.top_k]


@dataclass
class PipelineState:
    """The steps fill the fields. A skipped step leaves the state unchanged.

    `sources` are what the answer cites. `confidence` and `answer_confidence` (None for answers that are not selected
    quotations) are in [0, 1]. `step_timings` in seconds, of the steps that ran.
    `search_query` is the query where it is not the question itself (a rewritten follow-up), and `official_words` are
    those that a language model suggests for an everyday one. `model` is the model that
    wrote the answer, None for quotations. `unfinished`: there was not enough time, and the answer says so.
    `answered_before` is a case of the memory, and `offered` are those with similar questions. `marked` are the spans of
    `answer` with the sentences that answer. There is no `debate_result` until a debate has finished.
    """

    query: str
    intent: str = ""
    retrieved_chunks: list[RetrievedChunk] = field(default_factory=list)
    answer: str | None = None
    sources: list[Source] = field(default_factory=list)
    confidence: float = 0.0
    answer_confidence: float | None = None
    taxonomy_version: str = "1.0.0"
    canonical_filter: list[list[str]] | None = None
    start_time: float = field(default_factory=time.perf_counter, compare=False)
    step_timings: dict[str, float] = field(default_factory=dict)
    plan: Plan | None = None
    tool_results: list[ToolResult] = field(default_factory=list)
    decision: str = ""
    reason: str = ""
    degraded: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    citations: tuple[Citation, ...] = ()
    model: str | None = None
    unfinished: bool = False
    search_query: str | None = None
    official_words: tuple[str, ...] = ()
    answered_before: EarlierQuestion | None = None
    offered: tuple[EarlierQuestion, ...] = ()
    marked: tuple[tuple[int, int], ...] = ()
    evidence: Evidence | None = field(default=None, repr=False)
    if TYPE_CHECKING:  # an attribute, which type checkers do not expect of an InitVar
        run: Run | None = None
    else:
        run: InitVar[Run | None] = None
        """What the steps work with. Not a field: `asdict`, `==` and `repr` leave it out."""

        def __post_init__(self, run: Run | None) -> None:
            self.run = run

    @property
    def debate_result(self) -> DebateResult:
        """The finished debate. Raises `AttributeError` until there is one. Not a field, either."""
        if "_debate_result" not in vars(self):
            raise AttributeError("No debate has finished: this state has no debate_result.")
        return self._debate_result

    @debate_result.setter
    def debate_result(self, result: DebateResult) -> None:
        self._debate_result = result


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRequest:
    """A question.

    `taxonomy_version` is the version of the category tree that the paths of `canonical_filter` refer to: None or
    `active` for the active one. Another version does not restore the documents of that time: the search covers the
    documents that belong to its categories now, and a note says so.
    `options`: top_k (passages to retrieve, 1 to 50; without it as many as the question needs), debate (bool: request
    one, if the flag is on), as_of (a day such as 2024-03-01: answer from the regulations that were valid then).
    """

    query: str
    taxonomy_version: str | None = None
    canonical_filter: list[list[str]] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineResponse:
    """The answer. `latency` and `step_timings` in seconds, `cost` in won, `confidence` in [0, 1].

    `decision` is answer, review (an answer on weak evidence) or abstain; `model` is None for an answer of quotations.
    `unfinished`: the question was not answered in time, and it is unknown what the documents say. `confidence` is
    calibrated; `baseline_confidence` is the formula of the acceptance text. `offered` and `declined` as in `Answer`.
    """

    query: str
    answer: str
    sources: list[Source]
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
    retrieved_chunks: list[RetrievedChunk]
    usage: Usage
    model: str | None
    baseline_confidence: float
    trace_id: str
    tool_results: list[ToolResult]
    debate: DebateResult | None = None
    unfinished: bool = False
    answered_before: EarlierQuestion | None = None
    offered: tuple[EarlierQuestion, ...] = ()
    declined: Declined | None = None
    marked: tuple[tuple[int, int], ...] = ()
    answer_confidence: float | None = None

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
            answered_before=self.answered_before,
            offered=self.offered,
            declined=self.declined,
            marked=self.marked,
            answer_confidence=self.answer_confidence,
            reason_statements=statements_of(self.reason),
            note_statements=all_statements(self.notes),
        )
