"""How long each step may take, and the one place where that is held."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from dtrag.concurrency import DaemonThreads, limit_clock
from dtrag.pipeline.state import PipelineState
from dtrag.settings import timeout_multiplier

STEP_TIMEOUTS = {"intent": 0.1, "retrieve": 2.0, "compose": 3.5, "respond": 0.1}
"""Seconds of the steps that every run has, as the acceptance text sets them."""
OPTIONAL_STEP_TIMEOUTS = {
    "rewrite": 1.5,
    "plan": 0.5,
    "plan_by_model": 3.0,
    "tools": 1.0,
    "debate": 10.0,
    "tools_debate": 11.0,
    "cite": 0.1,
    "check": 1.0,
}
"""Seconds of the others; those of `tools` for each tool. `tools_debate` is the step of both: one tool and a debate
here, as many tools as the plan has in a run.

A model hardly ever plans within the .5 s that rules have. Holding what a model wrote against the passages (`check`, in
the place of `cite`) takes 10 to 50 ms of a processor, which is not always free.
"""
OTHER = 1.0

StepFunction = Callable[[PipelineState], Awaitable[PipelineState]]
EMBEDDING_THREADS = DaemonThreads(2, "dtrag-embedding")
"""Threads of composing and checking with the embedder. A call goes on in them when its step has timed out."""


def budget_of(step_name: str) -> float:
    """Seconds that the step may take now, PIPELINE_TIMEOUT_MULTIPLIER included."""
    seconds = STEP_TIMEOUTS.get(step_name) or OPTIONAL_STEP_TIMEOUTS.get(step_name, OTHER)
    return seconds * timeout_multiplier()


async def execute_with_timeout(
    step: StepFunction,
    state: PipelineState,
    step_name: str,
    timeout: float | None = None,  # noqa: ASYNC109 - the acceptance text names it so
) -> PipelineState:
    """Run one step; its time goes into `state.step_timings`, also when it fails.

    Raises `asyncio.TimeoutError` when it takes longer than `timeout` seconds (None: what `budget_of` says).
    """
    limit = budget_of(step_name) if timeout is None else timeout
    started = limit_clock()
    try:
        async with asyncio.timeout(limit) as deadline:
            return await step(state)
    except TimeoutError as error:
        if not deadline.expired():  # the step's own
            raise
        raise TimeoutError(f"Pipeline step '{step_name}' exceeded timeout of {limit:g}s") from error
    finally:
        state.step_timings[step_name] = limit_clock() - started
