"""What a store of experiences must do."""

from __future__ import annotations

from dataclasses import replace

from dtrag.core.cases.bandit import Experience
from dtrag.ports import Stores
from tests.builders import MINUTE, NOON


def experience(number: int, *, state: int = 3, action: int = 2, explored: bool = False) -> Experience:
    """An experience some minutes after noon."""
    return Experience(
        experience_id=f"experience-{number}",
        at=NOON + number * MINUTE,
        state=state,
        action=action,
        propensity=0.5,
        reward=0.25,
        explored=explored,
    )


async def test_experiences_come_back_oldest_first(stores: Stores) -> None:
    first, second = experience(1, explored=True), replace(experience(2), next_state=7)
    await stores.learning.add([second], 10)
    await stores.learning.add([first], 10)
    assert await stores.learning.experiences() == [first, second]


async def test_a_known_experience_is_not_doubled(stores: Stores) -> None:
    await stores.learning.add([experience(1)], 10)
    await stores.learning.add([replace(experience(1), reward=1.0)], 10)
    assert await stores.learning.experiences() == [experience(1)]


async def test_the_oldest_leave_when_there_are_too_many(stores: Stores) -> None:
    await stores.learning.add([experience(number) for number in range(5)], 3)
    assert await stores.learning.experiences() == [experience(number) for number in (2, 3, 4)]


async def test_the_next_state_is_added_when_it_is_known(stores: Stores) -> None:
    await stores.learning.add([experience(1)], 10)
    await stores.learning.follow("experience-1", 9)
    await stores.learning.follow("unknown", 9)
    assert await stores.learning.experiences() == [replace(experience(1), next_state=9)]


async def test_nothing_explores_until_it_is_set(stores: Stores) -> None:
    assert await stores.learning.exploration() == 0.0
    await stores.learning.explore(0.05)
    await stores.learning.explore(0.1)
    assert await stores.learning.exploration() == 0.1
