"""Ports of what is learned about ways to answer: the learner, and the store of its experiences."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from dtrag.core.cases.bandit import Experience, WayToAnswer


class LearningStore(Protocol):
    """Experiences hold numbers only, no questions and no ids of documents: they have no scope.

    All methods raise `DatabaseUnavailable` when the store cannot be reached.
    """

    async def add(self, experiences: Sequence[Experience], most: int) -> None:
        """Append experiences, ignoring those with a known id, and delete all but the newest `most`."""

    async def follow(self, experience_id: str, state: int) -> None:
        """Set the next state of an experience; nothing happens when it is unknown."""

    async def experiences(self) -> list[Experience]:
        """All of them, the oldest first."""

    async def exploration(self) -> float:
        """The share of answers in [0, 1] that explore; 0.0 unless it was set."""

    async def explore(self, share: float) -> None:
        """Set that share."""


class Learner(Protocol):
    """Chooses ways of answering, and learns which of them pay."""

    async def way_to_answer(
        self, complexity: str, intent: str, asker: str, flags: Collection[str]
    ) -> WayToAnswer | None:
        """The choice for a question, or None when nothing is to be chosen or learned. Never raises."""

    def finished(
        self, way: WayToAnswer, answer_id: str, confidence: float, seconds: float, flags: Collection[str]
    ) -> None:
        """Note what the answer earned; returns at once."""
