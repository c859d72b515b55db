"""Speed and memory of ingesting JSONL without embeddings, every index in place; and of the same again.

    python bench/ingest.py [CORPUS.jsonl ...] [--documents 20000]

The documents of the given files are repeated under new ids up to the wanted number; without files, texts of made-up
words with Zipf frequencies are used.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import tempfile
from collections.abc import Iterator
from itertools import accumulate, cycle
from pathlib import Path

from dtrag.app import open_throwaway
from dtrag.settings import Settings


def made_up() -> Iterator[dict[str, str]]:
    chance = random.Random(7)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(50_000)]
    weights = list(accumulate(1 / (rank + 10) for rank in range(len(words))))
    while True:
        yield {
            "title": " ".join(chance.choices(words, cum_weights=weights, k=5)),
            "text": " ".join(chance.choices(words, cum_weights=weights, k=120)) + ".",
        }


def documents(files: list[Path]) -> Iterator[dict[str, str]]:
    if not files:
        return made_up()
    return cycle([json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()])


async def main(files: list[Path], count: int) -> None:
    with tempfile.TemporaryDirectory(prefix="dtrag-bench-") as folder:
        corpus = Path(folder) / "corpus.jsonl"
        with corpus.open("w", encoding="utf-8") as out:
            for number, row in zip(range(count), documents(files), strict=False):
                out.write(json.dumps({"id": str(number), "title": row["title"], "text": row["text"]}) + "\n")
        settings = Settings.load(environ={}, data_dir=Path(folder) / "data", embedder="none")
        async with open_throwaway(settings) as app:
            report = await app.ingest([corpus])
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"{report.documents} documents, {report.chunks} chunks in {report.seconds:.1f} s: "
                f"{report.chunks / report.seconds:.0f} chunks/s; peak {peak:.0f} MB"
            )
            again = await app.ingest([corpus])
            print(f"the same again: {again.documents} documents in {again.seconds:.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--documents", type=int, default=20_000)
    given = parser.parse_args()
    asyncio.run(main(given.files, given.documents))
