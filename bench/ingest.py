"""Speed and memory of ingesting JSONL without embeddings, every index in place; and of the same again.

    python bench/ingest.py [CORPUS.jsonl ...] [--documents 20000]
    python bench/ingest.py --vectors FILE ...

The documents of the given files are repeated under new ids up to the wanted number; without files, texts of made-up
words with Zipf frequencies are used. With `--vectors` the files are ingested as they are, with the embedder of the
settings: seconds, and seconds of the process's processors, until they are searched by words and until all vectors are
made.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import tempfile
import time
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


async def until_vectors(files: list[Path]) -> None:
    with tempfile.TemporaryDirectory(prefix="dtrag-bench-") as folder:
        async with open_throwaway(Settings.load(environ={}, data_dir=Path(folder) / "data")) as app:
            started, cpu = time.perf_counter(), time.process_time()
            report = await app.ingest(files, wait=False)
            words, words_cpu = time.perf_counter() - started, time.process_time() - cpu
            filled = await app.vectors.fill()
            seconds, all_cpu = time.perf_counter() - started, time.process_time() - cpu
            print(
                f"{report.documents} documents, {report.chunks} chunks: words after {words:.1f} s ({words_cpu:.1f} "
                f"CPU), {filled.made} vectors after {seconds:.1f} s ({all_cpu:.1f} CPU)"
            )


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
    parser.add_argument("--vectors", action="store_true")
    given = parser.parse_args()
    asyncio.run(until_vectors(given.files) if given.vectors else main(given.files, given.documents))
