"""`Pipeline`: runs a question through the steps of the table, to a response and a trace.

`LangGraphPipeline` does the same with LangGraph, for programs that compose graphs. langgraph is imported when a graph
is built: the import takes 1.5 s and 44 MB, and running the nodes about 3 ms of CPU time an answer.
"""

from __future__ import annotations

import asyncio
import datetime
import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack

from dtrag.concurrency import limit_clock
from dtrag.core.access import confinement
from dtrag.core.access.scope import Viewer
from dtrag.core.chat import Message, Usage
from dtrag.core.editions import parse_date
from dtrag.core.trace import StepTrace, Trace
from dtrag.errors import InvalidInput
from dtrag.pipeline import steps
from dtrag.pipeline.answer_record import record_of
from dtrag.pipeline.recall import answered_question, remembers
from dtrag.pipeline.run_context import Emit, Recording, Run, of_active_app
from dtrag.pipeline.state import PipelineRequest, PipelineResponse, PipelineState, running
from dtrag.pipeline.step_table import STEPS, Step, perform
from dtrag.ports import Warmable
from dtrag.ports.cases import AnsweredQuestion
from dtrag.settings import active_flags

MAX_TOP_K = 50


class RunLimits(TypedDict, total=False):
    """The fields of `Run` that a caller of `execute` may set."""

    flags: frozenset[str]
    retrieved: int | None
    candidates: tuple[int, int]
    tools_allowed: tuple[str, ...]
    debate_allowed: bool
    memory: bool
    history_documents: tuple[str, ...]
    forbidden: Callable[[], Awaitable[str | None]]
    charge: Callable[[Usage], Awaitable[None]]


class AnswerOptions(TypedDict, total=False):
    """Arguments of `execute` about one question and its conversation."""

    filters: Mapping[str, Any] | None
    history: Sequence[Message]
    history_documents: tuple[str, ...]
    emit: Emit | None
    owner: str


class Pipeline:
    """Answers questions with citations: the steps of `STEPS` in a loop.

    `runs` makes the `Run` of a question (None: that of the open app), `keep` stores its trace, and `remember` hands the
    answered question to the case memory. `mask` removes personal data from questions before anything is done with them.
    """

    def __init__(
        self,
        runs: Callable[[], Run] | None = None,
        keep: Callable[[Trace], Awaitable[None]] | None = None,
        remember: Callable[[AnsweredQuestion], None] | None = None,
        mask: Callable[[str], str] = lambda text: text,
    ) -> None:
        self._mask = mask
        self._runs = runs or of_active_app
        self._keep = keep
        self._remember = remember
        self.on_answer: Callable[[PipelineResponse, Sequence[StepTrace]], None] = lambda response, steps: None

    def unrecorded(self) -> Pipeline:
        """The same steps for measurements: no traces, and nothing is learned from the questions."""
        return Pipeline(lambda: replace(self._runs(), learning=None), mask=self._mask)

    async def execute(
        self,
        request: PipelineRequest | str | None = None,
        *,
        query: str | None = None,
        scope: Viewer | None = None,
        filters: Mapping[str, Any] | None = None,
        history: Sequence[Message] = (),
        emit: Emit | None = None,
        owner: str = "",
        models: bool = True,
        **limits: Unpack[RunLimits],
    ) -> PipelineResponse:
        """The answer to one question, passed as a request, as its text, or as `query`.

        `scope` is what the caller may see (the whole tree when None), `history` the conversation so far. Without
        `models` no language model is called. Models that the question needs are loaded before its time begins. Raises
        `InvalidInput` for an empty question or a bad option, `NotFound` for an unknown version of the tree, `TypeError`
        for an unknown limit, `DatabaseUnavailable` and `IndexMismatch` when nothing can be searched.
        """
        _check_names(limits)
        request = _request_of(request, query)
        request = replace(request, query=self._mask(request.query))
        requested = _limits_of(request.options)
        as_of = parse_date("as_of", request.options.get("as_of"))
        merged: RunLimits = {"flags": active_flags(), **requested, **limits}
        if requested.get("debate_allowed") is False:  # a request may forgo a debate that its caller allows
            merged["debate_allowed"] = False
        run = self._runs()
        run = replace(
            run if models else replace(run, model=None, critic=None),
            scope=confinement.bounded(scope).at(as_of),
            filters=run.filters if filters is None else filters,
            emit=run.emit if emit is None else emit,
            owner=owner,
            history=tuple(replace(message, content=self._mask(message.content)) for message in history),
            recording=Recording(keeps_text=run.recording.keeps_text),
            taxonomy_version=request.taxonomy_version,
            **merged,
        )
        with confinement.confined(run.scope):
            async with run.admission.run():
                await self.load(run, request.query)
                state = PipelineState(
                    query=request.query, canonical_filter=request.canonical_filter, run=run, start_time=limit_clock()
                )
                run.recording.started = state.start_time
                state = await self._perform_steps(state)
        response = _response(state)
        self.on_answer(response, run.recording.steps)
        _learn(run, response)
        if self._remember is not None and remembers(run):
            self._remember(answered_question(state, run, response))
        if self._keep is not None:
            trace = _trace(state, response, owner)
            if trace.record is not None:
                response = replace(response, record_digest=trace.record.digest())
            await self._keep(trace)
        return response

    async def load(self, run: Run, question: str | None = None) -> None:
        """Load the models that the question needs (None: that any question may need)."""
        await run.engine.load(question, scope=run.scope)
        models: tuple[object, ...] = (run.model, run.critic)
        for model in models:
            if isinstance(model, Warmable):
                await model.warm()

    async def _perform_steps(self, state: PipelineState) -> PipelineState:
        for step in STEPS:
            state = await perform(step, state)
        return state


def _learn(run: Run, response: PipelineResponse) -> None:
    """Note what the chosen way of answering earned. An unfinished answer earned nothing that can be judged."""
    way = run.recording.way
    if run.learning is not None and way is not None and not response.unfinished:
        run.learning.finished(way, response.trace_id, response.confidence, response.latency, run.flags)


def _check_names(limits: Mapping[str, object]) -> None:
    unknown = limits.keys() - RunLimits.__annotations__.keys()
    if unknown:
        known = ", ".join(RunLimits.__annotations__)
        raise TypeError(f"execute() has no argument {min(unknown)!r}. Limits of a run: {known}.")


def _request_of(request: PipelineRequest | str | None, query: str | None) -> PipelineRequest:
    if (request is None) == (query is None):
        raise InvalidInput("Give the question once: as a request, or as query.")
    if isinstance(request, PipelineRequest):
        return request
    return PipelineRequest(query=request if query is None else query)  # type: ignore[arg-type]


def _limits_of(options: Mapping[str, Any]) -> RunLimits:
    unknown = options.keys() - {"top_k", "debate", "as_of"}
    if unknown:
        raise InvalidInput(f"There is no option {min(unknown)!r}; there are top_k, debate and as_of.")
    limits: RunLimits = {}
    if "top_k" in options:
        top_k = options["top_k"]
        if not isinstance(top_k, int) or isinstance(top_k, bool) or not 1 <= top_k <= MAX_TOP_K:
            raise InvalidInput(f"top_k must be a whole number from 1 to {MAX_TOP_K}.")
        limits["retrieved"] = top_k
    if "debate" in options:
        if not isinstance(options["debate"], bool):
            raise InvalidInput("debate must be true or false.")
        limits["debate_allowed"] = options["debate"]
    return limits


def _response(state: PipelineState) -> PipelineResponse:
    calls = running(state).recording.calls
    usage = sum((Usage(1, call.input_tokens, call.output_tokens, call.cost) for call in calls), Usage())
    return PipelineResponse(
        question=state.query,
        text=state.answer or "",
        citations=tuple(state.sources),
        confidence=state.confidence,
        taxonomy_version=state.taxonomy_version,
        latency=limit_clock() - state.start_time,
        cost=usage.cost,
        intent=state.intent,
        step_timings=state.step_timings,
        stages={name: round(seconds * 1000, 2) for name, seconds in state.step_timings.items()},
        decision=state.decision,
        reason_statements=state.reason,
        degraded=tuple(dict.fromkeys(state.degraded)),
        note_statements=tuple(dict.fromkeys(state.notes)),
        retrieved_chunks=state.retrieved_chunks,
        usage=usage,
        model=state.model,
        baseline_confidence=steps.baseline(state),
        trace_id=str(running(state).recording.trace_id),
        tool_results=state.tool_results,
        debate=getattr(state, "debate_result", None),
        unfinished=state.unfinished,
        answered_before=state.answered_before,
        offered=state.offered,
        declined=steps.declined_of(state),
        marked=state.marked,
        answer_confidence=state.answer_confidence,
    )


def _trace(state: PipelineState, response: PipelineResponse, owner: str) -> Trace:
    recording, now = running(state).recording, datetime.datetime.now(datetime.UTC)
    return Trace(
        trace_id=recording.trace_id,
        created_at=now,
        owner=owner,
        question=state.query if recording.keeps_text else "",
        answer=response.answer if recording.keeps_text else "",
        decision=response.decision,
        confidence=response.confidence,
        taxonomy_version=response.taxonomy_version,
        seconds=response.latency,
        degraded=response.degraded,
        document_ids=_documents(state),
        cited=tuple(dict.fromkeys(citation.chunk_id for citation in state.sources)),
        as_of=_day(running(state).scope.as_of),
        record=record_of(state, response, now),
        steps=tuple(recording.steps),
        calls=tuple(recording.calls),
        debate=None if response.debate is None else response.debate.as_dict(),  # `Traces` may remove texts
    )


def _day(as_of: datetime.date | None) -> str:
    return "" if as_of is None else as_of.isoformat()


def _documents(state: PipelineState) -> tuple[str, ...]:
    """The documents behind the answer or its history. A caller must be able to see all of them to see the trace."""
    passages = state.evidence.passages if state.evidence is not None else ()
    retrieved = (str(passage.metadata.get("document_id", "")) for passage in passages)
    return tuple(dict.fromkeys((*retrieved, *running(state).history_documents)))


class Channels(TypedDict):
    """The graph's state: one channel that holds the pipeline's state."""

    state: PipelineState


class LangGraphPipeline(Pipeline):
    """`Pipeline` run by LangGraph, with the same steps, budgets, traces and answers."""

    @property
    def graph(self) -> Any:
        """The compiled graph (`langgraph.graph.state.CompiledStateGraph`): runs alone or as part of another.

        Its input and output are `{"state": PipelineState}`. A state without a `run` works with the open app.
        """
        return compiled(tuple(step.name for step in STEPS))

    async def load(self, run: Run, question: str | None = None) -> None:
        """As `Pipeline.load`, and build the graph."""
        await super().load(run, question)
        await asyncio.to_thread(compiled, _names(PipelineState(query="", run=run)))

    async def _perform_steps(self, state: PipelineState) -> PipelineState:
        from langsmith import tracing_context

        names = _names(state)
        for step in STEPS:
            if step.name not in names:
                step.log_skipped(state)
        with tracing_context(enabled=False):  # regardless of the environment: nothing is sent to a tracing service
            channels = await compiled(names).ainvoke({"state": state})
        finished: PipelineState = channels["state"]
        return finished


def _names(state: PipelineState) -> tuple[str, ...]:
    """The steps that apply to the state: every node costs half a millisecond, even one that does nothing."""
    return tuple(step.name for step in STEPS if step.applies(state))


@functools.cache
def compiled(names: tuple[str, ...]) -> Any:
    """The graph of these steps, built once. Blocking: about two seconds of CPU time for the first."""
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(Channels)
    before = START
    for step in (step for step in STEPS if step.name in names):
        graph.add_node(step.name, _node(step))
        graph.add_edge(before, step.name)
        before = step.name
    graph.add_edge(before, END)
    return graph.compile()


def _node(step: Step) -> Any:
    async def node(channels: Channels) -> Channels:
        return {"state": await perform(step, channels["state"])}

    return node
