"""Time budgets of the steps, and the function that enforces them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from dtrag.concurrency import DaemonThreads, limit_clock
from dtrag.pipeline.state import PipelineState
from dtrag.settings import timeout_multiplier

STEP_TIMEOUTS = {"intent": 0.1, "retrieve": 2.0, "compose": 3.5, "respond": 0.1}
"""Seconds of the steps of every run, from the acceptance text."""
OPTIONAL_STEP_TIMEOUTS = {
    "rewrite": 1.5,
    "plan": 0.5,
    "plan_by_model": 3.0,
    "tools": 1.0,
    "debate": 10.0,
    "tools_debate": 11.0,
    "read": 2.0,
    "cite": 0.1,
    "check": 1.0,
}
"""Seconds of the optional steps; `tools` is per tool. `tools_debate` is the step of both, here with one tool, in a run
with as many as the plan has.

A model rarely plans within the .5 s that rules have. Checking a model's answer against the passages (`check`, in place
of `cite`) takes 10 to 50 ms of CPU time.
"""
DEFAULT_S = 1.0

StepFunction = Callable[[PipelineState], Awaitable[PipelineState]]
EMBEDDING_THREADS = DaemonThreads(2, "dtrag-embedding")
"""Threads for composing and checking with the embedder. A call continues in them after its step has timed out."""


def budget_of(step_name: str) -> float:
    """Seconds that the step may take, PIPELINE_TIMEOUT_MULTIPLIER included."""
    seconds = STEP_TIMEOUTS.get(step_name) or OPTIONAL_STEP_TIMEOUTS.get(step_name, DEFAULT_S)
    return seconds * timeout_multiplier()


async def execute_with_timeout(
    step: StepFunction,
    state: PipelineState,
    step_name: str,
    timeout: float | None = None,  # noqa: ASYNC109 - the acceptance text names it so
) -> PipelineState:
    """Run one step and record its time in `state.step_timings`, also when it fails.

    Raises `asyncio.TimeoutError` when it takes longer than `timeout` seconds (None: `budget_of(step_name)`).
    """
    limit = budget_of(step_name) if timeout is None else timeout
    started = limit_clock()
    try:
        async with asyncio.timeout(limit) as deadline:
            return await step(state)
    except TimeoutError as error:
        if not deadline.expired():  # raised inside the step
            raise
        raise TimeoutError(f"Pipeline step '{step_name}' exceeded timeout of {limit:g}s") from error
    finally:
        state.step_timings[step_name] = limit_clock() - started
