"""A run over the twin worlds: every scenario by every visitor, again and again until there were enough requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from dtrag.evaluation.twins.library import VISITORS, Visitor
from dtrag.evaluation.twins.scenarios import SCENARIOS
from dtrag.evaluation.twins.visits import Comparison, World, compare

WRITERS_PER_ROUND = 3
"""Visitors that play the scenarios which write, in a round; others do so in the next. These take the longest."""
Told = Callable[[Comparison], None]


async def compare_worlds(
    worlds: Sequence[World],
    requests: int,
    *,
    seed: int = 1,
    on_round: Callable[[int], None] = lambda number: None,
    on_progress: Told = lambda found: None,
) -> Comparison:
    """Play rounds of all scenarios until `requests` were sent to both worlds together; the last round is cut short.

    `on_round` is called before each round, counted from 0.
    """
    found, number, started = Comparison(), 0, time.perf_counter()
    while found.requests < requests:
        on_round(number)
        await play_round(worlds, number, found, seed=seed, most=requests, on_progress=on_progress)
        number += 1
    found.seconds = time.perf_counter() - started
    return found


async def play_round(
    worlds: Sequence[World],
    number: int,
    into: Comparison,
    *,
    seed: int = 1,
    visitors: Sequence[Visitor] = VISITORS,
    most: int | None = None,
    on_progress: Told = lambda found: None,
) -> None:
    """Every scenario once, until `most` requests were sent in all.

    Scenarios that only read are played by all visitors at once, those that write one after the other.
    """
    for scenario in SCENARIOS:
        name = f"{seed}:{number}:{scenario.name}"
        if scenario.writes:
            first = number * WRITERS_PER_ROUND
            for place in range(first, first + min(WRITERS_PER_ROUND, len(visitors))):
                visitor = visitors[place % len(visitors)]
                await compare(scenario, worlds, visitor, f"{name}:{visitor.name}", into=into)
        else:
            async with asyncio.TaskGroup() as group:
                for visitor in visitors:
                    group.create_task(compare(scenario, worlds, visitor, f"{name}:{visitor.name}", into=into))
        on_progress(into)
        if most is not None and into.requests >= most:
            break
