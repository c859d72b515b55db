"""What runs the steps: a plain loop, or LangGraph where it is asked for; and flags that hold for a whole run."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from dtrag.assembly import pipeline_type
from dtrag.errors import InvalidInput
from dtrag.pipeline.execution import LangGraphPipeline, Pipeline
from dtrag.pipeline.run_context import Run
from dtrag.pipeline.state import PipelineState
from dtrag.pipeline.step_table import STEPS
from dtrag.retrieval.engine import HybridSearchEngine
from dtrag.settings import FLAGS, Settings, active_flags, set_feature_flag
from tests.unit.pipeline.debate.scripted import Scripted
from tests.unit.retrieval.memory import MemoryIndex, Row

TEXT = "Everyone has leave. Parental leave takes at most 90 days. It is paid."
QUESTION = "How many days of parental leave are there?"


def _run(**fields: Any) -> Run:
    index = MemoryIndex([Row("a", TEXT, 2, "Handbook"), Row("b", "Gardens are closed in winter.", 2)])
    return Run(engine=HybridSearchEngine(None, index), index=index, embedder=None, **fields)


@pytest.fixture
def flags() -> Iterator[None]:
    yield
    for declared in FLAGS:
        set_feature_flag(declared.name, None)


def test_plain_is_the_default_and_other_names_are_refused() -> None:
    assert pipeline_type(Settings.load(environ={}).pipeline) is Pipeline
    assert pipeline_type(Settings.load(environ={"DTRAG_PIPELINE": "langgraph"}).pipeline) is LangGraphPipeline
    with pytest.raises(InvalidInput, match="must be plain or langgraph"):
        pipeline_type("graph")


async def test_both_log_which_parts_of_step_4_are_switched_off(flags: None, caplog: pytest.LogCaptureFixture) -> None:
    tools, debate = "Step 4 (tools) skipped (mcp_tools flag OFF)", "Step 4 (debate) skipped (feature flag OFF)"
    for runner in (Pipeline, LangGraphPipeline):
        caplog.clear()
        with caplog.at_level(logging.INFO, "dtrag"):
            await runner(_run).execute(QUESTION)
        assert [line for line in caplog.messages if line.startswith("Step 4")] == [tools, debate]
    set_feature_flag("mcp_tools", True)
    caplog.clear()
    with caplog.at_level(logging.INFO, "dtrag"):
        await Pipeline(_run).execute(QUESTION)
    assert debate in caplog.messages
    assert tools not in caplog.messages


async def test_both_give_the_same_answers_steps_and_budgets() -> None:
    shown = []
    for runner in (Pipeline, LangGraphPipeline):
        traces: list[Any] = []

        async def keep(trace: Any, kept: list[Any] = traces) -> None:
            kept.append(trace)

        response = await runner(_run, keep).execute(QUESTION)
        [trace] = traces
        shown.append(
            (
                response.answer,
                response.citations,
                response.confidence,
                [(s.name, s.budget, s.outcome) for s in trace.steps],
            )
        )
    assert shown[0] == shown[1]
    assert [name for name, _, _ in shown[0][3]] == ["intent", "retrieve", "compose", "cite", "respond"]


async def test_the_graph_can_be_part_of_another() -> None:
    from langgraph.graph import END, START, StateGraph

    from dtrag.pipeline.execution import Channels

    async def ask_again(state: Channels) -> Channels:
        return {"state": replace(state["state"], query=QUESTION)}

    outer: Any = StateGraph(Channels)
    outer.add_node("ask_again", ask_again)
    outer.add_node("dtrag", LangGraphPipeline(_run).graph)
    outer.add_edge(START, "ask_again")
    outer.add_edge("ask_again", "dtrag")
    outer.add_edge("dtrag", END)
    found = await outer.compile().ainvoke({"state": PipelineState(query="?", run=_run())})
    assert "90 days" in (found["state"].answer or "")
    assert set(LangGraphPipeline(_run).graph.get_graph().nodes) >= {step.name for step in STEPS}


@pytest.mark.parametrize("runner", [Pipeline, LangGraphPipeline])
async def test_a_flag_that_is_switched_in_a_run_counts_for_the_next(runner: type[Pipeline], flags: None) -> None:
    def switch(event: str, data: Any) -> None:
        if data.get("name") == "intent":
            for name in ("meta_planner", "mcp_tools", "debate_mode"):
                set_feature_flag(name, True)

    model = Scripted("Parental leave takes at most 90 days. [1]")
    pipeline = runner(lambda: _run(model=model))
    first = await pipeline.execute(QUESTION, emit=switch)
    assert first.step_timings.keys() == {"intent", "retrieve", "compose", "cite", "respond"}
    assert first.debate is None
    second = await pipeline.execute(QUESTION)
    assert {"plan", "tools_debate"} <= second.step_timings.keys()
    assert second.debate is not None


async def test_the_flags_of_a_run_are_those_that_are_on(flags: None) -> None:
    assert active_flags() == frozenset()
    set_feature_flag("mcp_tools", True)
    assert active_flags() == Run(engine=_run().engine, index=_run().index, embedder=None).flags == {"mcp_tools"}


async def test_an_unknown_limit_is_refused() -> None:
    with pytest.raises(TypeError, match=r"no argument 'retreived'.*retrieved"):
        await Pipeline(_run).execute(QUESTION, retreived=3)  # type: ignore[call-arg]
