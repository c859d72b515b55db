"""`STEPS`, the one table of the pipeline: budgets, alternatives and traces of all runners derive from it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass

from dtrag.concurrency import limit_clock
from dtrag.core.trace import StepTrace
from dtrag.pipeline import steps
from dtrag.pipeline.answer.citations import sources_of
from dtrag.pipeline.answer.compose import quote, quoted_without_embedder, unfinished
from dtrag.pipeline.run import Run
from dtrag.pipeline.state import PipelineState
from dtrag.pipeline.timeouts import StepFunction, budget_of, execute_with_timeout
from dtrag.settings import timeout_multiplier

_LOG = logging.getLogger(__name__)

_STAND_IN = 0.7
"""Seconds for what stands in for a step that took too long."""
_ROOM = 0.5
"""Seconds that step 4 has beyond what its tools and its debate are held to."""


def _always(state: PipelineState) -> bool:
    return True


def _never(state: PipelineState) -> bool:
    return False


def _silently(state: PipelineState) -> None:
    """Nothing is logged."""


def _quoting(state: PipelineState) -> bool:
    """Composing waits for a model where there is one."""
    return steps.running(state).model is None


def _tools_and_debate(state: PipelineState) -> float:
    tools = len((state.plan or {}).get("tools") or []) if steps.enabled(state, "mcp_tools") else 0
    debate = budget_of("debate") if steps.enabled(state, "debate_mode") else 0.0
    return tools * budget_of("tools") + debate + _ROOM


async def _quotes(state: PipelineState) -> PipelineState:
    return await quoted_without_embedder(state, steps.running(state))


async def _uncited(state: PipelineState) -> PipelineState:
    """What a model wrote and nobody could check is not given out."""
    if state.model is not None:
        state.model = None
        state = await quote(state, steps.running(state), by_meaning=False)
        if not state.unfinished:
            state.decision = "review" if state.citations else "abstain"
    state.sources = sources_of(state)
    return state


@dataclass(frozen=True, slots=True)
class Step:
    """A row: when it runs, how many seconds it may take, and what stands in for it when it takes longer.

    `log_skipped` is called when it does not run.
    One that `computes` waits for a turn of the processor first, which is not counted against it.
    """

    name: str
    function: StepFunction
    wanted: Callable[[PipelineState], bool] = _always
    budget: Callable[[PipelineState], float] | None = None
    instead: StepFunction | None = None
    computes: Callable[[PipelineState], bool] = _never
    log_skipped: Callable[[PipelineState], None] = _silently

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
    Step(
        "plan", steps.step3_plan, wanted=lambda state: steps.enabled(state, "meta_planner"), budget=steps.plan_seconds
    ),
    Step(
        "tools_debate",
        steps.step4_tools_debate,
        wanted=lambda state: steps.enabled(state, "mcp_tools") or steps.enabled(state, "debate_mode"),
        budget=_tools_and_debate,
        log_skipped=steps.log_step4_flags,
    ),
    Step("compose", steps.step5_compose, instead=_quotes, computes=_quoting),
    Step("cite", steps.step6_cite, budget=steps.check_seconds, instead=_uncited, computes=_always),
    Step("respond", steps.step7_respond),
)


async def perform(step: Step, state: PipelineState) -> PipelineState:
    """One step within its budget, recorded and told of; what stands in for it when the budget is over.

    A step that is not wanted leaves the state as it is.
    """
    if not step.wanted(state):
        step.log_skipped(state)
        return state
    run = steps.running(state)
    turn = run.admission.cpu() if step.computes(state) else contextlib.nullcontext()
    async with turn:
        return await _within_budget(step, state, run)


async def _within_budget(step: Step, state: PipelineState, run: Run) -> PipelineState:
    budget, outcome, started = step.seconds(state), "done", limit_clock()
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
    seconds = limit_clock() - started
    run.recording.steps.append(StepTrace(step.name, seconds, budget, outcome, run.recording.facts))
    run.emit("step", {"name": step.name, "seconds": seconds, "outcome": outcome})
    return state


async def _stood_in(instead: StepFunction, state: PipelineState) -> PipelineState:
    """The alternative has a limit, too; when that is over, the answer says that it could not be made in time."""
    try:
        async with asyncio.timeout(_STAND_IN * timeout_multiplier()):
            return await instead(state)
    except TimeoutError:
        return unfinished(
            state, steps.running(state), "Nothing could be made in time.", looked=state.evidence is not None
        )
