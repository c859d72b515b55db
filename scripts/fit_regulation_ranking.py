"""Fits the weights of the second ranking of articles and prints their figures.

The weights are in src/dtrag/regulations/korean/ranking_weights.json.

    python scripts/fit_regulation_ranking.py BOOK QUESTIONS.jsonl [--write] [--judge QUESTIONS.jsonl ...]

BOOK is a file with regulations; a question is a line `{"question", "relevant": ["code:제N조", …]}`. Pairwise logistic
regression (a linear ranker, as in Joachims 2002) over the articles that the product's own search ranks a second time;
the penalty is on the distance to the weights that are in the file, so that earlier questions count, too.
Prints Recall@10 and nDCG@10 of articles with 95 % bootstrap intervals: by 10 folds for the questions of the fit, and of
the current product for the files of `--judge`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dtrag.app import App, open_throwaway
from dtrag.core.access.scope import Scope
from dtrag.core.documents import SearchResult
from dtrag.evaluation.judged_questions import judged_name
from dtrag.ports import NO_QUESTIONS, PackRanking, QueryReading
from dtrag.regulations.korean.question_concepts import QuestionReading
from dtrag.regulations.korean.ranking import FEATURES, IMAGINED, SIMILARITY, feature_rows, weights
from dtrag.regulations.pack import RegulationRanking, by_article
from dtrag.retrieval.config import PACK_ARTICLES
from dtrag.retrieval.engine import HybridSearchEngine
from dtrag.settings import Settings

NAMES = (*FEATURES, SIMILARITY, IMAGINED)
C = 0.03
"""Inverse strength of the penalty, on features divided by their standard deviation."""
FOLDS = 10
DEPTH = 10
WEIGHTS = Path(__file__).parents[1] / "src/dtrag/regulations/korean/ranking_weights.json"


@dataclass
class Question:
    """A question, its relevant articles, the product's ranking, and the features of the articles that are reranked."""

    text: str
    relevant: frozenset[str]
    ranked: list[str]
    keys: list[str]
    features: NDArray[np.float64]


class _Recorder(RegulationRanking):
    """The pack; records the features of the last search."""

    keys: list[str]
    features: NDArray[np.float64]

    async def ranked(
        self,
        reading: QueryReading,
        passages: Sequence[SearchResult],
        caller: Scope,
        imagined: Mapping[str, float] = NO_QUESTIONS,
    ) -> PackRanking:
        assert isinstance(reading, QuestionReading)
        pieces = by_article(passages)
        scored = await self.scored(reading, pieces, caller, imagined)
        best, _, self.features = feature_rows(scored.scorer, scored.articles, PACK_ARTICLES)
        self.keys = [article_id(pieces[article.key][0]) for article in best]
        return await super().ranked(reading, passages, caller, imagined)


def article_id(passage: SearchResult) -> str:
    """`code:제N조`, with `#2` for the second article of one number; for other passages the name of the document."""
    return judged_name(passage, ())


async def read(app: App, path: Path) -> list[Question]:
    """The answerable questions of a file, with their search results."""
    recorder = _Recorder(app.index, mode="on", analyzer=app.analyzer)
    engine = HybridSearchEngine(
        None, app.index, enable_reranking=False, normalization="absolute", analyzer=app.analyzer, pack=recorder
    )
    questions = []
    for line in (await asyncio.to_thread(path.read_text, "utf-8")).splitlines():
        row = json.loads(line)
        if row.get("relevant"):
            results, _ = await engine.search(
                row["question"], 50, bm25_candidates=100, vector_candidates=100, scope=Scope.everything()
            )
            ranked = list(dict.fromkeys(map(article_id, results)))
            questions.append(
                Question(row["question"], frozenset(row["relevant"]), ranked, recorder.keys, recorder.features)
            )
    return questions


def fitted(questions: Sequence[Question]) -> NDArray[np.float64]:
    """The weights. All questions count the same, and so do all pairs of a relevant and another article of one."""
    pairs, shares = [], []
    for question in questions:
        relevant = [row for row, key in enumerate(question.keys) if key in question.relevant]
        others = [row for row, key in enumerate(question.keys) if key not in question.relevant]
        if not relevant or not others:
            continue
        pairs += [question.features[row] - question.features[other] for row in relevant for other in others]
        shares += [1 / (len(relevant) * len(others))] * (len(relevant) * len(others))
    differences, share = np.array(pairs), np.array(shares) / len(questions)
    deviation = differences.std(axis=0) + 1e-9
    scaled, penalty = differences / deviation, 0.1 / C / len(questions)
    earlier = weights() * deviation
    fit = earlier
    for _ in range(30):  # Newton's method
        right = 1 / (1 + np.exp(-scaled @ fit))
        gradient = penalty * (fit - earlier) - scaled.T @ ((1 - right) * share)
        curvature = (scaled * (right * (1 - right) * share)[:, None]).T @ scaled + penalty * np.eye(len(NAMES))
        step = np.linalg.solve(curvature, gradient)
        fit = fit - step
        if np.abs(step).max() < 1e-8:
            break
    return fit / deviation


def by_folds(questions: Sequence[Question]) -> list[list[str]]:
    """For each question the order by weights that were fitted without its fold."""
    order = np.random.default_rng(0).permutation(len(questions))
    ranked: dict[int, list[str]] = {}
    for fold in range(FOLDS):
        held_out = set(order[fold::FOLDS].tolist())
        fit = fitted([question for row, question in enumerate(questions) if row not in held_out])
        for row in held_out:
            scores = questions[row].features @ fit
            ranked[row] = [questions[row].keys[at] for at in np.argsort(-scores, kind="stable")]
    return [ranked[row] for row in range(len(questions))]


def report(name: str, questions: Sequence[Question], orders: Sequence[Sequence[str]]) -> None:
    """Print Recall@10, nDCG@10 and the share of questions with a relevant article among the first five."""
    recall = [
        len(question.relevant.intersection(order[:DEPTH])) / len(question.relevant)
        for question, order in zip(questions, orders, strict=True)
    ]
    ndcg = [_ndcg(order, question.relevant) for question, order in zip(questions, orders, strict=True)]
    five = [
        float(not question.relevant.isdisjoint(order[:5])) for question, order in zip(questions, orders, strict=True)
    ]
    rng = np.random.default_rng(0)
    print(f"{name}: {len(questions)} questions")
    for label, values in (("Recall@10", recall), ("nDCG@10", ndcg), ("some right in five", five)):
        means = [float(np.mean(rng.choice(values, len(values)))) for _ in range(2000)]
        low, high = np.percentile(means, [2.5, 97.5])
        print(f"  {label:20} {np.mean(values):.3f} [{low:.2f}, {high:.2f}]")


def _ndcg(order: Sequence[str], relevant: frozenset[str]) -> float:
    gained = sum(1 / math.log2(rank + 2) for rank, key in enumerate(order[:DEPTH]) if key in relevant)
    return gained / sum(1 / math.log2(rank + 2) for rank in range(min(DEPTH, len(relevant))))


async def main() -> None:
    """Fit and judge; with --write, save the weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("book", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--judge", type=Path, nargs="*", default=[])
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    async with open_throwaway(Settings.load()) as app:
        await app.ingest(arguments.book)
        questions = await read(app, arguments.questions)
        report("the product as it is, fitted on these", questions, [question.ranked for question in questions])
        report(f"by {FOLDS} folds", questions, by_folds(questions))
        for path in arguments.judge:
            judged = await read(app, path)
            report(f"{path.name}, the product as it is", judged, [question.ranked for question in judged])
    fit = dict(zip(NAMES, (round(float(weight), 3) for weight in fitted(questions)), strict=True))
    print(json.dumps(fit))
    if arguments.write:
        chosen_on = f"{len(questions)} questions over one book; pairwise logistic regression, C {C}"
        WEIGHTS.write_text(json.dumps({"chosen_on": chosen_on, "weights": fit}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    asyncio.run(main())
