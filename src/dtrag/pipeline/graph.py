"""The pipeline as a LangGraph: `STEPS` is the one table that the graph, the timings and the trace derive from."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from dtrag.core import confinement
from dtrag.core.chat import Message, Usage
from dtrag.core.scope import Viewer
from dtrag.errors import InvalidInput
from dtrag.pipeline import steps
from dtrag.pipeline.composing import abstained, quote, quoted_without_embedder
from dtrag.pipeline.run import Emit, Run, of_active_app
from dtrag.pipeline.sources import sources_of
from dtrag.pipeline.state import PipelineRequest, PipelineResponse, PipelineState
from dtrag.pipeline.timeouts import StepFunction, budget_of, execute_with_timeout
from dtrag.pipeline.trace import Recording, StepTrace, Trace
from dtrag.settings import flag, timeout_multiplier

_LOG = logging.getLogger(__name__)

MAX_TOP_K = 50
_STAND_IN = 0.7
"""Seconds for what stands in for a step that took too long."""
_ROOM = 0.5
"""Seconds that step 4 has beyond what its tools and its debate are held to."""


def _always(state: PipelineState) -> bool:
    return True


def _never(state: PipelineState) -> bool:
    return False


def _quoting(state: PipelineState) -> bool:
    """Composing waits for a model where there is one."""
    return steps.running(state).model is None


def _tools_and_debate(state: PipelineState) -> float:
    tools = len((state.plan or {}).get("tools") or []) if flag("mcp_tools") else 0
    return tools * budget_of("tools") + (budget_of("debate") if flag("debate_mode") else 0.0) + _ROOM


async def _quotes(state: PipelineState) -> PipelineState:
    return await quoted_without_embedder(state, steps.running(state))


async def _uncited(state: PipelineState) -> PipelineState:
    """What a model wrote and nobody could check is not given out."""
    if state.model is not None:
        state.model = None
        state = await quote(state, steps.running(state), by_meaning=False)
        state.decision = "review" if state.citations else "abstain"
    state.sources = sources_of(state)
    return state


@dataclass(frozen=True, slots=True)
class Step:
    """A row: when it runs, how many seconds it may take, and what stands in for it when it takes longer.

    One that `computes` waits for a turn of the processor first, which is not counted against it.
    """

    name: str
    function: StepFunction
    wanted: Callable[[PipelineState], bool] = _always
    budget: Callable[[PipelineState], float] | None = None
    instead: StepFunction | None = None
    computes: Callable[[PipelineState], bool] = _never

    def seconds(self, state: PipelineState) -> float:
        """The step's budget now."""
        return budget_of(self.name) if self.budget is None else self.budget(state)


STEPS: tuple[Step, ...] = (
    Step("intent", steps.step1_intent),
    Step(
        "rewrite",
        steps.rewrite,
        wanted=lambda state: bool(steps.running(state).history),
        instead=steps.rewrite_by_rules,
    ),
    Step("retrieve", steps.step2_retrieve, instead=steps.without_passages, computes=_always),
    Step("plan", steps.step3_plan, wanted=lambda state: flag("meta_planner"), budget=steps.plan_seconds),
    Step(
        "tools_debate",
        steps.step4_tools_debate,
        wanted=lambda state: flag("mcp_tools") or flag("debate_mode"),
        budget=_tools_and_debate,
    ),
    Step("compose", steps.step5_compose, instead=_quotes, computes=_quoting),
    Step("cite", steps.step6_cite, budget=steps.check_seconds, instead=_uncited, computes=_always),
    Step("respond", steps.step7_respond),
)


class _Channel(TypedDict):
    state: PipelineState


async def perform(step: Step, state: PipelineState) -> PipelineState:
    """One step within its budget, recorded and told of; what stands in for it when the budget is over."""
    run = steps.running(state)
    turn = run.admission.cpu() if step.computes(state) else contextlib.nullcontext()
    async with turn:
        return await _within_budget(step, state, run)


async def _within_budget(step: Step, state: PipelineState, run: Run) -> PipelineState:
    budget, outcome, started = step.seconds(state), "done", time.perf_counter()
    run.recording.facts = {}
    try:
        state = await execute_with_timeout(step.function, state, step.name, budget)
    except TimeoutError as error:
        outcome = "timeout"
        _LOG.warning("%s", error)
        state.degraded.append(step.name)
        state.notes.append(f"{error}; the answer was made without it.")
        if step.instead is not None:
            state = await _stood_in(step.instead, state)
    seconds = time.perf_counter() - started
    run.recording.steps.append(StepTrace(step.name, seconds, budget, outcome, run.recording.facts))
    run.emit("step", {"name": step.name, "seconds": seconds, "outcome": outcome})
    return state


async def _stood_in(instead: StepFunction, state: PipelineState) -> PipelineState:
    """What stands in has a limit, too; when that is over, the answer is that there is none."""
    try:
        async with asyncio.timeout(_STAND_IN * timeout_multiplier()):
            return await instead(state)
    except TimeoutError:
        return abstained(state, steps.running(state), "Nothing could be made in time.")


_compiled: dict[tuple[str, ...], Any] = {}


def _compile(names: tuple[str, ...]) -> Any:
    """The graph of these steps; a run's state is all that it knows. Every node costs half a millisecond of a run."""
    from langgraph.graph import END, START, StateGraph

    graph = StateGraph(_Channel)
    before = START
    for step in STEPS:
        if step.name in names:
            graph.add_node(step.name, _node(step))
            graph.add_edge(before, step.name)
            before = step.name
    graph.add_edge(before, END)
    _compiled[names] = graph.compile()
    return _compiled[names]


def warm() -> None:
    """Load what runs the graph (about two seconds of one processor), so that the first question need not. Blocking."""
    _compile(tuple(step.name for step in STEPS if step.wanted is _always))


def _node(step: Step) -> Any:
    async def node(channel: _Channel) -> _Channel:
        return {"state": await perform(step, channel["state"])}

    return node


async def _run_graph(state: PipelineState) -> PipelineState:
    names = tuple(step.name for step in STEPS if step.wanted(state))
    graph: Any = _compiled.get(names) or await asyncio.to_thread(_compile, names)
    from langsmith import tracing_context

    with tracing_context(enabled=False):  # whatever the environment says: nothing is sent anywhere
        channel = await graph.ainvoke({"state": state})
    done: PipelineState = channel["state"]
    return done


class LangGraphPipeline:
    """Questions to cited answers. `runs` gives what a run works with (None: the open app's), `keep` takes its trace."""

    def __init__(
        self, runs: Callable[[], Run] | None = None, keep: Callable[[Trace], Awaitable[None]] | None = None
    ) -> None:
        self._runs = runs or of_active_app
        self._keep = keep
        self.on_answer: Callable[[PipelineResponse, Sequence[StepTrace]], None] = lambda response, steps: None

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
        **limits: Any,
    ) -> PipelineResponse:
        """The answer to one question, given as a request, as its text, or as `query`.

        `scope` is what the caller may see (the whole tree when None), `history` the conversation before it, `limits`
        other fields of `Run`. Raises `InvalidInput` for an empty question or a bad option, `DatabaseUnavailable` and
        `IndexMismatch` when nothing can be searched.
        """
        asked = _asked(request, query)
        scope = confinement.bounded(scope)
        wanted = _options(asked.options)
        given = {"scope": scope, "filters": filters, "emit": emit} | wanted | limits
        run = self._runs()
        run = replace(
            run,
            history=tuple(history),
            recording=Recording(keeps_text=run.recording.keeps_text),
            **{name: value for name, value in given.items() if value is not None},
        )
        if wanted.get("debate_allowed") is False:  # whoever asks may do without one, and cannot ask for more
            run = replace(run, debate_allowed=False)
        with confinement.confined(run.scope):
            async with run.admission.run():
                state = PipelineState(query=asked.query, canonical_filter=asked.canonical_filter, run=run)
                state = await _run_graph(state)
        response = _response(state)
        self.on_answer(response, run.recording.steps)
        if self._keep is not None:
            await self._keep(_trace(state, response, owner))
        return response


def _asked(request: PipelineRequest | str | None, query: str | None) -> PipelineRequest:
    if (request is None) == (query is None):
        raise InvalidInput("Give the question once: as a request, or as query.")
    if isinstance(request, PipelineRequest):
        return request
    return PipelineRequest(query=request if query is None else query)  # type: ignore[arg-type]


def _options(options: Mapping[str, Any]) -> dict[str, Any]:
    unknown = options.keys() - {"top_k", "debate"}
    if unknown:
        raise InvalidInput(f"There is no option {min(unknown)!r}; there are top_k and debate.")
    found: dict[str, Any] = {}
    if "top_k" in options:
        top_k = options["top_k"]
        if not isinstance(top_k, int) or isinstance(top_k, bool) or not 1 <= top_k <= MAX_TOP_K:
            raise InvalidInput(f"top_k must be a whole number from 1 to {MAX_TOP_K}.")
        found["retrieved"] = top_k
    if "debate" in options:
        if not isinstance(options["debate"], bool):
            raise InvalidInput("debate must be true or false.")
        found["debate_allowed"] = options["debate"]
    return found


def _response(state: PipelineState) -> PipelineResponse:
    calls = steps.running(state).recording.calls
    usage = sum((Usage(1, call.input_tokens, call.output_tokens, call.cost) for call in calls), Usage())
    return PipelineResponse(
        query=state.query,
        answer=state.answer or "",
        sources=state.sources,
        confidence=state.confidence,
        taxonomy_version=state.taxonomy_version,
        latency=time.perf_counter() - state.start_time,
        cost=usage.cost,
        intent=state.intent,
        step_timings=state.step_timings,
        decision=state.decision,
        reason=state.reason,
        degraded=tuple(dict.fromkeys(state.degraded)),
        notes=tuple(dict.fromkeys(state.notes)),
        citations=state.citations,
        retrieved_chunks=state.retrieved_chunks,
        usage=usage,
        model=state.model,
        baseline_confidence=steps.baseline(state),
        trace_id=str(steps.running(state).recording.trace_id),
        tool_results=state.tool_results,
        debate=getattr(state, "debate_result", None),
    )


def _trace(state: PipelineState, response: PipelineResponse, owner: str) -> Trace:
    recording = steps.running(state).recording
    finished = response.debate
    return Trace(
        trace_id=recording.trace_id,
        created_at=datetime.datetime.now(datetime.UTC),
        owner=owner,
        question=state.query if recording.keeps_text else "",
        answer=response.answer if recording.keeps_text else "",
        decision=response.decision,
        confidence=response.confidence,
        taxonomy_version=response.taxonomy_version,
        seconds=response.latency,
        degraded=response.degraded,
        document_ids=_documents(state),
        steps=tuple(recording.steps),
        calls=tuple(recording.calls),
        debate=finished.as_dict() if finished is not None else None,  # its texts go when the trace is kept
    )


def _documents(state: PipelineState) -> tuple[str, ...]:
    """Every document that the run looked at, or heard of in its history: who may not see one may not see the trace."""
    passages = state.evidence.passages if state.evidence is not None else ()
    found = (str(passage.metadata.get("document_id", "")) for passage in passages)
    return tuple(dict.fromkeys((*found, *steps.running(state).history_documents)))
