"""Fits the weights of the calibrated confidence and prints their figures.

The weights are in src/dtrag/core/answers/confidence_weights.json.

    python scripts/fit_confidence.py DATA [--write] [--cache FOLDER]

Each question that a collection answers gives two cases: its passages (label 1 if a relevant one is among the first
five, else 0), and its passages with the relevant ones hidden (label 0). Adversarial questions and questions about other
topics are not used. Figures by five folds; questions about the same article are in the same fold.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import pickle
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from dtrag.app import open_throwaway
from dtrag.core.metrics.calibration import auroc, calibration_error, coverage_at, logistic, sigmoid
from dtrag.evaluation.confidence_cases import Judged, MeasuredQuestion, cases
from dtrag.settings import Settings

SIGNALS_VERSION = 2
MODELS = {
    "korean": (("korquad1-dev", "none"), ("kobest-boolq-dev", "none")),
    "words": (("squad2-dev", "none"),),
    "vectors": (("squad2-dev", "auto"),),
}
"""Model -> the collections that it is fitted on, each with its embedder; all collections have the same weight."""
COMMON = ("phrase", "sentence", "numbers", "names", "kind")
USED = {
    "korean": ("lexical", "lead", "drop", "coverage", "sentence", "numbers", "kind"),
    "words": ("lead", "drop", *COMMON),
    "vectors": ("together", "cosine", *COMMON),
}
"""Signals of each model: those without which the AUROC is lower, and whose weight is not negative."""
THRESHOLDS = {
    "korean": {"abstain": 0.05, "review": 0.3},
    "words": {"abstain": 0.1, "review": 0.3},
    "vectors": {"abstain": 0.1, "review": 0.3},
}
"""Chosen on the held-out folds: about 98 % of the answered questions are above the first threshold, 92 % above both
(bench/README.md). The first one is lower for Korean, where documents often use other words than the question."""
MASS = 2000.0
FOLDS = 5


def judged(folder: Path) -> list[Judged]:
    grades: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text("utf-8").splitlines():
        query, document, grade = line.split("\t")
        if int(grade) > 0:
            grades.setdefault(query, set()).add(document)
    rows = []
    for line in (folder / "queries.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        gold = grades.get(str(row["id"]), set()) if row.get("answerable", True) else set()
        group = row.get("article") or (min(gold) if gold else str(row["id"]))
        rows.append(Judged(row["text"], bool(gold), frozenset(gold), group=group))
    return rows


async def collected(folder: Path, embedder: str, cache: Path | None) -> list[MeasuredQuestion]:
    """The cases of a collection, from the cache if it has them."""
    cached = cache / f"{folder.name}.{embedder}.cases" if cache else None
    if cached is not None and cached.exists():
        return list(pickle.loads(cached.read_bytes()))
    collection: list[MeasuredQuestion] = []
    with tempfile.TemporaryDirectory(prefix="dtrag-fit-") as data_dir:
        settings = Settings.load(environ={}, data_dir=data_dir, embedder=embedder, embed_threads=1)
        async with open_throwaway(settings) as app:
            await app.ingest([folder / "corpus.jsonl"])
            rows = judged(folder)
            done = 0
            async for cases_of_question in cases(rows, app.index, app.embedder, app.analyzer):
                collection += cases_of_question
                done += 1
                if done % 500 == 0:
                    print(
                        f"{folder.name}, {embedder}: {done:,} of {len(rows):,} questions", file=sys.stderr, flush=True
                    )
    if cached is not None:
        cached.parent.mkdir(parents=True, exist_ok=True)
        cached.write_bytes(pickle.dumps(collection))
    return collection


def fold_of(group: str) -> int:
    """A fold for a group, the same in every run."""
    return int.from_bytes(group.encode()[-8:], "little") % 999_983 % FOLDS


def fitted_on(parts: list[list[MeasuredQuestion]], names: tuple[str, ...], without: int | None) -> np.ndarray:
    """The weights fitted on all folds except `without`."""
    x, y, w = [], [], []
    for part in parts:
        training = [case for case in part if case.kind != "absent" and fold_of(case.group) != without]
        x += [[case.signals[name] for name in names] for case in training]
        y += [case.label for case in training]
        w += [MASS / len(training)] * len(training)
    return logistic(np.array(x), np.array(y), np.array(w))


def predicted(
    parts: list[list[MeasuredQuestion]], names: tuple[str, ...], measured: list[MeasuredQuestion]
) -> np.ndarray:
    """The confidence of each case, with weights that were fitted without its fold."""
    by_fold = [fitted_on(parts, names, number) for number in range(FOLDS)]
    rows = np.array([[1.0, *(case.signals[name] for name in names)] for case in measured])
    betas = np.array([by_fold[fold_of(case.group)] for case in measured])
    return sigmoid((rows * betas).sum(axis=1))


def figures(name: str, values: np.ndarray, labels: np.ndarray) -> str:
    return (
        f"{name}: AUROC {auroc(values, labels):.4f}, coverage at .95 {coverage_at(0.95, values, labels):.3f}, "
        f"ECE {calibration_error(values, labels):.4f}, n {len(labels):,}"
    )


async def main(data: Path, cache: Path | None, write: bool) -> None:
    models = {}
    for model, sets in MODELS.items():
        parts = [await collected(data / name, embedder, cache) for name, embedder in sets]
        names = USED[model]
        beta = fitted_on(parts, names, None)
        weights = {name: round(float(weight), 3) for name, weight in zip(names, beta[1:], strict=True)}
        models[model] = {
            "fitted_on": [name if embedder == "none" else f"{name} with MiniLM" for name, embedder in sets],
            "cases": sum(case.kind != "absent" for part in parts for case in part),
            "intercept": round(float(beta[0]), 3),
            "weights": weights,
        }
        print(model, models[model])
        for (name, _), part in zip(sets, parts, strict=True):
            measured = [case for case in part if case.kind != "absent"]
            values = predicted(parts, names, measured)
            print("  ", figures(f"{name}, hidden", values, np.array([case.label for case in measured])))
    if write:
        written = {
            "about": "Logistic regressions for the probability that passages answer a question: "
            "docs/explanation/confidence.md. The signals are described in core/answers/evidence.py.",
            "command": "python scripts/fit_confidence.py DATA --write",
            "fitted_at": datetime.now(UTC).date().isoformat(),
            "signals": SIGNALS_VERSION,
            "thresholds": THRESHOLDS,
            "models": models,
        }
        target = Path(__file__).parents[1] / "src" / "dtrag" / "core" / "answers" / "confidence_weights.json"
        target.write_text(json.dumps(written, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--cache", type=Path)
    arguments = parser.parse_args()
    asyncio.run(main(arguments.data, arguments.cache, arguments.write))
