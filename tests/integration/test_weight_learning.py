"""Ways to answer in the pipeline of an open app: chosen, recorded, learned; and without a trace when off."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.stores.cases import PostgresLearning
from dtrag.app import App
from dtrag.cases.weight_learning import BATCH, LEAST_EXPERIENCES, WeightLearning
from dtrag.core.cases.bandit import ACTIONS, DEFAULT_ACTION, ActionValues, WayToAnswer
from dtrag.errors import DatabaseUnavailable, InvalidInput
from dtrag.ports import LearningStore, Stores
from tests.integration.stores.test_learning import experience

NAMES = {action.name for action in ACTIONS}
MEMORY, BANDIT, REPLAY = {"cbr_enabled"}, {"soft_q_bandit"}, {"soft_q_bandit", "experience_replay"}


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


class Unreachable(PostgresLearning):
    """A store whose database is gone."""

    async def exploration(self) -> float:
        raise DatabaseUnavailable(reason="gone.")


@pytest.fixture
def store(stores: Stores) -> LearningStore:
    """The experiences of an empty database."""
    return stores.learning


def learning(store: LearningStore) -> WeightLearning:
    """A learner with random numbers that repeat."""
    return WeightLearning(store, random.Random(3))


async def chosen(learner: WeightLearning, flags: set[str], asker: str = "") -> WayToAnswer | None:
    """The choice for a simple question."""
    return await learner.way_to_answer("simple", "question", asker, flags)


async def test_nothing_is_chosen_or_kept_unless_asked_for(store: LearningStore) -> None:
    learner = learning(store)
    assert await chosen(learner, set()) is None
    assert await chosen(learner, MEMORY) is None
    await learner.close()


async def test_exploring_records_what_was_done_and_how_likely_it_was(store: LearningStore) -> None:
    learner = learning(store)
    await learner.explore(50)
    for number in range(200):
        way = await chosen(learner, MEMORY)
        assert way is not None
        assert way.weights(100, 100) == way.weights(0, 0), "the first call decides"
        learner.finished(way, str(number), 0.5, 0.1, MEMORY)
    evaluation = await learner.evaluation()
    stored = await store.experiences()
    assert evaluation.experiences == len(stored) == 200
    assert 60 < evaluation.explored < 140
    for each in stored:
        expected = 0.5 / 6 + (0.5 if each.action == DEFAULT_ACTION else 0.0)
        assert each.propensity == pytest.approx(expected)
        assert each.explored or each.action == DEFAULT_ACTION
    await learner.close()


async def test_a_search_that_made_no_choice_teaches_nothing(store: LearningStore) -> None:
    learner = learning(store)
    await learner.explore(100)
    way = await chosen(learner, MEMORY)
    assert way is not None and way.composing == "direct"
    learner.finished(way, "1", 0.5, 0.1, MEMORY)
    await learner.close()
    assert await store.experiences() == []


async def test_the_next_question_of_an_asker_is_the_next_state(store: LearningStore) -> None:
    learner = learning(store)
    await learner.explore(100)
    for number, asker in enumerate(("kim", "lee", "kim")):
        way = await chosen(learner, MEMORY, asker)
        assert way is not None
        way.weights(number, 0)
        learner.finished(way, str(number), 0.5, 0.1, MEMORY)
    await learner.close()
    following = {each.experience_id: (each.state, each.next_state) for each in await store.experiences()}
    assert following["0"][1] == following["2"][0]
    assert following["1"][1] is None and following["2"][1] is None


async def test_the_bandit_learns_from_its_own_answers(store: LearningStore) -> None:
    learner = learning(store)
    for number in range(400):
        way = await chosen(learner, BANDIT)
        assert way is not None
        way.weights(9, 9)
        learner.finished(way, str(number), 1.0 if way.number == 4 else 0.0, 0.0, BANDIT)
    way = await chosen(learner, BANDIT)
    assert way is not None
    way.weights(9, 9)
    last = [await chosen(learner, BANDIT) for _ in range(100)]
    numbers = []
    for each in last:
        assert each is not None
        each.weights(9, 9)
        numbers.append(each.number)
    assert numbers.count(4) > 30, "the action that earns more is chosen more often than one in six"
    await learner.close()


async def test_kept_experiences_are_learned_when_the_service_starts_again(store: LearningStore) -> None:
    rows = [experience(number, state=8, action=5) for number in range(LEAST_EXPERIENCES)]
    await store.add(rows, 1_000)
    learner = learning(store)
    assert await chosen(learner, REPLAY) is not None
    expected = ActionValues.learned(rows).probabilities(8)
    assert list(learner._learned.values.probabilities(8)) == list(expected)
    await learner.close()


async def test_batches_are_replayed_in_the_background(store: LearningStore) -> None:
    await store.add([experience(number, state=8, action=5) for number in range(LEAST_EXPERIENCES)], 1_000)
    learner = learning(store)
    for number in range(BATCH):
        way = await chosen(learner, REPLAY)
        assert way is not None
        way.weights(0, 0)
        learner.finished(way, f"own-{number}", 0.5, 0.1, REPLAY)
    before = learner._learned.values.updates.sum()
    await asyncio.gather(*learner._replays)
    assert learner._learned.values.updates.sum() == before + BATCH
    await learner.close()


async def test_an_unreachable_store_never_stops_an_answer(emptied: Database) -> None:
    learner = learning(Unreachable(emptied))
    assert await chosen(learner, MEMORY) is None
    await learner.close()


@pytest.mark.parametrize("percent", [-1, 101, float("nan")])
async def test_a_share_is_a_percentage(store: LearningStore, percent: float) -> None:
    with pytest.raises(InvalidInput, match="0 to 100"):
        await learning(store).explore(percent)


def test_every_action_has_weights_that_sum_to_one() -> None:
    assert all(sum(action.weights) == pytest.approx(1.0) for action in ACTIONS)
