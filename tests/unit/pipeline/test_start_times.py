"""When the steps and model calls of a trace began."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dtrag.core.trace import Trace
from dtrag.pipeline.execution import Pipeline
from dtrag.pipeline.run_context import Run
from dtrag.retrieval.engine import HybridSearchEngine
from dtrag.settings import set_feature_flag
from tests.clock import Clock
from tests.unit.pipeline.debate.scripted import Scripted
from tests.unit.retrieval.memory import MemoryIndex, Row

TEXT = "Everyone has leave. Parental leave takes at most 90 days. It is paid."


@pytest.fixture
def debating() -> Iterator[None]:
    set_feature_flag("debate_mode", True)
    yield
    set_feature_flag("debate_mode", None)


async def test_calls_begin_in_their_step_and_those_of_a_debate_round_run_at_the_same_time(
    clock: Clock, debating: None
) -> None:
    stored: list[Trace] = []

    async def keep(trace: Trace) -> None:
        stored.append(trace)

    index = MemoryIndex([Row("a", TEXT, 2, "Handbook"), Row("b", "Gardens are closed in winter.", 2)])
    model = Scripted("Parental leave takes at most 90 days. [1]", delay=0.5, sleep=clock.sleep)
    run = Run(engine=HybridSearchEngine(None, index), index=index, embedder=None, model=model)
    await Pipeline(lambda: run, keep).execute("How many days of parental leave are there?")
    [trace] = stored
    starts = [step.started for step in trace.steps if step.started is not None]
    assert len(starts) == len(trace.steps)
    assert starts == sorted(starts)
    assert starts[0] >= 0
    [debate] = [step for step in trace.steps if step.name == "tools_debate"]
    calls = [(call.started, call.seconds) for call in trace.calls if call.started is not None]
    assert len(calls) == len(trace.calls) == 5
    assert debate.started is not None
    assert all(debate.started <= start <= debate.started + debate.seconds for start, _ in calls)
    (first, first_seconds), (second, second_seconds), (third, _) = sorted(calls)[:3]
    assert second < first + first_seconds  # the first round: both at the same time
    assert third >= max(first + first_seconds, second + second_seconds)
