"""What is measured: something that is built from a collection and answers queries, one at a time or several at once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import numpy as np
from collection import Collection, Floats, Query

WANTED = 50
"""Passages that every system is asked for: what a reranker reads, and what both legs of a hybrid search bring."""


class System:
    """One system in a folder of its own. `works` are the names of the methods of it that answer queries.

    Numbers of passages that come back are those of the collection, best first.
    """

    name: ClassVar[str]
    works: ClassVar[tuple[str, ...]]

    def __init__(self, folder: Path):
        self.folder = folder

    def build(self, collection: Collection) -> None:
        """Make the index, from nothing."""
        raise NotImplementedError

    def size(self) -> int:
        """Bytes that the index takes on disk."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def lexical(self, words: str) -> list[int]:
        """By words: passages with any of them, by BM25 or what the system has in its stead."""
        raise NotImplementedError

    def vectors(self, vector: Floats) -> list[int]:
        """By the cosine."""
        raise NotImplementedError

    def hybrid(self, words: str, vector: Floats) -> list[int]:
        """By both."""
        raise NotImplementedError

    def processes(self) -> list[int]:
        """Ids of the processes that work for it beside this one."""
        return []

    def ask(self, work: str, query: Query) -> list[int]:
        """The answer to one query."""
        asked = {"hybrid": (query.words, query.vector), "vectors": (query.vector,)}.get(work, (query.words,))
        answer: Callable[..., list[int]] = getattr(self, work.replace(" ", "_"))
        return answer(*asked)

    def timed(self, work: str, queries: Sequence[Query], clients: int) -> tuple[list[float], float]:
        """Seconds of each query, and of all of them, when so many clients ask, each its next when it has an answer."""

        def one(query: Query) -> float:
            started = time.perf_counter()
            self.ask(work, query)
            return time.perf_counter() - started

        started = time.perf_counter()
        if clients == 1:
            taken = [one(query) for query in queries]
        else:
            with ThreadPoolExecutor(clients) as threads:
                taken = list(threads.map(one, queries))
        return taken, time.perf_counter() - started

    def close(self) -> None:
        """Give back what `build` has opened."""


def processor_s(pids: Sequence[int]) -> float:
    """Seconds of processor time that these processes have used, with their children that ended (Linux)."""
    total = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        except FileNotFoundError:
            continue
        total += sum(map(int, fields[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


def children_of(pid: int) -> list[int]:
    """Ids of the running children of a process (Linux); none of one that has ended."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for thread in threads for child in (thread / "children").read_text("utf-8").split()]
    except FileNotFoundError:
        return []


def family_of(pid: int) -> list[int]:
    """A process and all that it and its children have started."""
    return [pid, *(each for child in children_of(pid) for each in family_of(child))]


def fused(lexical: dict[int, float], nearness: dict[int, float], wanted: int = WANTED) -> list[int]:
    """The best of two lists by the sum of their scores, each list stretched to 0 ... 1; a missing side is 0."""
    totals: dict[int, float] = {}
    for scores in (lexical, nearness):
        if scores:
            values = np.fromiter(scores.values(), np.float64, len(scores))
            low, reach = values.min(), float(np.ptp(values)) or 1.0
            for number, value in zip(scores, ((values - low) / reach).tolist(), strict=True):
                totals[number] = totals.get(number, 0.0) + value
    return sorted(totals, key=totals.__getitem__, reverse=True)[:wanted]
