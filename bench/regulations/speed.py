"""How long a search of a regulation book takes, with the regulation pack on and off, and before and after a change.

python bench/regulations/speed.py BOOK QUESTIONS.jsonl [--rounds 5] [--other SRC]

Each configuration searches in its own process, and the processes take turns, since the machine's speed varies: with
the pack, without it, and with it by the code in another source folder (`--other`, such as a checkout of an earlier
commit). The first process of each source folder ingests the book. Each process loads the app, searches for 120
questions made of names of articles to warm up, and then for every question once; result caching is off. Printed are
p50 and p95 over the questions: of the middle round, and of each question's fastest round, which is the nearest to a
quiet machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

WARM_UP = 120
TOP_K = 10
CANDIDATES = 100
SOURCE = Path(__file__).parents[2] / "src"


async def measured(book: Path, texts: list[str], data_dir: str, mode: str) -> list[float]:
    """Milliseconds of the search for each question."""
    from dtrag.app import open_app
    from dtrag.settings import Settings

    settings = Settings.load(environ={}, data_dir=data_dir, embedder="none", regulations=mode, cache_size=0)
    async with open_app(settings) as app:
        await app.ingest([book])
        await app.load()

        async def search(question: str) -> float:
            started = time.perf_counter()
            await app.engine.search(question, TOP_K, bm25_candidates=CANDIDATES, vector_candidates=CANDIDATES)
            return (time.perf_counter() - started) * 1e3

        titles = sorted({citation.source for citation in await app.regulations.citations()})
        for title in random.Random(0).sample(titles, min(WARM_UP, len(titles))):
            await search(f"{title} 어떻게 되나요?")
        return [await search(text) for text in texts]


def figures(rounds: list[list[float]]) -> str:
    middle = np.percentile(np.array(rounds), [50, 95], axis=1)
    p50, p95 = np.median(middle, axis=1)
    fastest = np.percentile(np.array(rounds).min(axis=0), [50, 95])
    return f"p50 {p50:.1f}, p95 {p95:.1f} ms; fastest round of each question: {fastest[0]:.1f}, {fastest[1]:.1f} ms"


def main(book: Path, questions: Path, rounds: int, other: Path | None) -> None:
    configurations = {"with the pack": (SOURCE, "auto"), "without": (SOURCE, "off")}
    if other is not None:
        configurations[f"with the pack, {other}"] = (other, "auto")
    times: dict[str, list[list[float]]] = {name: [] for name in configurations}
    with tempfile.TemporaryDirectory(prefix="dtrag-bench-") as data_dir:
        for _ in range(rounds):
            for name, (source, mode) in configurations.items():
                folder = str(Path(data_dir) / str(list(configurations.values()).index((source, "auto"))))
                command = [sys.executable, __file__, str(book), str(questions), "--measure", mode, "--data", folder]
                run = subprocess.run(
                    command, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": str(source)}, text=True
                )
                times[name].append(json.loads(run.stdout.splitlines()[-1]))
    for name, rounds_of in times.items():
        print(f"{name}: {figures(rounds_of)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("book", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--other", type=Path)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--data", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        rows = [json.loads(line) for line in given.questions.read_text("utf-8").splitlines()]
        texts = [row["question"] for row in rows]
        print(json.dumps(asyncio.run(measured(given.book, texts, given.data, given.measure))))
    else:
        main(given.book, given.questions, given.rounds, given.other)
