"""The pipeline as a LangGraph, from the same table of steps as `Pipeline`, for programs that compose graphs.

langgraph is imported when a graph is built: the import takes 1.5 s and 44 MB, and running the nodes about 3 ms of CPU
time an answer.
"""

from __future__ import annotations

import asyncio
import functools
from typing import Any, TypedDict

from dtrag.pipeline.execution import Pipeline
from dtrag.pipeline.run import Run
from dtrag.pipeline.state import PipelineState
from dtrag.pipeline.step_table import STEPS, Step, perform


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
