"""Experiences in memory: `LearningStore`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dtrag.core.cases.bandit import Experience


class MemoryLearning:
    """The experiences of one process."""

    def __init__(self) -> None:
        self._experiences: dict[str, Experience] = {}
        self._share = 0.0

    async def add(self, experiences: Sequence[Experience], most: int) -> None:
        """See `LearningStore`."""
        for each in experiences:
            self._experiences.setdefault(each.experience_id, each)
        for each in (await self.experiences())[: max(0, len(self._experiences) - most)]:
            del self._experiences[each.experience_id]

    async def follow(self, experience_id: str, state: int) -> None:
        """See `LearningStore`."""
        known = self._experiences.get(experience_id)
        if known is not None:
            self._experiences[experience_id] = replace(known, next_state=state)

    async def experiences(self) -> list[Experience]:
        """See `LearningStore`."""
        return sorted(self._experiences.values(), key=lambda each: (each.at, each.experience_id))

    async def exploration(self) -> float:
        """See `LearningStore`."""
        return self._share

    async def explore(self, share: float) -> None:
        """See `LearningStore`."""
        self._share = share
