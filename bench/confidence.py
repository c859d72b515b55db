"""Fits the weights of `dtrag.core.confidence` and prints what they are worth.

    python bench/confidence.py DATA_FOLDER

Positives: answerable questions whose passage is in the first five. Negatives: the same questions with the right
passage hidden, and questions about topics that the collection does not have (korquad1-noanswer-dev). Never the
adversarial questions of SQuAD 2. Fitted on one half of each set, measured on the other.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from dtrag.app import open_throwaway
from dtrag.core.confidence import signals
from dtrag.settings import Settings

SETS = {"korquad1-dev": 1500, "squad2-dev": 1400, "kobest-boolq-dev": 700, "korquad1-noanswer-dev": 600}
NAMES = ("lexical", "coverage")


async def rows_of(folder: Path, limit: int, data_dir: str) -> list[tuple[str, list[float], int, int]]:
    grades: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text("utf-8").splitlines():
        query, document, _ = line.split("\t")
        grades.setdefault(query, set()).add(document)
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text("utf-8").splitlines()]
    rows = []
    settings = Settings.load(environ={}, data_dir=data_dir, embedder="none")
    async with open_throwaway(settings) as app:
        await app.ingest([folder / "corpus.jsonl"])
        statistics = (await app.index.snapshot()).statistics
        step = max(1, len(queries) // limit)
        for number, query in enumerate(queries[::step]):
            gold = grades.get(str(query["id"]), set())
            if not gold and folder.name != "korquad1-noanswer-dev":
                continue
            found, _ = await app.search(query["text"], 20, mode="lexical")
            kept = [r for r in found if str(r.metadata["id"]) not in gold]
            if gold and len(kept) < len(found) and any(str(r.metadata["id"]) in gold for r in found[:5]):
                rows.append(
                    ("answerable", [signals(query["text"], found[:10], statistics)[n] for n in NAMES], 1, number)
                )
            kind = "hidden" if gold else "absent"
            rows.append((kind, [signals(query["text"], kept[:10], statistics)[n] for n in NAMES], 0, number))
    return rows


def fit(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    design = np.c_[np.ones(len(x)), x]
    beta = np.zeros(design.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-design @ beta))
        gradient = design.T @ (weights * (y - p)) - 1e-3 * beta
        hessian = (design * (weights * p * (1 - p))[:, None]).T @ design + 1e-3 * np.eye(len(beta))
        beta += np.linalg.solve(hessian, gradient)
    return beta


def auroc(scores: np.ndarray, y: np.ndarray) -> float:
    ranks = np.empty(len(scores))
    order = np.argsort(scores, kind="stable")
    ranks[order] = np.arange(1, len(scores) + 1)
    for value in np.unique(scores):
        same = scores == value
        ranks[same] = ranks[same].mean()
    positives = y.sum()
    return float((ranks[y == 1].sum() - positives * (positives + 1) / 2) / (positives * (len(y) - positives)))


async def main(data: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="dtrag-bench-") as folder:
        collected = {name: await rows_of(data / name, limit, folder) for name, limit in SETS.items()}
    train = [row for rows in collected.values() for row in rows if row[3] % 2 == 0]
    x = np.array([row[1] for row in train])
    y = np.array([row[2] for row in train])
    balance = np.where(y == 1, 0.5 / max(1, y.sum()), 0.5 / max(1, (1 - y).sum())) * len(y)
    beta = fit(x, y, balance)
    print("weights", dict(zip(("intercept", *NAMES), np.round(beta, 2).tolist(), strict=True)))
    for name, rows in collected.items():
        test = [row for row in rows if row[3] % 2]
        scores = 1 / (1 + np.exp(-(np.c_[np.ones(len(test)), np.array([r[1] for r in test])] @ beta)))
        labels = np.array([r[2] for r in test])
        alone = np.array([r[1][0] for r in test])
        kinds = np.array([r[0] for r in test])
        line = f"{name}: AUROC {auroc(scores, labels):.3f} (lexical alone {auroc(alone, labels):.3f})"
        for threshold in (0.03, 0.05, 0.08, 0.1, 0.2, 0.3, 0.5):
            kept = (scores[labels == 1] >= threshold).mean()
            refused = {
                k: f"{(scores[kinds == k] < threshold).mean():.2f}" for k in ("hidden", "absent") if (kinds == k).any()
            }
            line += f"\n  below {threshold}: answerable kept {kept:.3f}, refused {refused}"
        print(line)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
