"""A contextual bandit over ways to answer: fusion weights of the search times the way the answer is composed.

Soft Q-learning over a table of 108 states and 6 actions, all of it arithmetic on small numbers; the acceptance text
SOFTQ-001 names the states, the actions, the reward and the constants (D47).

What a policy would have earned is estimated from answers that another one gave and logged with propensities, by two
estimators: inverse propensity scoring, self-normalised (Swaminathan & Joachims 2015), and replay (Li, Chu, Langford &
Wang 2011) over the answers whose action was drawn uniformly. The policy is learned on four fifths of the answers and
judged on the fifth that it has not seen, so that it is not rewarded for remembering.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Composing = Literal["direct", "cot"]
COMPLEXITIES = ("simple", "medium", "complex")
INTENTS = ("question", "explanation", "search", "general")
BIN_STARTS = (1, 6)
"""Numbers of candidates from which the second and the third bin begin: 0, 1 to 5, 6 and more."""
BINS = len(BIN_STARTS) + 1
STATES = len(COMPLEXITIES) * len(INTENTS) * BINS * BINS
LEARNING_RATE = 0.2
DISCOUNT = 0.95
TEMPERATURE = 0.5
FOLDS = 5
SAMPLES = 1000
SEED = 0
LEAST_EXPLORED = 200
"""Explored answers below which no verdict is given: about 33 of each action."""


@dataclass(frozen=True, slots=True)
class Action:
    """A way to answer: weights of the lexical and the vector score, and how a language model composes the answer."""

    retrieval: str
    weights: tuple[float, float]
    composing: Composing

    @property
    def name(self) -> str:
        """For people and logs."""
        return f"{self.retrieval}/{self.composing}"


ACTIONS: tuple[Action, ...] = tuple(
    Action(retrieval, weights, composing)
    for retrieval, weights in (
        ("bm25_only", (1.0, 0.0)),
        ("hybrid_balanced", (0.5, 0.5)),
        ("vector_heavy", (0.3, 0.7)),
    )
    for composing in ("direct", "cot")
)
DEFAULT_ACTION = 2
"""`hybrid_balanced/direct`: the way of answering when there is no bandit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    """One answered question: its state, the action, the probability with which that was chosen, and the reward.

    `next_state` is that of the same asker's next question, None at the end. `explored`: the action was drawn uniformly.
    """

    experience_id: str
    at: datetime
    state: int
    action: int
    propensity: float
    reward: float
    next_state: int | None = None
    explored: bool = False


def bin_of(candidates: int) -> int:
    """The bin of a number of candidates, from 0 to 2."""
    return sum(candidates >= start for start in BIN_STARTS)


def state_of(complexity: str, intent: str, lexical_candidates: int, vector_candidates: int) -> int:
    """The number of the state in [0, `STATES`), the same in every process. `ValueError` for an unknown name."""
    state = COMPLEXITIES.index(complexity)
    state = state * len(INTENTS) + INTENTS.index(intent)
    state = state * BINS + bin_of(lexical_candidates)
    return state * BINS + bin_of(vector_candidates)


def reward_of(confidence: float, seconds: float) -> float:
    """.7 x confidence + .3 x (1 - seconds, at most 1), in [0, 1]."""
    return 0.7 * min(1.0, max(0.0, confidence)) + 0.3 * (1.0 - min(1.0, max(0.0, seconds)))


def exploring(share: float) -> Values:
    """Probabilities of the actions when a `share` in [0, 1] of the answers draws uniformly, the rest the default."""
    probabilities = np.full(len(ACTIONS), share / len(ACTIONS))
    probabilities[DEFAULT_ACTION] += 1.0 - share
    return probabilities


@dataclass(slots=True)
class WayToAnswer:
    """The choice for one question, made when the numbers of candidates are known."""

    complexity: str
    intent: str
    asker: str
    choose: Callable[[int], tuple[int, float, bool]]
    """State -> number of the action, its probability, and whether it was drawn uniformly."""
    state: int | None = None
    action: Action | None = None
    number: int = 0
    propensity: float = 1.0
    explored: bool = False

    def weights(self, lexical_candidates: int, vector_candidates: int) -> tuple[float, float]:
        """The weights of the lexical and the vector score; the first call decides."""
        if self.action is None:
            self.state = state_of(self.complexity, self.intent, lexical_candidates, vector_candidates)
            self.number, self.propensity, self.explored = self.choose(self.state)
            self.action = ACTIONS[self.number]
        return self.action.weights

    @property
    def composing(self) -> Composing:
        """How a language model composes the answer."""
        return "direct" if self.action is None else self.action.composing


class ActionValues:
    """The expected rewards Q of every action in every state, and how often each was updated."""

    def __init__(self, values: Values | None = None, updates: NDArray[np.int64] | None = None) -> None:
        shape = (STATES, len(ACTIONS))
        self.values = np.zeros(shape) if values is None else np.array(values, np.float64).reshape(shape)
        self.updates = np.zeros(shape, np.int64) if updates is None else np.array(updates, np.int64).reshape(shape)

    def probabilities(self, state: int) -> Values:
        """The softmax of Q / `TEMPERATURE`, shape (6,). A state that was never seen plays the default action."""
        if not self.updates[state].any():
            return exploring(0.0)
        scaled = self.values[state] / TEMPERATURE
        weights = np.exp(scaled - scaled.max())
        return np.asarray(weights / weights.sum(), np.float64)

    def learn(self, experience: Experience) -> None:
        """Q += a (R + g max Q' - Q), with a = `LEARNING_RATE` and g = `DISCOUNT`; without a next state max Q' is 0."""
        following = 0.0 if experience.next_state is None else float(self.values[experience.next_state].max())
        place = (experience.state, experience.action)
        target = experience.reward + DISCOUNT * following
        self.values[place] += LEARNING_RATE * (target - self.values[place])
        self.updates[place] += 1

    @classmethod
    def learned(cls, experiences: Sequence[Experience]) -> ActionValues:
        """The values after these experiences, in their order."""
        values = cls()
        for experience in experiences:
            values.learn(experience)
        return values


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
