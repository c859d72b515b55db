"""Fits the weights of the sentences of an extractive answer and prints their figures.

The weights are in src/dtrag/core/answers/sentence_weights.json.

    python scripts/fit_sentence_weights.py DATA [--write] [--cache FOLDER]

DATA holds korquad1-dev and squad2-dev. A sentence of the first passages is right when it contains a gold answer.
Softmax over the sentences of a question, the probability of all its right ones being maximal (a conditional logit with
several right choices, by expectation maximisation), with a ridge penalty. Figures by two folds: even and odd questions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import pickle
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dtrag import embedding_service
from dtrag.app import open_throwaway
from dtrag.core.answers.sentence_signals import NAMES, OF_VECTORS, QuestionTerms, probabilities, sentence_signals
from dtrag.core.documents import SearchResult
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.text.analysis import normalise
from dtrag.pipeline.answer.candidates import NEARLY, candidates_of
from dtrag.pipeline.answer.extractive import ENOUGH, LEAST, MAX_SENTENCES, PASSAGES, to_compare
from dtrag.settings import Settings

Values = NDArray[np.float64]
SETS = {"korean": ("korquad1-dev", "none"), "words": ("squad2-dev", "auto"), "vectors": ("squad2-dev", "auto")}
"""Model -> the collection that it is fitted on, and its embedder, which `words` uses only to search."""
ENGLISH_ONLY = ("counted",)
SHARED_WORDS = ("coverage", "best_covered", "phrase", "ending", "focus", "last", "title", "limit", *OF_VECTORS)
"""Signals that a model does without when their weight is negative: a sentence must not lose by what it shares with the
question, even if other signals that say nearly the same outweigh it on these collections."""
RIDGE = 3e-3
ROUNDS = 8
WEIGHTS = Path(__file__).parents[1] / "src/dtrag/core/answers/sentence_weights.json"


@dataclass
class Read:
    """A question with its passages, the statistics of its terms, and vectors of its text and of sentences."""

    question: str
    answers: list[str]
    passages: list[SearchResult]
    statistics: LexicalStatistics
    vector: Values | None = None


@dataclass
class Row:
    """The signals of the candidates of one question, and which are right."""

    signals: Values
    right: NDArray[np.bool_]


async def read(folder: Path, embedder: str, cache: Path | None) -> tuple[list[Read], dict[str, Values]]:
    """The answerable questions with their passages, and a vector of each sentence; from the cache if it has them."""
    cached = cache / f"{folder.name}.{embedder}.sentences" if cache else None
    if cached is not None and cached.exists():
        loaded: tuple[list[Read], dict[str, Values]] = pickle.loads(cached.read_bytes())
        return loaded
    lines = (await asyncio.to_thread((folder / "queries.jsonl").read_text, "utf-8")).splitlines()
    rows = [row for row in map(json.loads, lines) if row.get("answers") and row.get("answerable", True)]
    questions, vectors = [], {}
    with tempfile.TemporaryDirectory(prefix="dtrag-fit-") as data_dir:
        async with open_throwaway(Settings.load(environ={}, data_dir=data_dir, embedder=embedder)) as app:
            await app.ingest([folder / "corpus.jsonl"])
            statistics = (await app.index.snapshot()).statistics
            for number, row in enumerate(rows, start=1):
                passages, _ = await app.search(row["text"], 10)
                question = Read(row["text"], row["answers"], passages[:PASSAGES], statistics)
                if app.embedder is not None:
                    question.vector = embedding_service.embed_question(row["text"], embedder=app.embedder)
                questions.append(question)
                if number % 500 == 0:
                    print(f"{folder.name}: {number:,} of {len(rows):,} questions", file=sys.stderr, flush=True)
            if app.embedder is not None:
                texts = sorted({sentence.text for one in questions for sentence in candidates_of(one.passages)})
                for first in range(0, len(texts), 256):
                    batch = texts[first : first + 256]
                    embedded = embedding_service.embed_passages(batch, embedder=app.embedder)
                    vectors.update(zip(batch, embedded, strict=True))
    if cached is not None:
        cached.parent.mkdir(parents=True, exist_ok=True)
        cached.write_bytes(pickle.dumps((questions, vectors)))
    return questions, vectors


def rows_of(questions: Sequence[Read], vectors: dict[str, Values], by_words: Values | None) -> list[Row]:
    """The signals of each question's candidates; with the weights `by_words`, of those that are compared by meaning."""
    rows = []
    for one in questions:
        asked = QuestionTerms(one.question, one.statistics)
        candidates = list(candidates_of(one.passages))
        signals = sentence_signals(asked, one.passages, candidates)
        if by_words is not None and candidates:
            candidates = [candidates[place] for place in to_compare(signals @ by_words)]
            cosines = [float(vectors[sentence.text] @ one.vector) for sentence in candidates]
            signals = sentence_signals(asked, one.passages, candidates, cosines)
        gold = [_bare(answer) for answer in one.answers]
        rows.append(Row(signals, np.array([any(a in _bare(c.text) for a in gold) for c in candidates], bool)))
    return rows


def _bare(text: str) -> str:
    return normalise(text).replace(" ", "")


def fitted(rows: Sequence[Row], used: Sequence[int]) -> Values:
    """The weights of all signals; 0 for those that are not `used`, and for shared words with a negative weight."""
    weights = _fitted(rows, used)
    negative = {place for place in used if NAMES[place] in SHARED_WORDS and weights[place] < 0.0}
    return fitted(rows, [place for place in used if place not in negative]) if negative else weights


def _fitted(rows: Sequence[Row], used: Sequence[int]) -> Values:
    rows = [row for row in rows if row.right.any()]
    groups = np.repeat(np.arange(len(rows)), [len(row.right) for row in rows])
    starts = np.flatnonzero(np.r_[True, np.diff(groups) > 0])
    signals = np.concatenate([row.signals[:, used] for row in rows])
    right = np.concatenate([row.right for row in rows]).astype(float)
    deviation = signals.std(axis=0) + 1e-9
    scaled, weights = signals / deviation, np.zeros(len(used))

    def shares(values: Values) -> Values:
        return values / np.add.reduceat(values, starts)[groups]

    def chances(of: Values) -> Values:
        scores = scaled @ of
        return shares(np.exp(scores - np.maximum.reduceat(scores, starts)[groups]))

    for _ in range(ROUNDS):  # expectation: which of the right sentences; maximisation: Newton's method
        target = shares(chances(weights) * right)
        for _ in range(30):
            p = chances(weights)
            slope = scaled.T @ (target - p) / len(rows) - 2 * RIDGE * weights
            mean = np.add.reduceat(scaled * p[:, None], starts)
            bend = ((scaled * p[:, None]).T @ scaled - mean.T @ mean) / len(rows) + 2 * RIDGE * np.eye(len(used))
            step = np.linalg.solve(bend, slope)
            weights = weights + step / max(1.0, float(np.abs(step).max()))  # a full step may overshoot
            if np.abs(step).max() < 1e-6:
                break
    whole = np.zeros(len(NAMES))
    whole[list(used)] = weights / deviation
    return whole


def figures(rows: Sequence[Row], weights: Values) -> tuple[float, float, float]:
    """Shares of questions whose best sentence is right, and whose quoted ones contain a right one; sentences quoted."""
    best = contained = sentences = 0
    for row in rows:
        chances = probabilities(row.signals @ weights)
        order = np.argsort(-chances, kind="stable")[:MAX_SENTENCES]
        sums = np.cumsum(chances[order])
        least = min(LEAST, NEARLY * chances.max()) if len(order) else 0.0
        quoted = [at for rank, at in enumerate(order) if not rank or (chances[at] >= least and sums[rank - 1] < ENOUGH)]
        best += bool(len(order) and row.right[order[0]])
        contained += bool(row.right[quoted].any())
        sentences += len(quoted)
    return best / len(rows), contained / len(rows), sentences / len(rows)


async def main(data: Path, cache: Path | None, write: bool) -> None:
    """Fit, judge by two folds; with --write, save the weights."""
    models = {}
    by_words: Values | None = None
    for model, (name, embedder) in SETS.items():
        left_out = {*OF_VECTORS, *ENGLISH_ONLY} if model == "korean" else set()
        if model == "words":
            left_out |= set(OF_VECTORS)
        used = [place for place, signal in enumerate(NAMES) if signal not in left_out]
        questions, vectors = await read(data / name, embedder, cache)
        rows = rows_of(questions, vectors, by_words if model == "vectors" else None)
        folds = [figures(rows[1 - half :: 2], fitted(rows[half::2], used)) for half in (0, 1)]
        best, contained, sentences = np.mean(folds, axis=0)
        weights = fitted(rows, used)
        if model == "words":
            by_words = weights
        print(
            f"{model} ({name}, {len(rows):,} questions, two folds): best sentence right {best:.3f}, contained "
            f"{contained:.3f} in {sentences:.2f} sentences (without the limit of characters)"
        )
        models[model] = {
            "fitted_on": name,
            "questions": len(rows),
            "weights": {NAMES[place]: round(float(weights[place]), 3) for place in used if weights[place]},
        }
    if write:
        written = {
            "about": "Weights of sentences, log-odds: core/answers/sentence_signals.py.",
            "command": "python scripts/fit_sentence_weights.py DATA --write",
            "fitted_at": datetime.now(UTC).date().isoformat(),
            "models": models,
        }
        WEIGHTS.write_text(json.dumps(written, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    asyncio.run(main(arguments.data, arguments.cache, arguments.write))
