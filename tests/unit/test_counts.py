"""Numbers that processes count together: each in cells of its own, in one file that all have mapped."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import pytest

from dtrag.concurrency import FREED_ELSEWHERE_S, WORKING, Limiter
from dtrag.counts import CURRENT, Counts
from dtrag.errors import Overloaded

SEATS = 3


@pytest.fixture
def seats() -> Iterator[list[Counts]]:
    """The counts of three processes."""
    with tempfile.TemporaryFile() as file:
        yield [Counts(file.fileno(), seats=SEATS, seat=seat) for seat in range(SEATS)]


def test_each_counts_for_itself_and_all_read_the_sum(seats: list[Counts]) -> None:
    for number, counts in enumerate(seats):
        counts.row("requests", "GET", width=2).own[1] += 10.0**number
    assert [counts.row("requests", "GET", width=2).totals() for counts in seats] == [[0, 111]] * SEATS
    assert {tuple(names): row.total(1) for names, row in seats[0].rows("requests", width=2)} == {("GET",): 111}
    assert list(seats[0].rows("requests", width=3)) == []  # a worker of another version counts apart
    assert seats[0].row("requests", "GET", width=3).totals() == [0, 0, 0]


def test_common_cells_are_the_same_for_all(seats: list[Counts]) -> None:
    seats[0].common("table", width=4)[3] = 7.5
    assert list(seats[2].common("table", width=4)) == [0, 0, 0, 7.5]
    assert len({counts.secret for counts in seats}) == 1


def test_what_an_ended_process_was_doing_is_cleared_and_what_it_counted_stays(seats: list[Counts]) -> None:
    names = ("done", f"{CURRENT}doing")
    for counts in seats:
        for name in names:
            counts.row(name).own[0] = 1
    seats[0].vacate(2)
    assert [seats[1].row(name).total() for name in names] == [3, 2]


def test_processes_that_add_rows_at_the_same_time_lose_none() -> None:
    program = """
import sys
from dtrag.counts import Counts
counts = Counts(int(sys.argv[1]), seats=3, seat=int(sys.argv[2]))
for turn in range(300):
    counts.row(f"row {turn}", width=turn % 7 + 1).own[turn % 7] += 1
    cells = counts.common("shared", width=1)
    with counts.lock:
        cells[0] += 1
"""
    with tempfile.TemporaryFile() as file:
        command = [sys.executable, "-c", program, str(file.fileno())]
        running = [subprocess.Popen([*command, str(seat)], pass_fds=[file.fileno()]) for seat in range(2)]
        assert [process.wait(60) for process in running] == [0, 0]
        counts = Counts(file.fileno(), seats=SEATS, seat=2)
        assert counts.common("shared", width=1)[0] == 600
        assert [counts.row(f"row {turn}", width=turn % 7 + 1).total(turn % 7) for turn in range(300)] == [2] * 300


def test_a_full_file_counts_for_the_process_alone(seats: list[Counts], caplog: pytest.LogCaptureFixture) -> None:
    seats[0].common("large", width=len(seats[0]._map) // 8 - 10)
    for name in ("one", "another"):
        seats[0].row(name).own[0] += 1
        assert seats[0].row(name).total() == 1
    assert len(caplog.records) == 1
    assert seats[1].row("one").total() == 0


async def test_limiters_have_their_slots_and_their_queue_together(seats: list[Counts]) -> None:
    first, second = (Limiter(2, 1, 5.0, counts=counts, name="search") for counts in seats[:2])
    entered: list[int] = []

    async def work(limiter: Limiter, number: int, until: asyncio.Event) -> None:
        async with limiter.slot():
            entered.append(number)
            await until.wait()

    until = asyncio.Event()
    tasks = [asyncio.create_task(work(first, number, until)) for number in range(2)]
    await asyncio.sleep(0)
    waiting = asyncio.create_task(work(second, 2, asyncio.Event()))
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):  # one waits already, in the other process
        await work(first, 3, until)
    assert entered == [0, 1]
    assert [limiter.load for limiter in (first, second)] == [first.load] * 2
    assert (first.load.working, first.load.waiting, first.load.refused) == (2, 1, 1)
    until.set()
    await asyncio.gather(*tasks)
    await asyncio.sleep(20 * FREED_ELSEWHERE_S)
    assert entered == [0, 1, 2]
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert (first.load.working, first.load.waiting) == (0, 0)


async def test_a_process_with_more_slots_yields_to_one_that_waits(seats: list[Counts]) -> None:
    first, second = (Limiter(2, 9, 5.0, counts=counts, name="search") for counts in seats[:2])
    order: list[str] = []

    async def work(limiter: Limiter, name: str) -> None:
        async with limiter.slot():
            order.append(name)
            await asyncio.sleep(0.01)

    tasks = [asyncio.create_task(work(first, "first")) for _ in range(8)]
    await asyncio.sleep(0)
    tasks.append(asyncio.create_task(work(second, "second")))
    await asyncio.gather(*tasks)
    assert order.index("second") < 5


async def test_a_killed_process_gives_its_slots_back(seats: list[Counts]) -> None:
    limiter = Limiter(1, 1, 0.05, counts=seats[1], name="search")
    seats[0].row(f"{CURRENT}limiter", "search", width=2).own[WORKING] = 1
    with pytest.raises(Overloaded):
        async with limiter.slot():
            raise AssertionError
    seats[2].vacate(0)
    async with limiter.slot():
        assert limiter.load.working == 1
