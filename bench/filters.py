"""Category filters and manifests, timed: `python bench/filters.py`. Nothing is opened, nothing is stored.

Prints documents a second of `CategoryFilter.apply_filter` and its time for the 3,000 documents of AC-ORCH-007, times of
looking at the filters of a request, and times of making and of refusing a manifest (AC-ORCH-006).
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

from dtrag.core.access.category_filter import CategoryFilter
from dtrag.core.access.filter_attacks import attack_in
from dtrag.core.manifest import manifest_from_category
from dtrag.errors import InvalidInput

SEED = 20251121
ROUNDS = 200


def timed(work: Callable[[], object], rounds: int = ROUNDS) -> tuple[float, float]:
    """Median and 99th percentile in milliseconds."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append((time.perf_counter() - started) * 1000)
    times.sort()
    return statistics.median(times), times[int(0.99 * len(times))]


def refused(*arguments: object) -> None:
    """A manifest that is none."""
    try:
        manifest_from_category(*arguments)
    except InvalidInput:
        return
    raise AssertionError("it was accepted")


def documents(count: int, paths: int) -> list[dict[str, object]]:
    """Documents that hang at so many different paths, in lists of their own as a database gives them."""
    chosen = random.Random(SEED)
    tree = [[f"Area {n % 20}", f"Field {n % 100}", f"Topic {n}"] for n in range(paths)]
    return [{"canonical_path": list(chosen.choice(tree))} for _ in range(count)]


def main() -> None:
    """Print the figures."""
    allowed = [["AI"], ["Database"]]
    three = [
        {"canonical_path": ["AI", "ML"]},
        {"canonical_path": ["Database", "SQL"]},
        {"canonical_path": ["Network"]},
    ] * 1000
    first = timed(lambda: CategoryFilter(allowed).apply_filter(three))
    print(f"3,000 documents, new filter: {first[0]:.3f} ms median, {first[1]:.3f} ms p99")

    million = documents(1_000_000, 200)
    made = CategoryFilter([[f"Area {n}"] for n in range(10)])
    for _ in range(3):
        made.apply_filter(million)
    done = made.statistics()
    print(
        f"1,000,000 documents at 200 paths, three times: {done.documents_per_second / 1e6:.2f}M documents/s, "
        f"{done.pass_rate:.0%} pass"
    )
    scattered = documents(100_000, 50_000)
    made = CategoryFilter([[f"Area {n}"] for n in range(10)])
    made.apply_filter(scattered)
    seen = made.statistics()
    print(f"100,000 documents at 50,000 paths never seen before: {seen.documents_per_second:,.0f} documents/s")

    filters = {"allowed_category_paths": [["AI", "ML"], ["Database"]], "date_from": "2025-01-31"}
    look = timed(lambda: [attack_in(filters) for _ in range(100)])
    print(f"looking at the filters of a request: {look[0] / 100 * 1000:.1f} µs median")
    many = {"allowed_category_paths": [["x"]] * 10_000}
    look = timed(lambda: attack_in(many))
    print(f"looking at 10,000 paths: {look[0]:.3f} ms median, {look[1]:.3f} ms p99")

    paths = [[f"Area {n}", "Field", "Topic", "Part", "Leaf"] for n in range(10)]
    options = {"mcp_tools": ["searcher"], "override_settings": {"retrieval": {"bm25_topk": 20}}}
    make = timed(lambda: manifest_from_category("1.0.0", paths, options).as_dict(), 2000)
    print(f"a manifest of 10 paths of 5 names: {make[0]:.3f} ms median, {make[1]:.3f} ms p99")
    deny = timed(lambda: refused("1.0.0", [*paths[:9], ["AI", "M|L"]]), 2000)
    print(f"refusing one for its last name: {deny[0]:.3f} ms median, {deny[1]:.3f} ms p99")
    deny = timed(lambda: refused("1.0.0", [["AI"]] * 10_000), 2000)
    print(f"refusing one for 10,000 paths: {deny[0]:.4f} ms median")


if __name__ == "__main__":
    main()
