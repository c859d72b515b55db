"""The time limit of a question in an evaluation, which measures answers and not the speed of the machine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from dtrag.settings import timeouts_times

QUESTION_S = 60.0
"""Seconds for a question. One that takes longer has no result: it is counted as unfinished."""
STEPS_TIMES = 30.0
"""Factor of the limits of single steps: searching, the first long one, has 2 s in the service."""
UNFINISHED = "unfinished"
"""The decision of a question that was not answered in time."""
T = TypeVar("T")


async def within_limit(work: Awaitable[T]) -> T | None:
    """The result of the work for one question; None when it takes longer than `QUESTION_S`."""
    try:
        with timeouts_times(STEPS_TIMES):
            async with asyncio.timeout(QUESTION_S):
                return await work
    except TimeoutError:
        return None


def unfinished_line(questions: int) -> list[tuple[str, str]]:
    """The line of the text output for questions without an answer in time; none if there are none."""
    return [("not finished", f"{questions:,} in {QUESTION_S:g} s each: in no measure")] if questions else []
