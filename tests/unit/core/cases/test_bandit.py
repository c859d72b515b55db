"""The table of expected rewards, its states and actions, and the estimates of what a policy would have earned."""

from __future__ import annotations

import random
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.cases.bandit import (
    ACTIONS,
    COMPLEXITIES,
    DEFAULT_ACTION,
    INTENTS,
    LEAST_EXPLORED,
    STATES,
    ActionValues,
    Experience,
    bin_of,
    evaluate,
    exploring,
    reward_of,
    state_of,
)
from tests.builders import NOON

unit = st.floats(0, 1)


def experience(
    number: int = 0, *, state: int = 5, action: int = 0, reward: float = 0.5, following: int | None = None
) -> Experience:
    """An explored experience."""
    return Experience(
        experience_id=str(number),
        at=NOON + timedelta(seconds=number),
        state=state,
        action=action,
        propensity=1 / len(ACTIONS),
        reward=reward,
        next_state=following,
        explored=True,
    )


def test_each_combination_of_facts_is_one_state() -> None:
    numbers = {
        state_of(complexity, intent, lexical, vector)
        for complexity in COMPLEXITIES
        for intent in INTENTS
        for lexical in (0, 3, 9)
        for vector in (0, 3, 9)
    }
    assert numbers == set(range(STATES)) and STATES == 108


def test_bins_begin_at_none_one_and_six() -> None:
    assert [bin_of(count) for count in (0, 1, 5, 6, 12, 100)] == [0, 1, 1, 2, 2, 2]


def test_there_are_three_searches_times_two_ways_of_composing() -> None:
    assert [action.name for action in ACTIONS] == [
        "bm25_only/direct",
        "bm25_only/cot",
        "hybrid_balanced/direct",
        "hybrid_balanced/cot",
        "vector_heavy/direct",
        "vector_heavy/cot",
    ]
    assert ACTIONS[DEFAULT_ACTION].name == "hybrid_balanced/direct"


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_a_reward_is_a_share(confidence: float, seconds: float) -> None:
    assert 0.0 <= reward_of(confidence, seconds) <= 1.0


def test_a_reward_is_confidence_and_speed() -> None:
    assert reward_of(0.8, 0.5) == pytest.approx(0.7 * 0.8 + 0.3 * 0.5)
    assert reward_of(1.0, 7.0) == pytest.approx(0.7)


def test_one_update_follows_the_formula() -> None:
    values = ActionValues()
    values.learn(experience(state=9, action=1, reward=1.0))
    assert values.values[9, 1] == pytest.approx(0.2)
    values.learn(experience(state=5, action=0, reward=0.5, following=9))
    assert values.values[5, 0] == pytest.approx(0.2 * (0.5 + 0.95 * 0.2))


def test_an_unknown_state_plays_the_default() -> None:
    assert list(ActionValues().probabilities(3)) == [0, 0, 1, 0, 0, 0]


@given(st.lists(st.tuples(st.integers(0, 5), unit), min_size=1, max_size=50))
def test_probabilities_are_a_softmax(seen: list[tuple[int, float]]) -> None:
    values = ActionValues.learned([experience(action=action, reward=reward) for action, reward in seen])
    probabilities = values.probabilities(5)
    assert probabilities.sum() == pytest.approx(1.0) and (probabilities > 0).all()
    order = np.argsort(values.values[5], kind="stable")
    assert (np.diff(probabilities[order]) >= -1e-12).all()
    ratio = probabilities[order[-1]] / probabilities[order[0]]
    assert ratio == pytest.approx(np.exp(np.ptp(values.values[5]) / 0.5))


@given(unit)
def test_exploring_is_a_mixture_of_the_default_and_chance(share: float) -> None:
    probabilities = exploring(share)
    assert probabilities.sum() == pytest.approx(1.0)
    assert probabilities[0] == pytest.approx(share / 6)


def logged(size: int, best: int, gain: float, seed: int = 7) -> list[Experience]:
    """Answers of a uniform policy in four states, where one action earns `gain` more than the others."""
    chance = random.Random(seed)
    rows = []
    for number in range(size):
        action = chance.randrange(len(ACTIONS))
        reward = 0.4 + (gain if action == best else 0.0) + chance.uniform(-0.05, 0.05)
        rows.append(experience(number, state=chance.randrange(4), action=action, reward=reward))
    return rows


def test_a_better_action_is_found_and_its_gain_estimated() -> None:
    result = evaluate(logged(1500, best=0, gain=0.4))
    assert result.verdict == "helps"
    assert result.gain.value is not None and 0.02 < result.gain.value < 0.4
    assert result.default.value == pytest.approx(0.4, abs=0.02)
    assert result.learned_by_replay.value == pytest.approx(result.learned.value or 0.0, abs=0.02)


def test_when_the_default_is_best_the_policy_harms() -> None:
    assert evaluate(logged(1500, best=DEFAULT_ACTION, gain=0.4)).verdict == "harms"


def test_equal_actions_make_no_difference() -> None:
    assert evaluate(logged(1500, best=0, gain=0.0)).verdict == "no difference found"


def test_few_answers_give_no_verdict() -> None:
    assert evaluate(logged(LEAST_EXPLORED - 1, best=0, gain=0.4)).verdict == "not enough data"
    assert evaluate([]).verdict == "not enough data"
