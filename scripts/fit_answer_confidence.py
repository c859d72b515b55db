"""Fits the probability that the quotations of an answer are right, and prints what it is worth.

The weights are in src/dtrag/core/answers/answer_confidence_weights.json.

    python scripts/fit_answer_confidence.py DATA BOOK QUESTIONS.jsonl ... [--must FILE.jsonl ...] [--write]

BOOK is a file with regulations for the model `regulations`; a question is a line `{"qid", "question", "relevant",
"must"}`. DATA has the collections of the other models. An answer is right when all that has to be shown is shown, and
never when the documents do not answer. Figures by ten folds, and by sets: each judged by a model fitted on the others.
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
from dtrag.core.answers.answer_confidence import ANSWER_SIGNALS
from dtrag.core.metrics.calibration import auroc, calibration_error, logistic, sigmoid
from dtrag.core.trace import StepTrace
from dtrag.evaluation.judged_questions import letters_and_digits, missing_groups, shown_parts
from dtrag.pipeline.state import PipelineResponse
from dtrag.settings import Settings

COLLECTIONS = {"korean": ("korquad1-dev", "korquad1-noanswer-dev"), "other": ("squad2-dev", "wikiqa-dev")}
QUESTIONS = 500
"""Of each collection, at equal distances."""
RIDGE = 1.0
FOLDS = 10
RIGHT = 0.7
"""Share of right answers at which the figures name a threshold."""
THRESHOLDS = {"regulations": 0.6, "korean": 0.5, "other": 0.5}
"""Chosen by folds: regulations, .70 of the answers right for a third of the questions; the others,
more probably right than not (bench/README.md)."""
WEIGHTS = Path(__file__).parents[1] / "src/dtrag/core/answers/answer_confidence_weights.json"


@dataclass
class Case:
    """A question that got quotations: the signals, and whether what has to be shown is shown."""

    source: str
    signals: list[float]
    right: bool


async def cases(app: App, source: str, rows: Sequence[dict[str, Any]]) -> list[Case]:
    """The cases of the questions with an answer; `must` of a question without one is None."""
    steps: list[StepTrace] = []

    def keep(_response: PipelineResponse, of_answer: Sequence[StepTrace]) -> None:
        steps[:] = of_answer

    app.pipeline.on_answer = keep
    found = []
    for row in rows:
        answer = (await app.pipeline.execute(row["question"])).as_answer()
        signals = next((s.facts["answer_signals"] for s in steps if "answer_signals" in s.facts), None)
        if signals is not None and row["must"] != []:
            right = row["must"] is not None and not missing_groups(shown_parts(answer), row["must"])
            found.append(Case(source, [signals[name] for name in ANSWER_SIGNALS], right))
    return found


def judged(path: Path, must: dict[str, Any]) -> list[dict[str, Any]]:
    """The questions over the book."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [
        {"question": row["question"], "must": row.get("must", must.get(row["qid"], [])) if row["relevant"] else None}
        for row in rows
    ]


def of_collection(folder: Path) -> list[dict[str, Any]]:
    """Questions with gold answers, or without an answer in the collection."""
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text("utf-8").splitlines()]
    rows = [row for row in rows if row.get("answers") or row.get("answerable") is False]
    rows = [rows[at] for at in np.linspace(0, len(rows) - 1, min(QUESTIONS, len(rows))).astype(int)]
    return [
        {"question": row["text"], "must": None if row.get("answerable") is False else [_shown(row["answers"])]}
        for row in rows
    ]


def _shown(answers: Sequence[str]) -> list[str]:
    return [answer for answer in answers if letters_and_digits(answer)] or ["\0"]


def probabilities(train: Sequence[Case], test: Sequence[Case]) -> np.ndarray:
    beta = fitted(train)
    return sigmoid(np.array([[1.0, *case.signals] for case in test]) @ beta)


def fitted(made: Sequence[Case]) -> np.ndarray:
    labels = np.array([float(case.right) for case in made])
    return logistic(np.array([case.signals for case in made]), labels, np.ones(len(made)), ridge=RIDGE)


def held_out(made: Sequence[Case], groups: np.ndarray) -> np.ndarray:
    """Each case's probability by a model that was fitted without its group."""
    values = np.zeros(len(made))
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        rest = [made[row] for row in np.flatnonzero(groups != group)]
        values[rows] = probabilities(rest, [made[row] for row in rows])
    return values


def report(name: str, values: np.ndarray, made: Sequence[Case]) -> None:
    """Print the figures, with the lowest probability above which `RIGHT` of the answers are right."""
    right = np.array([float(case.right) for case in made])
    order = np.argsort(-values, kind="stable")
    precision = np.cumsum(right[order]) / np.arange(1, len(order) + 1)
    enough = np.flatnonzero(precision >= RIGHT)
    last = int(enough[-1]) if len(enough) else 0
    shares = ", ".join(
        f"{share:.0%} {precision[max(0, int(share * len(order)) - 1)]:.2f}" for share in (0.2, 0.35, 0.5, 0.7)
    )
    print(
        f"{name}: {len(made)} answers, right {right.mean():.2f}, AUROC {auroc(values, right):.3f}, ECE "
        f"{calibration_error(values, right):.3f}; right among the first {shares}; {RIGHT:.0%} right for the first "
        f"{(last + 1) / len(order):.0%}, from {values[order[last]]:.2f}"
    )


async def main() -> None:
    """Fit, print, and with --write save the weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("book", type=Path)
    parser.add_argument("questions", type=Path, nargs="+")
    parser.add_argument("--must", type=Path, nargs="*", default=[])
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    must: dict[str, Any] = {}
    for path in arguments.must:
        must |= {row["qid"]: row["must"] for row in map(json.loads, path.read_text("utf-8").splitlines())}
    made: dict[str, list[Case]] = {}
    async with open_throwaway(Settings.load(environ={})) as app:
        await app.ingest(arguments.book)
        made["regulations"] = [
            case for path in arguments.questions for case in await cases(app, path.name, judged(path, must))
        ]
    for name, folders in COLLECTIONS.items():
        made[name] = []
        for folder in folders:
            async with open_throwaway(Settings.load(environ={})) as app:
                await app.ingest(arguments.data / folder / "corpus.jsonl")
                made[name] += await cases(app, folder, of_collection(arguments.data / folder))
    models = {}
    for name, found in made.items():
        by_fold = np.random.default_rng(0).permutation(len(found)) % FOLDS
        report(f"{name}, {FOLDS} folds", held_out(found, by_fold), found)
        sources = np.array([case.source for case in found])
        by_set = held_out(found, sources)
        for source in np.unique(sources):
            rows = np.flatnonzero(sources == source)
            report(f"  {source}, fitted on the others", by_set[rows], [found[row] for row in rows])
        beta = fitted(found)
        models[name] = {
            "fitted_on": f"{len(found)} answers of {', '.join(dict.fromkeys(sources.tolist()))}",
            "threshold": THRESHOLDS[name],
            "intercept": round(float(beta[0]), 3),
            "weights": {key: round(float(w), 3) for key, w in zip(ANSWER_SIGNALS, beta[1:], strict=True)},
        }
    print(json.dumps(models, indent=1))
    if arguments.write:
        WEIGHTS.write_text(json.dumps({"models": models}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    asyncio.run(main())
