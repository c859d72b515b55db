"""`STEPS`, the table of the pipeline: budgets, fallbacks and traces of both runners derive from it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass

from dtrag.concurrency import limit_clock
from dtrag.core.statements import stated
from dtrag.core.trace import StepTrace
from dtrag.pipeline import reader, steps
from dtrag.pipeline.answer.compose import quote, quoted_without_embedder, unfinished
from dtrag.pipeline.retrieve import step2_retrieve, without_passages
from dtrag.pipeline.run_context import Run
from dtrag.pipeline.state import PipelineState, enabled, running
from dtrag.pipeline.timeouts import StepFunction, budget_of, execute_with_timeout
from dtrag.settings import timeout_multiplier

_LOG = logging.getLogger(__name__)

FALLBACK_S = 0.7
"""Timeout of a step's fallback, in seconds."""
SLACK_S = 0.5
"""Slack added to the sum of the tool and debate budgets of step 4, in seconds."""


def _always(state: PipelineState) -> bool:
    return True


def _never(state: PipelineState) -> bool:
    return False


def _no_log(state: PipelineState) -> None:
    """Log nothing."""


def _quotes_only(state: PipelineState) -> bool:
    """Whether composing is CPU work: with a language model, it waits for that instead."""
    return running(state).model is None


def _tools_and_debate(state: PipelineState) -> float:
    tools = len((state.plan or {}).get("tools") or []) if enabled(state, "mcp_tools") else 0
    debate = budget_of("debate") if enabled(state, "debate_mode") else 0.0
    return tools * budget_of("tools") + debate + SLACK_S


async def _withhold_unchecked(state: PipelineState) -> PipelineState:
    """Quotations in place of a model's answer that could not be checked in time."""
    if state.model is not None:
        state.model = None
        state = await quote(state, running(state), by_meaning=False)
        if not state.unfinished:
            state.decision = "review" if state.sources else "abstain"
    return state


@dataclass(frozen=True, slots=True)
class Step:
    """A row: whether the step `applies`, its time budget, and the fallback that runs when it exceeds that.

    `log_skipped` is called when it does not apply. A step that is `cpu_bound` first waits for a CPU slot, which does
    not count as its time.
    """

    name: str
    function: StepFunction
    applies: Callable[[PipelineState], bool] = _always
    budget: Callable[[PipelineState], float] | None = None
    fallback: StepFunction | None = None
    cpu_bound: Callable[[PipelineState], bool] = _never
    log_skipped: Callable[[PipelineState], None] = _no_log

    def seconds(self, state: PipelineState) -> float:
        """The step's time budget."""
        return budget_of(self.name) if self.budget is None else self.budget(state)


STEPS: tuple[Step, ...] = (
    Step("intent", steps.step1_intent),
    Step(
        "rewrite",
        steps.rewrite,
        applies=steps.rewrites,
        fallback=steps.rewrite_by_rules,
    ),
    Step("retrieve", step2_retrieve, fallback=without_passages, cpu_bound=_always),
    Step("plan", steps.step3_plan, applies=lambda state: enabled(state, "meta_planner"), budget=steps.plan_seconds),
    Step(
        "tools_debate",
        steps.step4_tools_debate,
        applies=lambda state: enabled(state, "mcp_tools") or enabled(state, "debate_mode"),
        budget=_tools_and_debate,
        log_skipped=steps.log_step4_flags,
    ),
    Step("read", reader.read, applies=reader.may_read),
    Step("compose", steps.step5_compose, fallback=quoted_without_embedder, cpu_bound=_quotes_only),
    Step("cite", steps.step6_cite, budget=steps.check_seconds, fallback=_withhold_unchecked, cpu_bound=_always),
    Step("respond", steps.step7_respond),
)


async def perform(step: Step, state: PipelineState) -> PipelineState:
    """Run one step within its budget, or its fallback after that, with trace and event.

    A step that does not apply leaves the state unchanged.
    """
    if not step.applies(state):
        step.log_skipped(state)
        return state
    run = running(state)
    slot = run.admission.cpu() if step.cpu_bound(state) else contextlib.nullcontext()
    async with slot:
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
        state.notes.append(stated("step_late", "{error}; the answer was made without it.", error=error, step=step.name))
        if step.fallback is not None:
            state = await _fall_back(step.fallback, state)
    seconds = limit_clock() - started
    since = started - run.recording.started
    run.recording.steps.append(StepTrace(step.name, seconds, budget, outcome, run.recording.facts, since))
    run.emit("step", {"name": step.name, "seconds": seconds, "outcome": outcome})
    return state


async def _fall_back(fallback: StepFunction, state: PipelineState) -> PipelineState:
    """The fallback's state; if that times out as well, the answer says that there was not enough time."""
    try:
        async with asyncio.timeout(FALLBACK_S * timeout_multiplier()):
            return await fallback(state)
    except TimeoutError:
        late = stated("nothing_in_time", "Nothing could be made in time.")
        return unfinished(state, running(state), (late,), searched=state.evidence is not None)
