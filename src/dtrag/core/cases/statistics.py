"""Figures over the cases and interactions of a scope, and whether they suffice for the neural selector of cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseStatistics:
    """Figures over the cases and interactions that a scope holds. Times in milliseconds, shares in [0, 1]."""

    total_cases: int = 0
    archived_cases: int = 0
    total_interactions: int = 0
    """Suggestions and answered questions, with and without feedback."""
    voters: Sequence[VoterCount] = ()
    average_response_time_ms: float = 0.0
    average_quality_score: float = 0.0
    total_usage_count: int = 0
    most_used_case: str | None = None
    largest_categories: Sequence[CategoryCount] = ()
    """At most ten, the largest first."""
    similarity_method_usage: Mapping[str, int] = field(default_factory=dict)

    @property
    def rated_interactions(self) -> int:
        """Interactions with feedback."""
        return sum(voter.interactions for voter in self.voters)

    @property
    def successful_interactions(self) -> int:
        """Those of them that ended with success."""
        return sum(voter.successes for voter in self.voters)

    @property
    def success_rate(self) -> float:
        """Share of successful ones of the interactions with feedback; 0.0 without any."""
        return self.successful_interactions / self.rated_interactions if self.rated_interactions else 0.0

    @property
    def category_distribution(self) -> dict[str, int]:
        """Cases by joined path, the largest first."""
        counts: Counter[str] = Counter()
        for category in self.largest_categories:
            counts["/".join(category.category_path)] += category.cases
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether there are enough good interactions for the neural selector.

    `interactions` and `successes` are those that count: all from answered questions and from callers without a key,
    and of the suggestions of each key a part that equals `MOST_OF_A_KEY` at most. One caller alone cannot make it ready
    by voting on suggestions.
    """

    interactions: int
    successes: int
    success_rate: float

    @classmethod
    def of(cls, statistics: CaseStatistics) -> Readiness:
        """The readiness of these figures."""
        interactions = sum(voter.share * voter.interactions for voter in statistics.voters)
        successes = sum(voter.share * voter.successes for voter in statistics.voters)
        rate = round(successes / interactions, 6) if interactions else 0.0
        return cls(round(interactions), round(successes), rate)

    @property
    def sufficient(self) -> bool:
        """Whether at least 1,000 interactions count."""
        return self.interactions >= LEAST_INTERACTIONS

    @property
    def ready(self) -> bool:
        """Whether there are enough interactions, of which at least .70 were successful."""
        return self.sufficient and self.success_rate >= LEAST_SUCCESS

    @property
    def missing(self) -> str:
        """Why it is not ready, as a sentence; "" when it is."""
        if not self.sufficient:
            return f"{self.interactions:,} of {LEAST_INTERACTIONS:,} interactions with feedback are there."
        if not self.ready:
            return f"{self.success_rate:.0%} of the interactions were successful; {LEAST_SUCCESS:.0%} are needed."
        return ""
