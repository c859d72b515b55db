"""Random questions, conversations and agents over graded and open branches: which graded texts real servers were sent.

python bench/grades.py --questions 10000
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("PIPELINE_TIMEOUT_MULTIPLIER", "10")

from tests.graded import graded_world

from dtrag.settings import Settings

STEP = 100
"""Conversations between two lines of progress."""


async def main(questions: int, seed: int) -> None:
    """Ask at least so many questions; ends with an error when a graded text was sent."""
    with tempfile.TemporaryDirectory(prefix="bench-grades-") as folder:
        (files := Path(folder) / "files").mkdir()
        make = partial(Settings.load, environ={}, data_dir=Path(folder) / "data")
        async with graded_world(make, files) as world:
            started = time.monotonic()
            while world.asked["questions"] < questions:
                await world.rounds(range(seed, seed + STEP), at_once=8)
                seed += STEP
                print(f"{time.monotonic() - started:6.0f} s", dict(world.asked), flush=True)
            print({name: len(sent) for name, sent in world.recorded.items()}, "requests; graded:", world.leaks())
            if world.leaks():
                sys.exit(1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    asyncio.run(main(asked.questions, asked.seed))
