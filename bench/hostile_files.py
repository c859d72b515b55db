"""What hostile files cost before they reach the database: each file at n, 2n and 4n repetitions.

    PYTHONPATH=. python bench/hostile_files.py [NAME ...] [--count 10000] [--ingest]

Processor time is that of the parser process, of cutting the text into passages and of analysing these; stored
characters are those of passages with their headings and titles. `--ingest` ingests the files instead, without
embeddings, and shows the seconds that passed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from tests.hostile_files import GROWING

from dtrag.adapters.parsers.process import ParserProcess
from dtrag.app import open_throwaway
from dtrag.core.documents import ChunkedDocument, ParsedDocument
from dtrag.errors import ParseFailed
from dtrag.ingestion import chunking
from dtrag.ingestion.analysis import analyse
from dtrag.regulations.korean import structure
from dtrag.settings import Settings

TICKS = os.sysconf("SC_CLK_TCK")
SLOW = 40.0
"""Seconds of a file after which its larger ones are left out."""


def processor_seconds() -> float:
    """Of this process and its parser processes, ended ones included."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = time.process_time() + ended.ru_utime + ended.ru_stime
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text().split():
            fields = (Path("/proc") / child / "stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / TICKS
    return total


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def cut(document: ParsedDocument) -> Iterable[ChunkedDocument]:
    regulations = structure.split(document)
    return [chunking.split(document)] if regulations is None else regulations


async def read(parser: ParserProcess, path: Path, file: str) -> str:
    """Passages, stored characters, processor seconds, growth of the memory, and the reason if the file failed."""
    before, resident, reason = processor_seconds(), resident_mb(), ""
    passages = stored = 0
    try:
        async for document in parser.parse(path, file):
            for part in cut(document):
                for chunk in part.chunks:
                    analyse(part.document, chunk)
                    stored += len(chunk.text) + sum(map(len, chunk.breadcrumb)) + len(part.document.title)
                passages += len(part.chunks)
    except ParseFailed as failed:
        reason = str(failed)[:70]
    spent, grown = processor_seconds() - before, resident_mb() - resident
    return f"{passages:>9,} passages {stored >> 10:>9,} KB {spent:>7.2f} s {grown:>+6.0f} MB  {reason}"


async def scan(names: Iterable[str], count: int, folder: Path) -> None:
    parser = ParserProcess(memory_mb=1_024, seconds=60, max_file_mb=512)
    for name in names:
        file, make = GROWING[name]
        for times in (1, 2, 4):
            path = folder / "file"
            path.write_bytes(make(times * count))
            started = time.perf_counter()
            row = await read(parser, path, file)
            print(f"{name[:28]:28} {times}n {path.stat().st_size >> 10:>7,} KB {row}", flush=True)
            if time.perf_counter() - started > SLOW:
                break
    await parser.close()


async def ingest(names: Iterable[str], count: int, folder: Path) -> None:
    settings = Settings.load(environ={}, data_dir=folder / "data", embedder="none")
    async with open_throwaway(settings) as app:
        for name in names:
            file, make = GROWING[name]
            path = folder / f"{abs(hash(name))}-{file}"
            path.write_bytes(make(count))
            before, started = processor_seconds(), time.perf_counter()
            report = await app.ingest([path])
            seconds, spent = time.perf_counter() - started, processor_seconds() - before
            reason = report.failed[0][1][:70] if report.failed else ""
            size = f"{path.stat().st_size >> 10:>7,} KB {report.chunks:>9,} passages"
            print(f"{name[:28]:28} {size} {seconds:>7.1f} s, {spent:.1f} s of the processor  {reason}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--ingest", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dtrag-bench-") as temporary:
        asyncio.run((ingest if given.ingest else scan)(given.names or GROWING, given.count, Path(temporary)))
