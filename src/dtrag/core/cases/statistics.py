"""Figures over the cases and interactions of a scope, and whether they suffice for the neural selector of cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from dtrag.core.response import INTERNAL, Written, response

LEAST_INTERACTIONS, LEAST_SUCCESS = 1_000, 0.7
"""Interactions with feedback that count, and the share of successful ones, from which the neural selector is ready."""
MOST_OF_A_KEY = 250
"""Interactions of one key that count although no question was answered in them: a quarter of those that are needed."""


@dataclass(frozen=True, slots=True)
class CategoryCount:
    """The cases of one category. `category_path` as it was written; `node_id` is its node, None outside of the tree."""

    category_path: tuple[str, ...]
    node_id: int | None
    cases: int


@dataclass(frozen=True, slots=True)
class VoterCount:
    """Interactions with feedback of one caller ("" without keys): answered questions, or suggestions."""

    user_id: str
    answered: bool
    interactions: int
    successes: int

    @property
    def share(self) -> float:
        """The share of them that counts for the neural selector: suggestions cost a caller nothing."""
        return 1.0 if self.answered or not self.user_id else min(1.0, MOST_OF_A_KEY / max(1, self.interactions))


def _rounded(places: int) -> Written:
    return Written(lambda value: round(value, places), {"type": "float"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseStatistics:
    """Figures over the cases and interactions in your scope."""

    __pydantic_config__ = response("StatisticsShape")

    total_cases: int = 0
    """Active cases."""
    archived_cases: int = 0
    """Archived cases."""
    total_interactions: int = 0
    """Suggestions and answers, with and without feedback."""
    successful_interactions: int = field(default=0, init=False)
    """Interactions that ended with success."""
    success_rate: Annotated[float, _rounded(6)] = field(default=0.0, init=False)
    """Their share of those with feedback, in [0, 1]."""
    average_response_time_ms: Annotated[float, _rounded(3)] = 0.0
    """Mean time of a suggestion in milliseconds."""
    average_quality_score: Annotated[float, _rounded(6)] = 0.0
    """Mean quality of the cases."""
    total_usage_count: int = 0
    """Sum of the votes."""
    most_used_case: str | None = None
    """The case with the most votes."""
    category_distribution: Mapping[str, int] = field(default_factory=dict, init=False)
    """Cases of the ten largest categories."""
    similarity_method_usage: Mapping[str, int] = field(default_factory=dict)
    """Interactions by similarity."""
    voters: Sequence[VoterCount] = field(default=(), metadata=INTERNAL)
    largest_categories: Sequence[CategoryCount] = field(default=(), metadata=INTERNAL)
    # At most ten, the largest first.

    def __post_init__(self) -> None:
        successes, rated = sum(voter.successes for voter in self.voters), self.rated_interactions
        counts: Counter[str] = Counter()
        for category in self.largest_categories:
            counts["/".join(category.category_path)] += category.cases
        object.__setattr__(self, "successful_interactions", successes)
        object.__setattr__(self, "success_rate", successes / rated if rated else 0.0)
        object.__setattr__(
            self, "category_distribution", dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
        )

    @property
    def rated_interactions(self) -> int:
        """Interactions with feedback."""
        return sum(voter.interactions for voter in self.voters)


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether there are enough good interactions for the neural selector."""

    # Interactions that count are all from answered questions and from callers without a key, and of the suggestions of
    # each key a part that equals `MOST_OF_A_KEY` at most. One caller alone cannot make it ready by voting on
    # suggestions.

    __pydantic_config__ = response("ReadinessShape")

    interactions: int = field(metadata={"alias": "total_interactions"})
    """Interactions with feedback that count: of suggestions to one key at most 250."""
    sufficient: bool = field(metadata={"alias": "sufficient_data"})
    """Whether there are at least 1,000."""
    success_rate: float = field(metadata={"alias": "data_quality_score"})
    """The success rate."""
    ready: bool = field(metadata={"alias": "ready_for_training"})
    """Whether there are enough, and at least .70 successful."""
    successes: int = field(metadata=INTERNAL)

    @classmethod
    def of(cls, statistics: CaseStatistics) -> Readiness:
        """The readiness of these figures."""
        interactions = sum(voter.share * voter.interactions for voter in statistics.voters)
        successes = sum(voter.share * voter.successes for voter in statistics.voters)
        rate = round(successes / interactions, 6) if interactions else 0.0
        sufficient = round(interactions) >= LEAST_INTERACTIONS
        return cls(round(interactions), sufficient, rate, sufficient and rate >= LEAST_SUCCESS, round(successes))

    @property
    def missing(self) -> str:
        """Why it is not ready, as a sentence; "" when it is."""
        if not self.sufficient:
            return f"{self.interactions:,} of {LEAST_INTERACTIONS:,} interactions with feedback are there."
        if not self.ready:
            return f"{self.success_rate:.0%} of the interactions were successful; {LEAST_SUCCESS:.0%} are needed."
        return ""
