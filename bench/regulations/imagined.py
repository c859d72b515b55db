"""What imagined questions bring to a regulation book: `python bench/regulations/imagined.py FOLDER [QUESTIONS ...]`.

FOLDER has `regulations.hwpx` and `questions.dev.jsonl`; further files have questions about other articles. The book is
ingested into the index of DTRAG_DATA_DIR unless that has it. The imagined questions are those of `imagined.jsonl` here,
written blind for the articles of `questions.dev.jsonl` and their competitors. A question is "expanded" if
one of its relevant articles has imagined questions. Prints Recall@10, nDCG@10 and the share of questions whose first
article is relevant, without and with imagined questions, with the lexicon and without it, and 95 % bootstrap intervals
of the differences; then the same for other weights of imagined questions, and with the weight chosen by folds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dtrag
from dtrag.app import App
from dtrag.core.access.scope import EVERYTHING, Scope
from dtrag.evaluation.judged_questions import judged_name
from dtrag.regulations.korean import ranking
from dtrag.regulations.korean.lexicon import Lexicon
from dtrag.regulations.pack import RegulationRanking
from dtrag.retrieval.engine import HybridSearchEngine

IMAGINED = Path(__file__).with_name("imagined.jsonl")
DEPTH = 10
WEIGHTS = (1.5, 3.0, 4.5, 6.0, 9.0)
FITTED = ranking.weights()


def rows(file: Path) -> list[dict]:  # type: ignore[type-arg]
    return [row for line in file.read_text("utf-8").splitlines() if (row := json.loads(line)).get("relevant")]


def engine_of(app: App, *, lexicon: bool) -> HybridSearchEngine:
    pack = RegulationRanking(app.index, None if lexicon else Lexicon.of(()), mode="on", analyzer=app.analyzer)
    return HybridSearchEngine(
        app.embedder,
        app.index,
        enable_caching=False,
        enable_reranking=False,
        normalization="absolute",
        analyzer=app.analyzer,
        pack=pack,
    )


async def measured(engine: HybridSearchEngine, questions: Sequence[dict]) -> NDArray[np.float64]:  # type: ignore[type-arg]
    """Recall, nDCG and first right of each question."""
    figures = []
    for row in questions:
        results, _ = await engine.search(
            row["question"], 50, bm25_candidates=100, vector_candidates=100, scope=Scope.everything()
        )
        ranked = list(dict.fromkeys(judged_name(result, ()) for result in results))[:DEPTH]
        relevant = set(row["relevant"])
        figures.append(
            (
                len(relevant & set(ranked)) / len(relevant),
                ndcg(ranked, relevant),
                float(bool(ranked) and ranked[0] in relevant),
            )
        )
    return np.array(figures)


def ndcg(ranked: Sequence[str], relevant: set[str]) -> float:
    gains = sum(1 / np.log2(place + 2) for place, name in enumerate(ranked) if name in relevant)
    return float(gains / sum(1 / np.log2(place + 2) for place in range(min(DEPTH, len(relevant)))))


def shown(name: str, before: NDArray[np.float64], after: NDArray[np.float64]) -> None:
    random = np.random.default_rng(1)
    difference = after - before
    means = [difference[random.integers(0, len(difference), len(difference))].mean(0) for _ in range(2000)]
    low, high = np.percentile(means, [2.5, 97.5], axis=0)
    columns = zip(before.mean(0), after.mean(0), difference.mean(0), low, high, strict=True)
    parts = [
        f"{old:.3f} → {new:.3f} ({gain:+.3f} [{least:+.3f}, {most:+.3f}])" for old, new, gain, least, most in columns
    ]
    print(f"{name:<40} n={len(before):<4} R@10 {parts[0]}  nDCG@10 {parts[1]}  first {parts[2]}", flush=True)


async def measure(folder: Path, files: Sequence[Path]) -> None:
    expanded = {json.loads(line)["id"] for line in IMAGINED.read_text("utf-8").splitlines()}
    questions = [(file, row) for file in (folder / "questions.dev.jsonl", *files) for row in rows(file)]
    asked = [row for _, row in questions]
    origins = np.array([str(file) for file, _ in questions])
    groups = np.array([bool(expanded & set(row["relevant"])) for row in asked])
    async with dtrag.open() as app:
        await app.ingest(folder / "regulations.hwpx", "Regulations")
        engines = {"lexicon": engine_of(app, lexicon=True), "no lexicon": engine_of(app, lexicon=False)}
        await app.imagination.drop()
        before = {name: await measured(engine, asked) for name, engine in engines.items()}
        report = await app.imagination.import_lines(IMAGINED.read_text("utf-8").splitlines(), EVERYTHING)
        print(f"{report.questions} imagined questions of {report.passages} passages, {report.unknown} unknown")
        await app.vectors.fill()
        for name, engine in engines.items():
            after = await measured(engine, asked)
            for origin in dict.fromkeys(origins):
                for text, group in (("expanded", True), ("not expanded", False)):
                    chosen = (groups == group) & (origins == origin)
                    if chosen.any():
                        shown(f"{Path(origin).name}, {name}, {text}", before[name][chosen], after[chosen])
        tried = {weight: await measured(weighted(engines["lexicon"], weight), asked) for weight in WEIGHTS}
        chosen_by_folds(tried, before["lexicon"], groups)


def weighted(engine: HybridSearchEngine, weight: float) -> HybridSearchEngine:
    """The engine, from now on with this weight of imagined questions."""
    fitted = np.r_[FITTED[:-1], weight]
    ranking.weights = lambda: fitted  # type: ignore[assignment]
    return engine


def chosen_by_folds(
    tried: dict[float, NDArray[np.float64]], before: NDArray[np.float64], expanded: NDArray[np.bool_]
) -> None:
    """Choose the weight on nine tenths (the highest nDCG@10 of expanded articles with a loss of at most .01 for the
    others) and measure the last tenth with it."""
    folds = np.random.default_rng(1).permutation(len(before)) % 10
    after, weights = before.copy(), []
    for fold in range(10):
        known, new = folds != fold, folds == fold
        gains = {
            weight: [(figures - before)[known & group, 1].mean() for group in (expanded, ~expanded)]
            for weight, figures in tried.items()
        }
        weights.append(max(gains, key=lambda weight: (gains[weight][1] >= -0.01, gains[weight][0])))
        after[new] = tried[weights[-1]][new]
    print("weights chosen by folds:", weights)
    for weight, figures in tried.items():
        shown(f"weight {weight}, expanded", before[expanded], figures[expanded])
        shown(f"weight {weight}, not expanded", before[~expanded], figures[~expanded])
    shown("by folds, expanded", before[expanded], after[expanded])
    shown("by folds, not expanded", before[~expanded], after[~expanded])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("others", type=Path, nargs="*")
    arguments = parser.parse_args()
    asyncio.run(measure(arguments.folder, arguments.others))
