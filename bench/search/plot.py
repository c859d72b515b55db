"""Draws how cost grows with the collection, from what `run.py --json FILE` has measured.

.venv-bench/bin/python bench/search/plot.py FILE bench/search/growth.svg
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "dtrag"  # the same figures make the same file
import matplotlib.pyplot as plt  # noqa: E402 - after the choice of what draws

SHOWN = {
    ("dtrag", "words, candidates"): "dtrag, 8 words",
    ("dtrag", "words, candidates, 2 words"): "dtrag, 2 words",
    ("tantivy", "words, candidates"): "tantivy, 8 words",
    ("tantivy", "words, candidates, 2 words"): "tantivy, 2 words",
    ("dtrag", "vectors"): "dtrag, vectors",
    ("dtrag", "hybrid, whole search"): "dtrag, hybrid",
}


def main(measured: Path, drawn: Path) -> None:
    """Three panels over the number of passages: ms a query, bytes a passage, seconds to build."""
    sizes = [json.loads(line) for line in measured.read_text("utf-8").splitlines()]
    figure, (times, space, build) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for (system, work), label in SHOWN.items():
        points = [
            (row["size"], row["p50_ms"][f"{system} | {work}"]) for row in sizes if f"{system} | {work}" in row["p50_ms"]
        ]
        times.plot(*zip(*points, strict=True), marker="o", label=label)
    for name in ("dtrag", "tantivy"):
        rows = [(row["size"], row["bytes"][name], row["build_s"][name]) for row in sizes if name in row["bytes"]]
        numbers, sizes_of, seconds = zip(*rows, strict=True)
        space.plot(numbers, sizes_of, marker="o", label=name)
        build.plot(numbers, seconds, marker="o", label=name)
    for axes, title in ((times, "ms a query, median"), (space, "bytes a passage"), (build, "seconds to build")):
        axes.set(title=title, xscale="log", xlabel="passages")
        axes.grid(alpha=0.3)
    times.set_yscale("log")
    build.set_yscale("log")
    times.legend(fontsize="small")
    space.legend(fontsize="small")
    figure.savefig(drawn, metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
