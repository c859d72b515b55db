"""Speed of search beside what people would pick instead: same machine, passages, vectors and queries, in turn.

    make bench-search                                     # 10,000 and 100,000 passages
    .venv-bench/bin/python bench/search/run.py --sizes 1000000 --only dtrag tantivy --no-vectors

dtrag is the open app with the settings of `make setup`. Every system answers the same queries of a round before the
next round begins, and no query comes twice (but in the row that says so). Prints Markdown tables: the median of a
query in ms, wall-clock and processor time (with that of PostgreSQL), and dtrag's share of each peer's: the median of
the rounds with the lowest and the highest.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from collection import SCOPES, SHARES, Collection, Query
from ours import Dtrag
from peers import Bm25s, Fts5, LanceDB, PlainPostgres, Tantivy, TantivyUsearch, Usearch
from system import WANTED, System, processor_s

SLOW_S = 0.05
"""A system that takes longer for a query is asked only `FEW` a round."""
FEW = 5
CLIENTS = 8


@dataclass(frozen=True)
class Row:
    """One kind of work: which work of each system it is, the words of a query, and the scope that dtrag has."""

    label: str
    works: dict[str, str]
    words: int = 8
    nodes: tuple[int, ...] = ()
    clients: int = 1
    repeated: bool = False


LEXICAL = dict.fromkeys(("tantivy", "LanceDB", "bm25s", "SQLite FTS5 + numpy"), "lexical")
HYBRID = dict.fromkeys(("dtrag", "tantivy + usearch", "LanceDB", "SQLite FTS5 + numpy"), "hybrid")
ROWS = (
    Row("words, candidates", {"dtrag": "candidates", **LEXICAL}),
    Row("words, candidates, 2 words", {"dtrag": "candidates", **LEXICAL}, words=2),
    Row("words, whole search", {"dtrag": "lexical", **LEXICAL, "pgvector + ts_rank_cd": "any word"}),
    Row(
        "vectors",
        dict.fromkeys(("dtrag", "usearch", "LanceDB", "SQLite FTS5 + numpy", "pgvector + ts_rank_cd"), "vectors"),
    ),
    Row("hybrid, whole search", {**HYBRID, "pgvector + ts_rank_cd": "hybrid"}),
    Row("hybrid, whole search with marked words", {**HYBRID, "dtrag": "marked"}),
    Row("hybrid, the same queries again", HYBRID, repeated=True),
    Row(f"hybrid, {CLIENTS} clients", HYBRID, clients=CLIENTS),
    Row("words, candidates, scope of 10 %", {"dtrag": "candidates"}, nodes=SCOPES["10 %"]),
    Row("vectors, scope of 10 %", {"dtrag": "vectors", "usearch": "vectors"}, nodes=SCOPES["10 %"]),
    Row("hybrid, scope of 10 %", {"dtrag": "hybrid"}, nodes=SCOPES["10 %"]),
)


@dataclass
class Measured:
    """Seconds of a query in each round: wall-clock (of all clients together, divided by queries) and processor."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


def systems(folder: Path, only: Sequence[str], *, with_vectors: bool) -> list[System]:
    """The chosen ones, not built yet."""
    words, meaning = Tantivy(folder / "tantivy"), Usearch(folder / "usearch")
    every: list[System] = [Dtrag(folder / "dtrag", with_vectors), words]
    if with_vectors:
        every += [meaning, TantivyUsearch(folder / "both", words, meaning)]
    every += [LanceDB(folder / "lance"), Bm25s(folder), Fts5(folder / "fts5"), PlainPostgres(folder / "plain")]
    return [system for system in every if not only or system.name in only]


def measure(system: System, row: Row, queries: Sequence[Query], measured: Measured) -> None:
    """One round of one system."""
    if isinstance(system, Dtrag):
        system.confine(row.nodes)
    work, pids = row.works[system.name], system.processes()
    if measured.wall and measured.wall[-1] > SLOW_S:
        queries = queries[:FEW]
    used, own = processor_s(pids), time.process_time()
    taken, seconds = system.timed(work, queries, row.clients)
    measured.processor.append((time.process_time() - own + processor_s(pids) - used) / len(queries))
    measured.wall.append(seconds / len(queries) if row.clients > 1 else float(np.median(taken)))


def recall(answers: Sequence[Sequence[int]], truth: Sequence[Sequence[int]], k: int = 10) -> float:
    """Share of the true nearest k among the first k."""
    shares = [
        len(set(answer[:k]) & set(true[:k])) / max(1, min(k, len(true)))
        for answer, true in zip(answers, truth, strict=True)
    ]
    return float(np.mean(shares))


def main() -> None:
    """Build, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--queries", type=int, default=100, help="of a round")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "dtrag-bench-search")
    parser.add_argument("--only", nargs="*", default=[], help="names of systems")
    parser.add_argument("--rows", default="", help="only rows whose label contains this")
    parser.add_argument("--no-vectors", action="store_true")
    parser.add_argument("--json", type=Path, help="a file to which a line for each size is added, for plot.py")
    options = parser.parse_args()
    for size in map(int, options.sizes.split(",")):
        folder = Path(tempfile.mkdtemp(prefix="dtrag-bench-"))
        chosen = systems(folder, options.only, with_vectors=not options.no_vectors)
        try:
            compare(chosen, Collection(size, options.data), options)
        finally:
            for system in chosen:
                system.close()
            shutil.rmtree(folder, ignore_errors=True)


def compare(chosen: Sequence[System], collection: Collection, options: argparse.Namespace) -> None:
    """Everything about one size."""
    builds: dict[str, tuple[float, float]] = {}
    for system in chosen:
        started = time.perf_counter()
        system.build(collection)
        builds[system.name] = (time.perf_counter() - started, system.size() / collection.size)
    print(f"\n### {collection.size:,} passages\n", flush=True)
    print("| system | build s | bytes a passage |\n|---|---|---|")
    for name, (seconds, each) in builds.items():
        print(f"| {name} | {seconds:.0f} | {each:.0f} |")
    rows = [row for row in ROWS if options.rows in row.label]
    if options.no_vectors:
        rows = [row for row in rows if row.label.startswith("words")]
    total = (options.rounds + 1) * options.queries
    fresh: dict[int, Iterator[Query]] = {
        words: iter(collection.queries(words, total * sum(row.words == words for row in rows)))
        for words in {row.words for row in rows}
    }
    results: dict[str, dict[str, Measured]] = {}
    for row in rows:
        results[row.label] = one_row(row, chosen, fresh[row.words], options)
        report(row, results[row.label], heading=row is rows[0])
    for system in chosen:
        if isinstance(system, Dtrag) and not options.no_vectors:
            scopes(system, collection)
    if options.json is not None:
        p50 = {f"{name} | {label}": part.wall for label, row in results.items() for name, part in row.items()}
        line = {
            "size": collection.size,
            "p50_ms": {key: float(np.median(walls) * 1e3) for key, walls in p50.items()},
            "build_s": {name: seconds for name, (seconds, _) in builds.items()},
            "bytes": {name: each for name, (_, each) in builds.items()},
        }
        with options.json.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def one_row(
    row: Row, chosen: Sequence[System], fresh: Iterator[Query], options: argparse.Namespace
) -> dict[str, Measured]:
    """All rounds of one kind of work; the first one warms up."""
    measured = {system.name: Measured() for system in chosen if system.name in row.works}
    first: list[Query] = []
    for _ in range(options.rounds + 1):
        queries = first if row.repeated and first else list(itertools.islice(fresh, options.queries))
        first = queries
        for system in chosen:
            if system.name in row.works:
                measure(system, row, queries, measured[system.name])
    for each in measured.values():
        del each.wall[0], each.processor[0]
    return measured


def report(row: Row, measured: dict[str, Measured], *, heading: bool) -> None:
    """A line for each system."""
    if heading:
        print(
            "\n| work | system | wall ms | processor ms | q/s | dtrag / it: wall | processor |\n|---" + "|---" * 6 + "|"
        )
    own = measured.get("dtrag")
    for name, each in measured.items():
        wall, processor = np.median(each.wall) * 1e3, np.median(each.processor) * 1e3
        rate = f"{1e3 / wall:.0f}" if row.clients > 1 else ""
        shares = "| |"
        if own is not None and name != "dtrag":
            shares = f"| {ratio(own.wall, each.wall)} | {ratio(own.processor, each.processor)} |"
        print(f"| {row.label} | {name} | {wall:.2f} | {processor:.2f} | {rate} {shares}", flush=True)


def ratio(own: Sequence[float], peer: Sequence[float]) -> str:
    """Median, lowest and highest of the rounds."""
    shares = [mine / other if other else float("nan") for mine, other in zip(own, peer, strict=True)]
    return f"{np.median(shares):.2f} ({min(shares):.2f}-{max(shares):.2f})"


def scopes(system: Dtrag, collection: Collection) -> None:
    """Vectors within scopes of several sizes: recall and missing rows against looking at all of them."""
    queries = collection.queries(9, 100)
    print("\n| vectors in a scope of | ms, median | recall@10 | rows missing |\n|---|---|---|---|")
    for label, nodes in {"100 %": tuple(SHARES), **SCOPES}.items():
        truth = collection.nearest(queries, WANTED, nodes)
        system.confine(nodes)
        taken, answers = [], []
        for query in queries:
            started = time.perf_counter()
            answers.append(system.ask("vectors", query))
            taken.append(time.perf_counter() - started)
        fewest = min(len(answer) - len(true) for answer, true in zip(answers, truth, strict=True))
        print(f"| {label} | {np.median(taken) * 1e3:.2f} | {recall(answers, truth):.3f} | {-fewest} |", flush=True)


if __name__ == "__main__":
    main()
