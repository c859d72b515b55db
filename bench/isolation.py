"""What isolation costs: the same searches with the whole tree, and confined to half of it, one after the other.

    python bench/isolation.py [--documents 20000] [--nodes 200] [--queries 300]

Made-up documents of twenty common words; questions of three common words; results are not kept.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from pathlib import Path

import numpy as np

from dtrag.app import App, open_throwaway
from dtrag.core.access.scope import Access, Grant, Viewer
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.isolation.library import COMMON, FILLED_TOPS, write_filling
from dtrag.isolation.worlds import WordHashes
from dtrag.settings import Settings


async def main(documents: int, nodes: int, queries: int) -> None:
    chance = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="dtrag-bench-") as folder:
        settings = Settings.load(environ={}, data_dir=Path(folder) / "data")
        async with open_throwaway(settings, WordHashes()) as app:
            await app.ingest(write_filling(Path(folder) / "library.jsonl", documents, nodes, chance))
            await app.vectors.fill()
            app.engine.update_config(enable_caching=False)
            taxonomy = (await app.index.snapshot()).taxonomy
            half = Access((Grant.of([CategoryPath.parse([top]) for top in FILLED_TOPS[::2]], taxonomy),))
            seen = (await app.counts(scope=half))[0] / (await app.counts())[0]
            print(f"{documents:,} documents, {nodes:,} categories; the scope holds {seen:.0%} of them\n")
            print("| mode | whole tree, p50 ms | in scope, p50 ms | ratio |\n|---|---|---|---|")
            for mode in ("lexical", "vector", "hybrid"):
                asked = [" ".join(chance.sample(COMMON, 3)) for _ in range(queries)]
                whole, scoped = await timed(app, asked, mode, half)
                print(f"| {mode} | {whole:.2f} | {scoped:.2f} | {scoped / whole:.2f} |", flush=True)


async def timed(app: App, asked: list[str], mode: str, half: Access) -> tuple[float, float]:
    """Medians in ms of both, interleaved; the first round is not counted."""
    taken: dict[bool, list[float]] = {True: [], False: []}
    for round_ in range(3):
        for query in asked:
            for confined in (False, True):
                scope: Viewer = half if confined else Access()
                started = time.perf_counter()
                await app.search(query, 10, mode=mode, scope=scope)
                if round_:
                    taken[confined].append(time.perf_counter() - started)
    return float(np.median(taken[False]) * 1e3), float(np.median(taken[True]) * 1e3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--queries", type=int, default=300)
    given = parser.parse_args()
    asyncio.run(main(given.documents, given.nodes, given.queries))
