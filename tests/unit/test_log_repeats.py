"""A line that repeats is written a few times; the rest are counted."""

from __future__ import annotations

import logging

from dtrag.logs import LINES, MOST_KINDS, WINDOW_S, RepeatLimit


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def record(message: str, level: int = logging.WARNING, *, error: BaseException | None = None) -> logging.LogRecord:
    exception = (type(error), error, error.__traceback__) if error is not None else None
    return logging.LogRecord("dtrag.x", level, "file.py", 1, message, (), exception)


def test_a_thousand_lines_become_a_few_and_a_count() -> None:
    clock = Clock()
    limit = RepeatLimit(clock)
    written = [line for number in range(1_000) if limit.filter(line := record(f"no connection\n{number}"))]
    assert len(written) == LINES
    clock.now += WINDOW_S
    later = record("no connection")
    assert limit.filter(later)
    assert vars(later)["left_out"] == 1_000 - LINES
    assert sum(limit.filter(record("no connection")) for _ in range(50)) == LINES - 1


def test_other_lines_and_facts_about_work_are_not_held_back() -> None:
    limit = RepeatLimit(Clock())
    for number in range(LINES * 3):
        limit.filter(record("the same"))
        assert limit.filter(record("request", logging.INFO))
        assert limit.filter(record(f"other {number}"))


def test_errors_of_different_places_are_different_lines() -> None:
    limit = RepeatLimit(Clock())
    errors: list[Exception] = []
    for text in ("x", "٠x"):
        try:
            int(text)
        except ValueError as error:
            errors.append(error)
    try:
        _ = dict[int, int]()[1]
    except KeyError as error:
        errors.append(error)
    del errors[1]  # raised in the same place as the first
    for raised in errors:
        assert sum(limit.filter(record("a request failed", error=raised)) for _ in range(50)) == LINES


def test_memory_is_bounded() -> None:
    limit = RepeatLimit(Clock())
    for number in range(MOST_KINDS * 3):
        limit.filter(record(f"kind {number}"))
    assert len(limit._kinds) <= MOST_KINDS
