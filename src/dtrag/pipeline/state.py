"""The state that the steps pass on, the request and the response of the pipeline."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from dtrag.core.answers.passage_confidence import Confidence
from dtrag.core.answers.sentence_vectors import NOTHING_STORED, SentenceVectors
from dtrag.core.chat import Usage
from dtrag.core.documents import (
    Answer,
    Citation,
    EarlierQuestion,
    FollowedCitation,
    PackFindings,
    SearchMetrics,
    SearchResult,
)
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.statements import Statement, Statements
from dtrag.core.text.sentences import Preceding
from dtrag.destinations import allows
from dtrag.pipeline.run_context import Run, of_active_app
from dtrag.ports import NamedPassages
from dtrag.settings import active_flags
from dtrag.tools.registry import JsonObject, ToolResult

if TYPE_CHECKING:
    from dtrag.core.debate import DebateResult


class Plan(TypedDict, total=False):
    """Which tools run: `tools` in order, `inputs` by tool, `steps` of the answer by name.

    `strategy` is direct, multi_step, or fallback when a model's plan could not be used; `complexity` is simple, medium
    or complex. `grade` is the highest grade of what the inputs were made from.
    """

    tools: list[str]
    inputs: dict[str, JsonObject]
    steps: list[str]
    strategy: str
    complexity: str
    reasoning: str
    notes: list[Statement]
    grade: int


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
    `sentence_vectors` are stored ones of the passages, by the model of the question's language.
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
    sentence_vectors: SentenceVectors = NOTHING_STORED
    named: NamedPassages | None = None
    notes: Mapping[str, Sequence[Statement]] = field(default_factory=dict)
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

    `retrieved_chunks` may be given as dictionaries, as in the acceptance text: with `text`, `score`, `chunk_id` and
    other fields of a passage. `sources` are what the answer cites. `confidence` and `answer_confidence` (None for
    answers that are not selected quotations) are in [0, 1]. `step_timings` in seconds, of the steps that ran.
    `search_query` is the query where it is not the question itself (a rewritten follow-up), with the highest grade of
    the conversation that its words may be from, and `official_words` are
    those that a language model suggests for an everyday one. `model` is the model that
    wrote the answer, None for quotations. `unfinished`: there was not enough time, and the answer says so.
    `answered_before` is a case of the memory, and `offered` are those with similar questions. `marked` are the spans of
    `answer` with the sentences that answer. There is no `debate_result` until a debate has finished.
    """

    query: str
    intent: str = ""
    retrieved_chunks: list[SearchResult] = field(default_factory=list)
    answer: str | None = None
    sources: Sequence[Citation] = field(default_factory=list)
    confidence: float = 0.0
    answer_confidence: float | None = None
    taxonomy_version: str = "1.0.0"
    canonical_filter: list[list[str]] | None = None
    start_time: float = field(default_factory=time.perf_counter, compare=False)
    step_timings: dict[str, float] = field(default_factory=dict)
    plan: Plan | None = None
    tool_results: list[ToolResult] = field(default_factory=list)
    decision: str = ""
    reason: Statements = ()
    degraded: list[str] = field(default_factory=list)
    notes: list[Statement] = field(default_factory=list)
    model: str | None = None
    unfinished: bool = False
    search_query: str | None = None
    search_query_grade: int = 0
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
            self.retrieved_chunks = [
                chunk if isinstance(chunk, SearchResult) else _passage(number, chunk)
                for number, chunk in enumerate(self.retrieved_chunks, start=1)
            ]

    def question_for(self, limit: int) -> tuple[str, int]:
        """The query for a destination with this limit, and its grade: the question as typed where that is above it."""
        if self.search_query is not None and allows(limit, self.search_query_grade):
            return self.search_query, self.search_query_grade
        return self.query, 0

    @property
    def passages(self) -> list[SearchResult]:
        """The passages that the answer uses."""
        return self.retrieved_chunks if self.evidence is None else list(self.evidence.used)

    @property
    def debate_result(self) -> DebateResult:
        """The finished debate. Raises `AttributeError` until there is one. Not a field, either."""
        if "_debate_result" not in vars(self):
            raise AttributeError("No debate has finished: this state has no debate_result.")
        return self._debate_result

    @debate_result.setter
    def debate_result(self, result: DebateResult) -> None:
        self._debate_result = result


def running(state: PipelineState) -> Run:
    """The state's run, or one of the open app if it has none. Raises `NoActiveApp`."""
    if state.run is None:
        state.run = of_active_app()
    return state.run


def enabled(state: PipelineState, name: str) -> bool:
    """Whether the flag was on when the state's run began; without a run, whether it is on now."""
    return name in (active_flags() if state.run is None else state.run.flags)


def _passage(number: int, chunk: Mapping[str, Any]) -> SearchResult:
    """The passage that a caller describes; its score is that of the search, too."""
    text, score = str(chunk.get("text", "")), float(chunk.get("score", 0.0))
    return SearchResult(
        chunk_id=str(chunk.get("chunk_id", number)),
        text=text,
        title=str(chunk.get("title", "Untitled")),
        source_url=str(chunk.get("source_url", "")),
        taxonomy_path=list(chunk.get("taxonomy_path", [])),
        bm25_score=score,
        hybrid_score=score,
        rerank_score=score,
        end=len(text),
    )


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
class PipelineResponse(Answer):
    """An answer with how it was made. `latency` and `step_timings` are in seconds.

    `baseline_confidence` is the formula of the acceptance text. `hitl_required`: the confidence is below a threshold
    (`review_below`, or that of the agent), and the answer also waits for a human review.
    """

    taxonomy_version: str
    latency: float
    intent: str
    step_timings: dict[str, float]
    retrieved_chunks: list[SearchResult]
    usage: Usage
    baseline_confidence: float
    tool_results: list[ToolResult]
    debate: DebateResult | None = None
    hitl_required: bool = False

    def as_answer(self) -> Answer:
        """What `App.ask` returns: the answer alone."""
        return Answer(**{each.name: getattr(self, each.name) for each in fields(Answer) if each.init})

    @property
    def query(self) -> str:
        """The question."""
        return self.question

    @property
    def answer(self) -> str:
        """The text."""
        return self.text

    @property
    def sources(self) -> list[Citation]:
        """The citations."""
        return list(self.citations)
