"""Deleting what is too old, with clocks that jump: in time with the seconds that pass, and not right after a jump."""

from __future__ import annotations

import datetime
import time

import pytest

from dtrag.batch_writer import EVERY_S, HOLD_S, TidyTimer
from dtrag.retrieval.cache import ResultCache

NOON = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)


class Clocks:
    """The time that passes, and a clock that is wrong by `jumped`."""

    def __init__(self) -> None:
        self.passed = 0.0
        self.jumped = datetime.timedelta()

    def now(self) -> datetime.datetime:
        return NOON + datetime.timedelta(seconds=self.passed) + self.jumped

    def monotonic(self) -> float:
        return self.passed


def test_it_is_due_at_once_and_then_every_hour() -> None:
    clocks = Clocks()
    timer = TidyTimer(clocks.now, clocks.monotonic)
    due = []
    for _ in range(10):
        due.append(timer.due())
        clocks.passed += EVERY_S / 4
    assert due == [True, False, False, False] * 2 + [True, False]


@pytest.mark.parametrize("years", [10, -10])
def test_after_a_jump_of_the_clock_it_waits_a_day_and_continues_by_elapsed_time(years: int) -> None:
    clocks = Clocks()
    timer = TidyTimer(clocks.now, clocks.monotonic)
    assert timer.due()
    clocks.passed += EVERY_S
    clocks.jumped = datetime.timedelta(days=365 * years)
    assert not timer.due()
    clocks.passed += HOLD_S / 2
    assert not timer.due()
    clocks.passed += HOLD_S / 2
    assert timer.due()
    clocks.jumped = datetime.timedelta()  # put right: that is a jump, too
    clocks.passed += EVERY_S
    assert not timer.due()
    clocks.passed += HOLD_S
    assert timer.due()


def test_the_time_that_a_result_is_kept_does_not_depend_on_the_clock() -> None:
    assert ResultCache()._clock is time.monotonic
