"""Speed of search beside what people would pick instead: same machine, same run, same passages and vectors.

    make bench-search                                     # 10,000 and 100,000 passages
    .venv-bench/bin/python bench/search/run.py --sizes 1000000 --only dtrag tantivy --no-vectors

Prints Markdown tables. Each figure is the median of 200 queries after as many to warm up; `q/s` with 8 clients at once.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from collection import SCOPES, SHARES, Collection, Query
from ours import Dtrag
from peers import Bm25s, Fts5, LanceDB, PlainPostgres, Tantivy, TantivyUsearch, Usearch
from system import WANTED, System

FEWER = ((0.05, 20), (1.0, 3))
"""Beyond so many seconds a query, so many queries are enough."""


def systems(folder: Path, only: list[str], with_vectors: bool) -> list[System]:
    """Those that were asked for, not built yet."""
    words, meaning = Tantivy(folder / "tantivy"), Usearch(folder / "usearch")
    found: list[System] = [Dtrag(folder / "dtrag", with_vectors), words]
    if with_vectors:
        found += [meaning, TantivyUsearch(folder, words, meaning)]
    found += [LanceDB(folder / "lance"), Bm25s(folder), Fts5(folder / "fts5"), PlainPostgres(folder / "plain")]
    return [system for system in found if not only or system.name in only]


def measured(system: System, work: str, queries: list[Query]) -> tuple[float, float, float]:
    """Median and 95th percentile in ms with one client, and queries a second with eight."""
    started = time.perf_counter()
    system.ask(work, queries[0])
    system.ask(work, queries[1])
    each, asked = (time.perf_counter() - started) / 2, queries
    for slow, enough in FEWER:
        asked = queries[:enough] if each > slow else asked
    system.timed(work, asked, 1)
    taken, _ = system.timed(work, asked, 1)
    several = 0.0
    if work == "hybrid" and len(asked) == len(queries) and system.name in {"dtrag", "tantivy + usearch", "LanceDB"}:
        _, seconds = system.timed(work, asked * 3, 8)
        several = 3 * len(asked) / seconds
    return float(np.percentile(taken, 50) * 1e3), float(np.percentile(taken, 95) * 1e3), several


def recall(found: list[list[int]], truth: list[list[int]], k: int = 10) -> float:
    """Share of the true nearest k among the first k."""
    pairs = zip(found, truth, strict=True)
    return float(np.mean([len(set(one[:k]) & set(true[:k])) / max(1, min(k, len(true))) for one, true in pairs]))


def main() -> None:
    """Build, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "dtrag-bench-search")
    parser.add_argument("--only", nargs="*", default=[], help="names of systems")
    parser.add_argument("--no-vectors", action="store_true")
    parser.add_argument("--json", type=Path, help="a file to which a line for each size is added, for plot.py")
    given = parser.parse_args()
    for size in map(int, given.sizes.split(",")):
        folder = Path(tempfile.mkdtemp(prefix="dtrag-bench-"))
        collection = Collection(size, given.data)
        questions = {"8 words": collection.queries(8), "2 words": collection.queries(2)}
        truth = [] if given.no_vectors else collection.nearest(questions["8 words"], 10)
        print(f"\n### {size:,} passages\n")
        print("| system | work | p50 ms | p95 ms | q/s, 8 clients | recall@10 |\n|---|---|---|---|---|---|", flush=True)
        builds, medians = [], {}
        chosen = systems(folder, given.only, not given.no_vectors)
        for system in chosen:
            started = time.perf_counter()
            system.build(collection)
            builds.append((system.name, time.perf_counter() - started, system.size() / size))
            for work in system.works:
                if given.no_vectors and work in {"vectors", "hybrid"}:
                    continue
                for label, queries in questions.items():
                    if label == "2 words" and work in {"vectors", "hybrid"}:
                        continue
                    p50, p95, several = measured(system, work, queries)
                    medians[system.name, work, label] = p50
                    near = ""
                    if work == "vectors":
                        near = f"{recall([system.ask(work, query) for query in queries], truth):.3f}"
                    rate = f"{several:.0f}" if several else ""
                    print(f"| {system.name} | {work}, {label} | {p50:.2f} | {p95:.2f} | {rate} | {near} |", flush=True)
            if isinstance(system, Dtrag) and not given.no_vectors:
                scopes(system, collection, questions["8 words"][:100])
        print("\n| system | build s | bytes a passage |\n|---|---|---|")
        for name, seconds, each in builds:
            print(f"| {name} | {seconds:.0f} | {each:.0f} |")
        ratios(medians)
        for system in chosen:
            system.close()
        if given.json is not None:
            line = {
                "size": size,
                "p50_ms": {f"{name} | {work}, {label}": p50 for (name, work, label), p50 in medians.items()},
                "build_s": {name: seconds for name, seconds, _ in builds},
                "bytes": {name: each for name, _, each in builds},
            }
            with given.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        shutil.rmtree(folder, ignore_errors=True)


def ratios(medians: dict[tuple[str, str, str], float]) -> None:
    """dtrag's medians beside those of the others for the same work."""
    print("\n| work | peer | dtrag's time / the peer's |\n|---|---|---|")
    for (name, work, label), p50 in medians.items():
        own = medians.get(("dtrag", work, label))
        if own is not None and name != "dtrag":
            print(f"| {work}, {label} | {name} | {own / p50:.2f} |", flush=True)


def scopes(system: Dtrag, collection: Collection, queries: list[Query]) -> None:
    """Vectors within scopes of several sizes: recall and rows against looking at all of them."""
    for label, nodes in SCOPES.items():
        truth = collection.nearest(queries, WANTED, nodes)
        taken, found = [], []
        for query in queries:
            started = time.perf_counter()
            found.append(system.scoped(query.vector, nodes))
            taken.append(time.perf_counter() - started)
        fewest = min(len(one) - len(true) for one, true in zip(found, truth, strict=True))
        share = sum(SHARES[node] for node in nodes)
        work = f"vectors, scope of {label} ({share:.1%}), rows missing {-fewest}"
        p50, p95 = np.percentile(taken, [50, 95]) * 1e3
        print(f"| dtrag | {work} | {p50:.2f} | {p95:.2f} | | {recall(found, truth):.3f} |", flush=True)


if __name__ == "__main__":
    main()
