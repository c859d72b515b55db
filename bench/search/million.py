"""A million passages end to end: ingest, vectors, mapped files, searches, by an interrupted run, too.

    python bench/search/million.py DATA FOLDER [--sizes 100000 300000 1000000] [--embedded 100000]

A passage is sentences that a seed draws from English collections below DATA: all texts differ. The vectors of the
first `--embedded` are those of the default embedder; every further one is one of them with a random part of its own.
Everything is kept in FOLDER: blocks that were ingested and vectors that were made are not made again. At each size,
after all of it is in files, fresh questions are asked in the whole tree and in a tenth of it; a line for `plot.py` is
added to FOLDER/measured.jsonl.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from unittest import mock

import numpy as np
from system import children_of, processor_s

from dtrag.app import App, open_app
from dtrag.assembly import embedders
from dtrag.core.access.scope import Scope
from dtrag.core.documents import Vector
from dtrag.ports import Embedder
from dtrag.settings import Settings

COLLECTIONS = ("squad2-dev", "hotpotqa100-dev", "wiki-distractors", "scifact-dev", "wikiqa-dev")
BLOCK = 10_000
PARTS = 10
"""Categories, to which the blocks belong in turn."""
SENTENCES = 4
"""Of a passage."""
OWN_PART = 0.5
"""Length of the random part of a vector beside the embedded one."""
AT_ONCE = 500
WARM, QUESTIONS = 40, 200
_NUMBER = re.compile(r"\bNo\. (\d+)\.")


class Texts:
    """Passages by their numbers, and questions about the same subjects."""

    def __init__(self, data: Path) -> None:
        files = [data / name / "corpus.jsonl" for name in COLLECTIONS]
        texts = (json.loads(line)["text"] for file in files for line in file.read_text("utf-8").splitlines())
        sentences = (sentence for text in texts for sentence in re.split(r"(?<=[.!?])\s+", text))
        self._sentences = list(dict.fromkeys(sentence for sentence in sentences if 40 <= len(sentence) <= 300))
        asked = [data / name / "queries.jsonl" for name in COLLECTIONS]
        self.questions = list(
            dict.fromkeys(
                json.loads(line)["text"]
                for file in asked
                if file.exists()
                for line in file.read_text("utf-8").splitlines()
            )
        )
        random.Random(3).shuffle(self.questions)

    def passage(self, number: int) -> str:
        """Its text, which no other number has."""
        return " ".join([f"No. {number}.", *random.Random(number).sample(self._sentences, SENTENCES)])


class MixedVectors:
    """The default embedder, whose vectors of the first passages are in a file and serve the further ones, too."""

    def __init__(self, real: Embedder, texts: Texts, folder: Path, embedded: int) -> None:
        self._real = real
        self.id, self.dim, self.max_tokens, self.languages = real.id, real.dim, real.max_tokens, real.languages
        self.floor, self.decides = real.floor, real.decides
        file, made = folder / "vectors.npy", folder / "vectors-made"
        if not file.exists():
            np.lib.format.open_memmap(file, "w+", np.float16, (embedded, real.dim)).flush()
        self._rows = np.load(file, mmap_mode="r+")
        start = int(made.read_text("utf-8")) if made.exists() else 0
        for first in range(start, embedded, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, embedded))
            self._rows[first : numbers.stop] = real.embed_documents([texts.passage(number) for number in numbers])
            self._rows.flush()
            made.write_text(str(numbers.stop), "utf-8")

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        """Those of passages."""
        rows = np.empty((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            match = _NUMBER.search(text)
            assert match is not None
            number = int(match[1])
            row[:] = self._rows[number % len(self._rows)]
            if number >= len(self._rows):
                own = np.random.default_rng(number).standard_normal(self.dim, np.float32)
                row[:] += own * (OWN_PART / self.dim**0.5)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        """Those of questions are the embedder's."""
        return self._real.embed_queries(texts)


class Run:
    """One collection in one folder."""

    def __init__(self, data: Path, folder: Path, embedded: int) -> None:
        self.folder, self.texts = folder, Texts(data)
        folder.mkdir(parents=True, exist_ok=True)
        self.settings = Settings.load(environ={}, data_dir=folder / "data")
        real = embedders.choose(self.settings)
        assert real is not None
        self.embedder = MixedVectors(real, self.texts, folder, embedded)
        self.done_file = folder / "blocks.jsonl"
        lines = self.done_file.read_text("utf-8").splitlines() if self.done_file.exists() else []
        self.done = [json.loads(line) for line in lines]
        self.fresh: Iterator[str] = iter(self.texts.questions)

    async def open(self, exits: AsyncExitStack) -> App:
        """The app with that embedder."""
        with mock.patch("dtrag.assembly.embedders.choose", lambda settings: self.embedder):
            return await exits.enter_async_context(open_app(self.settings))

    def database_pids(self) -> list[int]:
        """PostgreSQL's processes."""
        pid = int(next((self.folder / "data").rglob("postmaster.pid")).read_text("utf-8").split()[0])
        return [pid, *children_of(pid)]

    async def grow(self, app: App, size: int) -> None:
        """Ingest the blocks that are missing, and make their vectors."""
        for block in range(len(self.done), -(-size // BLOCK)):
            file = self.folder / f"{block:04}.jsonl"
            with file.open("w", encoding="utf-8") as out:
                for number in range(block * BLOCK, (block + 1) * BLOCK):
                    row = {"id": str(number), "title": "", "text": self.texts.passage(number)}
                    out.write(json.dumps(row) + "\n")
            before, used, own = time.perf_counter(), processor_s(self.database_pids()), time.process_time()
            report = await app.ingest([file], category=f"Part {block % PARTS + 1}", wait=False)
            assert not report.failed, report.failed
            words = time.perf_counter() - before
            filled = await app.vectors.fill()
            processor = time.process_time() - own + processor_s(self.database_pids()) - used
            self.done.append({"words_s": words, "s": time.perf_counter() - before, "processor_s": processor})
            with self.done_file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(self.done[-1]) + "\n")
            file.unlink()
            print(f"block {block}: {report.chunks} passages {words:.1f} s, {filled.made} vectors", flush=True)

    async def mapped(self, app: App) -> float:
        """Seconds until searches read all postings and vectors from files."""
        started = time.perf_counter()
        await app.index.snapshot()
        postings, vectors = app.index._postings, app.index._vectors
        while postings._segments.keys() - postings._mapped or not vectors._complete:  # noqa: ASYNC110 - made in the loop's background
            await asyncio.sleep(0.1)
        return time.perf_counter() - started

    async def asked(self, app: App, scope: Scope) -> list[float]:
        """Seconds of each search of fresh questions, ascending."""
        taken = []
        for question in itertools.islice(self.fresh, WARM + QUESTIONS):
            started = time.perf_counter()
            results, _ = await app.search(question, 10, scope=scope, highlights=False)
            taken.append(time.perf_counter() - started)
            assert results
        return sorted(taken[WARM:])

    async def disk(self, app: App) -> tuple[dict[str, int], int]:
        """Bytes of each table with its indexes, and of the mapped files."""
        async with app.database.connection("owner") as connection:
            cursor = await connection.execute(
                "select relname, pg_total_relation_size(c.oid) as bytes from pg_class c"
                " where c.relnamespace = 'dtrag'::regnamespace and c.relkind in ('r', 'p') order by bytes desc"
            )
            tables = {row["relname"]: int(row["bytes"]) for row in await cursor.fetchall()}
        files = (self.folder / "data" / "search").rglob("*")
        return tables, sum(file.stat().st_size for file in files if file.is_file())

    async def measure(self, size: int) -> None:
        """Grow to this size, open it anew, ask, and print."""
        async with AsyncExitStack() as exits:
            app = await self.open(exits)
            await self.grow(app, size)
            await self.mapped(app)
        shutil.rmtree(self.folder / "data" / "search")
        async with AsyncExitStack() as exits:
            rebuilt = await self.mapped(await self.open(exits))
        async with AsyncExitStack() as exits:
            app = await self.open(exits)
            opened = await self.mapped(app)
            part = await app.branch("Part 1")
            print(f"\n### {size:,} passages\n\n| | p50 ms | p95 ms | processor ms |\n|---|---|---|---|", flush=True)
            shown: dict[str, float] = {}
            for label, scope in (("hybrid, whole search", Scope.everything()), ("hybrid, scope of 10 %", part)):
                used, own = processor_s(self.database_pids()), time.process_time()
                taken = await self.asked(app, scope)
                processor = time.process_time() - own + processor_s(self.database_pids()) - used
                p50, p95 = (taken[int(share * len(taken))] * 1e3 for share in (0.5, 0.95))
                print(f"| {label} | {p50:.1f} | {p95:.1f} | {processor / (WARM + QUESTIONS) * 1e3:.1f} |", flush=True)
                shown |= {f"dtrag | {label}": p50, f"dtrag | {label}, p95": p95}
            tables, files = await self.disk(app)
            pss = [_pss(pid) for pid in (os.getpid(), *self.database_pids())]
        total, seconds = sum(tables.values()) + files, sum(block["s"] for block in self.done)
        words = len(self.done) * BLOCK / sum(block["words_s"] for block in self.done)
        print(
            f"\n{words:.0f} passages/s by words, {seconds:.0f} s with vectors; all files made again in {rebuilt:.1f} s,"
            f" opened in {opened:.1f} s; {total / size:.0f} bytes a passage, of it files {files / size:.0f}, "
            + ", ".join(f"{name} {bytes_of / size:.0f}" for name, bytes_of in list(tables.items())[:6])
            + f"; resident (PSS) {pss[0]:.0f} MB and PostgreSQL {sum(pss[1:]):.0f} MB",
            flush=True,
        )
        row = {"size": size, "p50_ms": shown, "build_s": {"dtrag": seconds}, "bytes": {"dtrag": total / size}}
        with (self.folder / "measured.jsonl").open("a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")


def _pss(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--embedded", type=int, default=100_000)
    options = parser.parse_args()
    run = Run(options.data, options.folder, options.embedded)
    for size in options.sizes:
        asyncio.run(run.measure(size))
