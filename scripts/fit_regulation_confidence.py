"""Fits the confidence of answers from Korean regulations and says what it is worth.

The models `regulations` (words only) and `regulations_vectors` in src/dtrag/core/answers/confidence_weights.json.

    python scripts/fit_regulation_confidence.py BOOK QUESTIONS.jsonl ... [--judge QUESTIONS.jsonl ...] [--vectors]
        [--write]

BOOK is a file with regulations; a question is a line `{"question", "relevant": ["code:제N조", …], "kind"}`, without
relevant articles if the book does not answer it. The model is fitted to whether one of the first five articles is
relevant, by five folds for the figures; sets to `--judge` are not fitted on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dtrag.app import App, open_throwaway
from dtrag.core.access.scope import Scope
from dtrag.core.answers.evidence import PACK_SIGNALS
from dtrag.core.answers.passage_confidence import COSTS, Thresholds
from dtrag.core.metrics.calibration import auroc, calibration_error, logistic, sigmoid
from dtrag.regulations.korean.ranking import NEAREST_SIGNAL
from dtrag.settings import Settings
from fit_regulation_ranking import article_id

READ = 5
FOLDS = 5
RIDGE = 1.0
THRESHOLDS = {
    "regulations": {"abstain": 0.37, "review": 0.55},
    "regulations_vectors": {"abstain": 0.39, "review": 0.5},
}
"""Below the first are about one answerable question in ten, with vectors one in twenty."""
WEIGHTS = Path(__file__).parents[1] / "src/dtrag/core/answers/confidence_weights.json"


@dataclass
class Case:
    """A question with its signals; `right`: one of the first five articles is relevant."""

    kind: str
    answerable: bool
    right: bool
    signals: list[float]


async def cases(app: App, path: Path, names: Sequence[str]) -> list[Case]:
    """The questions of a file, searched for as the pipeline does."""
    found = []
    for line in (await asyncio.to_thread(path.read_text, "utf-8")).splitlines():
        row: dict[str, Any] = json.loads(line)
        results, metrics = await app.engine.search(
            row["question"], 10, None, 50, 50, scope=Scope.everything(), highlight=False, exact_candidates=True
        )
        relevant = set(row.get("relevant") or ())
        first = set(list(dict.fromkeys(map(article_id, results)))[:READ])
        signals = metrics.pack.signals if metrics.pack is not None else {}
        kind = "answerable" if relevant else str(row.get("kind") or "unanswerable")
        found.append(
            Case(kind, bool(relevant), not first.isdisjoint(relevant), [signals.get(name, 0.0) for name in names])
        )
    return found


def fitted(made: list[Case]) -> np.ndarray:
    labels = np.array([float(case.right) for case in made])
    return logistic(np.array([case.signals for case in made]), labels, np.ones(len(made)), ridge=RIDGE)


def confidence(beta: np.ndarray, made: list[Case]) -> np.ndarray:
    return sigmoid(np.array([[1.0, *case.signals] for case in made]) @ beta)


def by_folds(made: list[Case]) -> np.ndarray:
    """Each case's confidence by a model that was fitted without it."""
    order = np.random.default_rng(0).permutation(len(made))
    values = np.zeros(len(made))
    for fold in range(FOLDS):
        held_out = order[fold::FOLDS]
        beta = fitted([made[row] for row in np.setdiff1d(order, held_out)])
        values[held_out] = confidence(beta, [made[row] for row in held_out])
    return values


def report(name: str, values: np.ndarray, made: list[Case], thresholds: dict[str, float]) -> None:
    right = np.array([float(case.right) for case in made])
    answerable = np.array([case.answerable for case in made])
    print(
        f"{name}: {len(made)} cases, mean confidence {values.mean():.2f}, share right {right.mean():.2f}, "
        f"ECE {calibration_error(values, right):.3f}, AUROC right {auroc(values, right):.3f}"
    )
    declined = values < thresholds["abstain"]
    if answerable.any():
        print(f"  answerable: {answerable.sum()}, declined {declined[answerable].mean():.2f}")
        for share in (0.05, 0.1, 0.15, 0.2):
            limit = float(np.quantile(values[answerable], share))
            others = ", ".join(
                f"{kind} answered {(values[[case.kind == kind for case in made]] >= limit).mean():.2f}"
                for kind in sorted({case.kind for case in made if not case.answerable})
            )
            print(f"  below {limit:.2f}: {share:.0%} of the answerable; {others}")
    for policy, ratio in COSTS.items():
        answered = values >= Thresholds(**thresholds).at_cost(ratio).abstain
        print(
            f"  {policy}: coverage {answered.mean():.2f}, risk {1 - right[answered].mean():.2f}, answerable declined "
            f"{(~answered)[answerable].mean():.2f}, unanswerable answered {answered[~answerable].mean():.2f}"
        )
    for kind in sorted({case.kind for case in made if not case.answerable}):
        of_kind = np.array([case.kind == kind for case in made])
        both = answerable | of_kind
        area = f", AUROC against answerable {auroc(values[both], answerable[both].astype(float)):.3f}"
        answered = f"answered {(~declined)[of_kind].mean():.2f}"
        print(f"  {kind}: {of_kind.sum()}, {answered}{area if answerable.any() else ''}")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("book", type=Path)
    parser.add_argument("questions", type=Path, nargs="+")
    parser.add_argument("--judge", type=Path, nargs="*", default=[])
    parser.add_argument("--vectors", action="store_true")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    name = "regulations_vectors" if arguments.vectors else "regulations"
    names = [signal for signal in PACK_SIGNALS if arguments.vectors or signal != NEAREST_SIGNAL]
    async with open_throwaway(Settings.load(environ={}, embedder="auto" if arguments.vectors else "none")) as app:
        await app.ingest(arguments.book)
        made = [case for path in arguments.questions for case in await cases(app, path, names)]
        judged = [case for path in arguments.judge for case in await cases(app, path, names)]
    report(f"{FOLDS} folds", by_folds(made), made, THRESHOLDS[name])
    beta = fitted(made)
    if judged:
        report("judged", confidence(beta, judged), judged, THRESHOLDS[name])
    model = {
        "fitted_on": [f"{len(made)} questions over one regulation book"],
        "cases": len(made),
        "intercept": round(float(beta[0]), 3),
        "weights": {name: round(float(weight), 3) for name, weight in zip(names, beta[1:], strict=True)},
    }
    print(json.dumps(model, indent=2))
    if arguments.write:
        content = json.loads(WEIGHTS.read_text("utf-8"))
        content["models"][name] = model
        content["thresholds"][name] = THRESHOLDS[name]
        WEIGHTS.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    asyncio.run(main())
