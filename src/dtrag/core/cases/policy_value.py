"""What a policy would have earned, estimated from answers that another policy gave and logged with propensities.

Two estimators: inverse propensity scoring, self-normalised (Swaminathan & Joachims 2015), and replay (Li, Chu, Langford
& Wang 2011) over the answers whose action was drawn uniformly. The policy is learned on four fifths of the answers and
judged on the fifth that it has not seen, so that it is not rewarded for remembering.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dtrag.core.cases.bandit import ACTIONS, ActionValues, Experience, Values, exploring

FOLDS = 5
SAMPLES = 1000
SEED = 0
LEAST_EXPLORED = 200
"""Explored answers below which no verdict is given: about 33 of each action."""


@dataclass(frozen=True, slots=True)
class PolicyValue:
    """Mean reward of a policy with its 95 % interval; `answers` that counted. None where nothing counted."""

    value: float | None
    low: float | None
    high: float | None
    answers: int


@dataclass(frozen=True, slots=True)
class OfflineEvaluation:
    """The learned policy beside the default action; `gain` is the difference by inverse propensity."""

    experiences: int
    explored: int
    default: PolicyValue
    learned: PolicyValue
    learned_by_replay: PolicyValue
    gain: PolicyValue

    @property
    def verdict(self) -> str:
        """`helps`, `harms`, `no difference found`, or `not enough data`."""
        if self.explored < LEAST_EXPLORED or self.gain.low is None or self.gain.high is None:
            return "not enough data"
        if self.gain.low > 0:
            return "helps"
        return "harms" if self.gain.high < 0 else "no difference found"


def evaluate(experiences: Sequence[Experience]) -> OfflineEvaluation:
    """Estimates from logged experiences, the same for the same experiences."""
    rewards = np.array([experience.reward for experience in experiences])
    actions = np.array([experience.action for experience in experiences], np.int64)
    propensities = np.array([experience.propensity for experience in experiences])
    explored = np.array([experience.explored for experience in experiences], bool)
    learned = _held_out_probabilities(experiences)
    rows = np.arange(len(experiences))
    learned_weights = learned[rows, actions] / propensities if len(rows) else np.zeros(0)
    default_weights = exploring(0.0)[actions] / propensities if len(rows) else np.zeros(0)
    uniform = np.where(explored, learned[rows, actions] if len(rows) else 0.0, 0.0)
    return OfflineEvaluation(
        experiences=len(experiences),
        explored=int(explored.sum()),
        default=_estimate(default_weights, rewards),
        learned=_estimate(learned_weights, rewards),
        learned_by_replay=_estimate(uniform, rewards),
        gain=_difference(learned_weights, default_weights, rewards),
    )


def _held_out_probabilities(experiences: Sequence[Experience]) -> Values:
    """Shape (experiences, actions): the policy's probabilities, learned without the experience's own fold."""
    probabilities = np.zeros((len(experiences), len(ACTIONS)))
    for fold in range(FOLDS):
        values = ActionValues.learned([each for place, each in enumerate(experiences) if place % FOLDS != fold])
        for place in range(fold, len(experiences), FOLDS):
            probabilities[place] = values.probabilities(experiences[place].state)
    return probabilities


def _means(weights: Values, rewards: Values) -> Values:
    """Self-normalised means of resamples of the answers, shape (SAMPLES,); nan where no weight was drawn."""
    rng, weighted = np.random.default_rng(SEED), weights * rewards
    means = np.full(SAMPLES, np.nan)
    for sample in range(SAMPLES):  # the same answers are drawn for every policy
        drawn = np.bincount(rng.integers(0, len(weights), len(weights)), minlength=len(weights))
        total = drawn @ weights
        if total > 0:
            means[sample] = drawn @ weighted / total
    return means


def _interval(sampled: Values) -> tuple[float, float]:
    low, high = np.nanquantile(sampled, [0.025, 0.975])
    return float(low), float(high)


def _estimate(weights: Values, rewards: Values) -> PolicyValue:
    if not (weights > 0).any():
        return PolicyValue(None, None, None, 0)
    low, high = _interval(_means(weights, rewards))
    return PolicyValue(float(weights @ rewards / weights.sum()), low, high, int((weights > 0).sum()))


def _difference(first: Values, second: Values, rewards: Values) -> PolicyValue:
    if not (first > 0).any() or not (second > 0).any():
        return PolicyValue(None, None, None, 0)
    low, high = _interval(_means(first, rewards) - _means(second, rewards))
    value = first @ rewards / first.sum() - second @ rewards / second.sum()
    return PolicyValue(float(value), low, high, len(rewards))
