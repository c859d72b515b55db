"""What a debate takes beside its slower agent, how exactly its time limit is held, and what it adds of its own.

python bench/debate.py [--seconds 0.5] [--times 20]

The models are two local servers that speak the OpenAI protocol, one of them slower; the database is empty.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.model_server import ModelServer

from dtrag.adapters.llms.langchain import choose
from dtrag.app import open_throwaway
from dtrag.pipeline.debate.agent import DebateAgent
from dtrag.pipeline.debate.engine import DebateEngine
from dtrag.pipeline.run_context import Run
from dtrag.settings import Settings

QUESTION = "How long may leave last?"
CONTEXT = [{"text": "Leave lasts at most two semesters. " * 40}] * 5
REPLY = "Leave lasts at most two semesters [1]."
LIMIT = 1.0
"""Seconds of the debate whose models hang."""
CROWD = 30
"""Debates at the same time."""


async def main(seconds: float, times: int) -> None:
    with (
        ModelServer(REPLY, delay=0.6 * seconds) as quick,
        ModelServer(REPLY, delay=seconds) as slow,
        tempfile.TemporaryDirectory(prefix="dtrag-bench-") as folder,
    ):
        async with open_throwaway(Settings.load(environ={}, data_dir=folder, embedder="none")) as app:
            model, _ = choose(Settings.load(environ={}, llm="openai:test", llm_base_url=quick.url))
            critic, _ = choose(Settings.load(environ={}, llm="openai:test", llm_base_url=slow.url))
            await _measured(replace(app.run, model=model, critic=critic), quick, slow, times)
            for used in (model, critic):
                assert used is not None
                await used.close()


async def _measured(run: Run, quick: ModelServer, slow: ModelServer, times: int) -> None:
    engine, critical = DebateEngine(run), DebateAgent("critical", run=run)
    await engine.run_debate(QUESTION, CONTEXT)  # what is imported on first use
    alone = await _times(times, lambda: critical.generate_answer(QUESTION, CONTEXT))
    one = await _times(times, lambda: engine.run_debate(QUESTION, CONTEXT, 1))
    two = await _times(times, lambda: engine.run_debate(QUESTION, CONTEXT, 2))
    _told("the slower agent alone", alone)
    _told("one round, 2 calls", one, f"{statistics.median(one) / statistics.median(alone):.3f} x the slower agent")
    least = 2 * slow.delay + quick.delay
    _told("two rounds and synthesis, 5 calls", two, f"{statistics.median(two) / least:.3f} x {least:.2f} s")
    print(f"    the five calls one after another would take {3 * quick.delay + 2 * slow.delay:.2f} s")

    started = time.perf_counter()
    await asyncio.gather(*(engine.run_debate(QUESTION, CONTEXT) for _ in range(CROWD)))
    took = time.perf_counter() - started
    print(f"{CROWD} debates at the same time: {took:.2f} s, {took / least:.2f} x one")

    quick.delay = slow.delay = 0.0
    _told("5 calls to models that answer at once", await _times(times, lambda: engine.run_debate(QUESTION, CONTEXT)))
    slow.fault = "hang"
    late = [took - LIMIT for took in await _times(5, lambda: _hung(engine))]
    print(f"a model hangs, limit {LIMIT:g} s: over by {max(late) * 1000:.0f} ms at worst")


async def _hung(engine: DebateEngine) -> None:
    try:
        await engine.run_debate(QUESTION, CONTEXT, timeout=LIMIT)
    except TimeoutError:
        return
    raise AssertionError("the debate ended although a model hangs")


async def _times(number: int, asked: Callable[[], Awaitable[object]]) -> list[float]:
    found = []
    for _ in range(number):
        started = time.perf_counter()
        await asked()
        found.append(time.perf_counter() - started)
    return found


def _told(name: str, seconds: list[float], more: str = "") -> None:
    print(f"{name}: p50 {statistics.median(seconds):.3f} s, max {max(seconds):.3f} s{', ' + more if more else ''}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--times", type=int, default=20)
    wanted = parser.parse_args()
    asyncio.run(main(wanted.seconds, wanted.times))
