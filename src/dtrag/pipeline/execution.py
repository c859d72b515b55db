"""`Pipeline`: one question through the steps of the table, to a response and a trace."""

from __future__ import annotations

import datetime
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack

from dtrag.concurrency import limit_clock
from dtrag.core.access import confinement
from dtrag.core.access.scope import Viewer
from dtrag.core.chat import Message, Usage
from dtrag.core.trace import StepTrace, Trace
from dtrag.errors import InvalidInput
from dtrag.pipeline import steps
from dtrag.pipeline.run import Emit, Recording, Run, of_active_app
from dtrag.pipeline.state import PipelineRequest, PipelineResponse, PipelineState
from dtrag.pipeline.step_table import STEPS, perform
from dtrag.ports import Warmable
from dtrag.settings import active_flags

MAX_TOP_K = 50


class RunLimits(TypedDict, total=False):
    """What a caller of `execute` may set of its `Run`, with the meaning that the fields have there."""

    retrieved: int
    candidates: tuple[int, int]
    tools_allowed: tuple[str, ...]
    debate_allowed: bool
    history_documents: tuple[str, ...]
    forbidden: Callable[[], Awaitable[str | None]]
    charge: Callable[[Usage], Awaitable[None]]


class Pipeline:
    """Questions to cited answers: the steps of `STEPS` in a loop.

    `runs` gives what a run works with (None: the open app's), `keep` takes its trace.
    """

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
        **limits: Unpack[RunLimits],
    ) -> PipelineResponse:
        """The answer to one question, given as a request, as its text, or as `query`.

        `scope` is what the caller may see (the whole tree when None), `history` the conversation before it. Models that
        the question needs are loaded before its time begins. Raises `InvalidInput` for an empty question or a bad
        option, `NotFound` for a version of the tree that there is not, `TypeError` for a limit that there is not,
        `DatabaseUnavailable` and `IndexMismatch` when nothing can be searched.
        """
        _check_names(limits)
        asked = _asked(request, query)
        scope = confinement.bounded(scope)
        options = _options(asked.options)
        given: dict[str, Any] = {"scope": scope, "filters": filters, "emit": emit} | options | limits
        run = self._runs()
        run = replace(
            run,
            history=tuple(history),
            recording=Recording(keeps_text=run.recording.keeps_text),
            flags=active_flags(),
            taxonomy_version=asked.taxonomy_version,
            **{name: value for name, value in given.items() if value is not None},
        )
        if options.get("debate_allowed") is False:  # a caller may do without one, and cannot ask for more
            run = replace(run, debate_allowed=False)
        with confinement.confined(run.scope):
            async with run.admission.run():
                await self.load(run, asked.query)
                state = PipelineState(
                    query=asked.query, canonical_filter=asked.canonical_filter, run=run, start_time=limit_clock()
                )
                state = await self._perform_steps(state)
        response = _response(state)
        self.on_answer(response, run.recording.steps)
        if self._keep is not None:
            await self._keep(_trace(state, response, owner))
        return response

    async def load(self, run: Run, question: str | None = None) -> None:
        """Load what the question needs (None: all that any question may need), before its time begins."""
        await run.engine.load(question)
        models: tuple[object, ...] = (run.model, run.critic)
        for model in models:
            if isinstance(model, Warmable):
                await model.warm()

    async def _perform_steps(self, state: PipelineState) -> PipelineState:
        for step in STEPS:
            state = await perform(step, state)
        return state


def _check_names(limits: Mapping[str, object]) -> None:
    unknown = limits.keys() - RunLimits.__annotations__.keys()
    if unknown:
        known = ", ".join(RunLimits.__annotations__)
        raise TypeError(f"execute() has no argument {min(unknown)!r}. Limits of a run: {known}.")


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
        latency=limit_clock() - state.start_time,
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
        unfinished=state.unfinished,
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
