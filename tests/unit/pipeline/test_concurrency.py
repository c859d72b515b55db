"""Rooms with a bounded queue: who comes when it is full, or waits too long, is told at once when to come back."""

from __future__ import annotations

import asyncio

import pytest

from dtrag.errors import Overloaded
from dtrag.pipeline.concurrency import LONGEST_RETRY_S, Admission, Room
from dtrag.settings import Settings


async def hold(room: Room, entered: list[int], number: int, until: asyncio.Event) -> None:
    async with room.place():
        entered.append(number)
        await until.wait()


async def test_no_more_than_the_places_at_once_and_in_order() -> None:
    entered: list[int] = []
    room, until = Room(2, 10, 5.0), asyncio.Event()
    tasks = [asyncio.create_task(hold(room, entered, number, until)) for number in range(5)]
    await asyncio.sleep(0)
    assert entered == [0, 1]
    assert (room.load.working, room.load.waiting) == (2, 3)
    until.set()
    await asyncio.gather(*tasks)
    assert entered == [0, 1, 2, 3, 4]
    assert (room.load.working, room.load.waiting, room.load.refused) == (0, 0, 0)


async def test_a_full_queue_is_told_at_once() -> None:
    room, until = Room(1, 1, 60.0), asyncio.Event()
    tasks = [asyncio.create_task(hold(room, [], number, until)) for number in range(2)]
    await asyncio.sleep(0)
    async with asyncio.timeout(1):
        with pytest.raises(Overloaded) as caught:
            async with room.place():
                raise AssertionError
    seconds = caught.value.fields["seconds"]
    assert isinstance(seconds, int)
    assert 1 <= seconds <= LONGEST_RETRY_S
    assert str(seconds) in str(caught.value)
    assert room.load.refused == 1
    until.set()
    await asyncio.gather(*tasks)


async def test_those_sent_away_do_not_come_back_together() -> None:
    room, until = Room(1, 0, 60.0), asyncio.Event()
    task = asyncio.create_task(hold(room, [], 0, until))
    await asyncio.sleep(0)
    told = set()
    for _ in range(100):
        with pytest.raises(Overloaded) as caught:
            async with room.place():
                raise AssertionError
        told.add(caught.value.fields["seconds"])
    assert told == set(range(1, LONGEST_RETRY_S + 1))
    until.set()
    await task


async def test_a_long_wait_ends_and_leaves_the_place_to_others() -> None:
    room, until = Room(1, 5, 0.05), asyncio.Event()
    task = asyncio.create_task(hold(room, [], 0, until))
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        async with room.place():
            raise AssertionError
    assert room.load.waiting == 0
    until.set()
    await task
    async with room.place():
        assert room.load.working == 1


async def test_places_come_back_from_whoever_fails_or_is_cancelled() -> None:
    room, until = Room(1, 5, 5.0), asyncio.Event()
    with pytest.raises(ValueError, match="lost"):
        async with room.place():
            raise ValueError("lost")
    holder = asyncio.create_task(hold(room, [], 0, until))
    waiter = asyncio.create_task(hold(room, [], 1, until))
    await asyncio.sleep(0)
    for task in (waiter, holder):
        task.cancel()
    await asyncio.gather(holder, waiter, return_exceptions=True)
    assert (room.load.working, room.load.waiting) == (0, 0)
    async with asyncio.timeout(1), room.place():
        pass


async def test_many_who_come_and_go_leave_nothing_behind() -> None:
    room, most = Room(3, 1_000, 5.0), 0

    async def visit(number: int) -> None:
        nonlocal most
        async with room.place():
            most = max(most, room.load.working)
            await asyncio.sleep(0.0001 * (number % 3))

    tasks = [asyncio.create_task(visit(number)) for number in range(300)]
    await asyncio.sleep(0.002)
    for task in tasks[::7]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert most == 3
    assert (room.load.working, room.load.waiting) == (0, 0)


async def test_waiting_for_models_does_not_keep_others_from_computing() -> None:
    admission = Admission(runs=2, cpu=1, models=1, queue=0, patience=0.05)
    async with admission.run(), admission.model(), asyncio.timeout(1), admission.cpu():
        loads = admission.loads()
    working = {room: load.working for room, load in loads.items()}
    assert working == {"run": 1, "cpu": 1, "model": 1, "search": 0, "upload": 0}
    async with admission.run(), admission.run():
        with pytest.raises(Overloaded):
            async with admission.run():
                raise AssertionError


async def test_as_the_settings_say() -> None:
    admission = Admission.of(Settings.load(environ={}, answers_at_once=1, answers_waiting=0, wait_ms=10))
    async with admission.run():
        with pytest.raises(Overloaded):
            async with admission.run():
                raise AssertionError
