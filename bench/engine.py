"""How long a whole search takes on real passages, the question's vector included, and one that is kept.

    python bench/engine.py DATA [--sets scifact-dev,hotpotqa100-dev,...] [--questions 500]

One thread for the model. Every question is asked once, after sixty others; then once more to be kept, and once more.
Embedding 20,000 passages takes minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from dtrag.app import App, open_throwaway
from dtrag.settings import Settings

SETS = "scifact-dev,hotpotqa100-dev,wiki-distractors,cranfield-dev,squad2-dev,wikiqa-dev,regulation-articles-dev"
WARM = 60


async def main(data: Path, sets: list[str], questions: int) -> None:
    with tempfile.TemporaryDirectory(prefix="dtrag-bench-") as folder:
        settings = Settings.load(environ={}, data_dir=Path(folder) / "data", embed_threads=1)
        async with open_throwaway(settings) as app:
            await app.ingest([data / name / "corpus.jsonl" for name in sets])
            print(f"{(await app.counts())[1]:,} passages", flush=True)
            asked = drawn(data, sets, questions + WARM)
            app.engine.update_config(enable_caching=False)
            await timed(app, asked[:WARM])
            report("a search", await timed(app, asked[WARM:]))
            app.engine.update_config(enable_caching=True)
            await timed(app, asked[WARM:])
            report("one that is kept", await timed(app, asked[WARM:]))


def drawn(data: Path, sets: list[str], wanted: int) -> list[str]:
    """Different questions, as many of each set as there are of the others, in turn."""
    files = [data / name / "queries.jsonl" for name in sets]
    texts = [
        [json.loads(line)["text"] for line in file.read_text("utf-8").splitlines()] for file in files if file.exists()
    ]
    longest = max(map(len, texts), default=0)
    return list(dict.fromkeys(rows[at] for at in range(longest) for rows in texts if at < len(rows)))[:wanted]


async def timed(app: App, asked: list[str]) -> list[float]:
    taken = []
    for query in asked:
        started = time.perf_counter()
        await app.search(query, 10)
        taken.append(time.perf_counter() - started)
    return taken


def report(name: str, taken: list[float]) -> None:
    p50, p95 = np.percentile(taken, [50, 95]) * 1e3
    print(f"{name}: {len(taken)} times, p50 {p50:.2f} ms, p95 {p95:.2f} ms", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--questions", type=int, default=500)
    given = parser.parse_args()
    asyncio.run(main(given.data, given.sets.split(","), given.questions))
