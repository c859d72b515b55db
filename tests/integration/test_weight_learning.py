"""Ways to answer in the pipeline of an open app: chosen, recorded, learned; and without a trace when off."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtrag.app import App
from dtrag.core.cases.bandit import ACTIONS

pytestmark = pytest.mark.usefixtures("patient")
NAMES = {action.name for action in ACTIONS}


@pytest.fixture
async def asked(app: App, tmp_path: Path) -> App:
    """An app with one document."""
    (tmp_path / "leave.md").write_text("# Leave\n\nEvery employee has 25 days of paid leave a year.\n")
    await app.ingest(tmp_path, category="Handbook")
    return app


async def test_a_chosen_way_is_in_the_trace_and_earns_something(asked: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEATURE_SOFT_Q_BANDIT", "true")
    monkeypatch.setenv("FEATURE_EXPERIENCE_REPLAY", "true")
    response = await asked.pipeline.execute("How many days of paid leave are there?")
    assert response.decision == "answer"
    trace = await asked.traces.get(response.trace_id)
    facts = next(step.facts for step in trace.steps if step.name == "retrieve")
    assert facts["way_to_answer"] in NAMES and facts["propensity"] == 1.0
    evaluation = await asked.learning.evaluation()
    assert evaluation.experiences == 1 and evaluation.verdict == "not enough data"


async def test_without_flags_nothing_is_chosen_or_stored(asked: App) -> None:
    response = await asked.pipeline.execute("How many days of paid leave are there?")
    trace = await asked.traces.get(response.trace_id)
    facts = {step.name: step.facts for step in trace.steps}
    assert "retrieve" in facts and all("way_to_answer" not in step for step in facts.values())
    assert (await asked.learning.evaluation()).experiences == 0


async def test_weights_are_chosen_by_the_request_and_not_cached(asked: App) -> None:
    seen: list[tuple[int, int]] = []

    def only_words(lexical: int, vector: int) -> tuple[float, float]:
        seen.append((lexical, vector))
        return 1.0, 0.0

    for _ in range(2):
        results, metrics = await asked.engine.search("paid leave", choose_weights=only_words)
        assert results and not metrics.cache_hit
    assert len(seen) == 2 and seen[0][0] > 0
