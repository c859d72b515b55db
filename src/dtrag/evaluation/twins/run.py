"""Runs all scenarios by all visitors in rounds, until enough requests were sent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from dtrag.evaluation.twins.askers import ask_in_one_world
from dtrag.evaluation.twins.library import VISITORS, Visitor
from dtrag.evaluation.twins.scenarios import SCENARIOS
from dtrag.evaluation.twins.visits import Comparison, World, compare

WRITERS_PER_ROUND = 3
"""Visitors per round that run the writing scenarios, which take longest; the others follow in later rounds."""
OnProgress = Callable[[Comparison], None]


async def compare_worlds(
    worlds: Sequence[World],
    requests: int,
    *,
    seed: int = 1,
    on_round: Callable[[int], None] = lambda number: None,
    on_progress: OnProgress = lambda comparison: None,
) -> Comparison:
    """Play rounds of all scenarios until `requests` were sent to both worlds together; the last may be incomplete.

    `on_round` is called before each round, counted from 0.
    """
    comparison, number, started = Comparison(), 0, time.perf_counter()
    while comparison.requests < requests:
        on_round(number)
        await play_round(worlds, number, comparison, seed=seed, most=requests, on_progress=on_progress)
        number += 1
    comparison.seconds = time.perf_counter() - started
    return comparison


async def play_round(
    worlds: Sequence[World],
    number: int,
    into: Comparison,
    *,
    seed: int = 1,
    visitors: Sequence[Visitor] = VISITORS,
    most: int | None = None,
    on_progress: OnProgress = lambda comparison: None,
) -> None:
    """Play every scenario once, until `most` requests were sent in all; before that, others ask in the first world.

    Reading scenarios are played by all visitors concurrently, writing ones one after the other.
    """
    await ask_in_one_world(worlds[0], f"{seed}:{number}")
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
