"""What a store of evaluation runs must do."""

from __future__ import annotations

import uuid
from dataclasses import replace

from dtrag.ports import Stores
from tests.builders import MINUTE, NOON, evaluation_run


async def test_a_run_is_given_back_as_it_was_stored(stores: Stores) -> None:
    stored = evaluation_run()
    await stores.evaluations.add(stored)
    assert await stores.evaluations.get(stored.run_id) == stored
    assert await stores.evaluations.get(uuid.uuid4()) is None


async def test_a_known_run_stays_as_it_is(stores: Stores) -> None:
    first = evaluation_run(dataset="first")
    await stores.evaluations.add(first)
    await stores.evaluations.add(replace(first, dataset="second"))
    assert await stores.evaluations.get(first.run_id) == first


async def test_the_newest_are_first_and_pages_follow(stores: Stores) -> None:
    stored = [evaluation_run(at=NOON + number // 2 * MINUTE) for number in range(5)]
    for run in stored:
        await stores.evaluations.add(run)
    ordered = sorted(stored, key=lambda run: (run.created_at, run.run_id), reverse=True)
    expected = [run.summary() for run in ordered]
    first = await stores.evaluations.newest(2, None)
    assert first == expected[:2]
    assert await stores.evaluations.newest(10, ordered[1]) == expected[2:]


async def test_a_run_can_be_deleted(stores: Stores) -> None:
    stored = evaluation_run()
    await stores.evaluations.add(stored)
    assert await stores.evaluations.delete(stored.run_id)
    assert not await stores.evaluations.delete(stored.run_id)
    assert await stores.evaluations.newest(10, None) == []
