"""Measures retrieval on judged questions: where the relevant documents or articles are in the results."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from dtrag.core.documents import SearchMetrics, SearchResult
from dtrag.core.evaluation_run import RunRow
from dtrag.core.metrics.intervals import Estimate, Ratio, estimates
from dtrag.core.metrics.ranking import complete_at, mrr_at, ndcg_at, percentile, precision_at, recall_at
from dtrag.errors import InvalidInput
from dtrag.evaluation.judged_questions import (
    JudgedQuestion,
    JudgedSet,
    judged_name,
    read_set,
    spread,
    unfinished_line,
    within_limit,
)

DEPTH = 50
PASSAGES = 100
"""Requested passages: nearly always enough for 50 distinct documents, even where documents have several passages."""

Search = Callable[[str, int], Awaitable[tuple[list[SearchResult], SearchMetrics]]]


class Latency(TypedDict):
    """Percentiles in milliseconds."""

    p50: float
    p95: float


RetrievalMeasures = TypedDict(
    "RetrievalMeasures",
    {
        "dataset": str,
        "mode": str,
        "queries": int,
        "unfinished": int,
        "unanswerable": int,
        "ndcg@10": float,
        "recall@10": float,
        "recall@50": float,
        "precision@5": float,
        "mrr@10": float,
        "complete@10": float,
        "intervals": dict[str, tuple[float, float]],
        "latency_ms": Latency,
    },
)
"""The result of `evaluate`, as `dtrag eval retrieval --json` prints it."""


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """The questions of a set that have a relevant document or article, and the number of unanswerable ones."""

    name: str
    corpus: Path
    questions: tuple[JudgedQuestion, ...]
    relevant_ids: frozenset[str]
    unanswerable: int = 0

    @classmethod
    def of(cls, judged: JudgedSet, limit: int | None = None) -> RetrievalSet:
        """At most `limit` questions, at equal distances. Raises `InvalidInput` when none has a relevant document."""
        questions = tuple(question for question in judged.questions if question.judgements)
        if not questions:
            raise InvalidInput(
                f'{judged.name}: no query has a relevant document. Add qrels.tsv, or "relevant": ["...", ...] '
                "to the questions."
            )
        unanswerable = sum(not question.answerable and not question.judgements for question in judged.questions)
        return cls(judged.name, judged.corpus, spread(questions, limit), judged.relevant_ids, unanswerable)


def read_retrieval_set(source: Path, corpus: Path | None = None, limit: int | None = None) -> RetrievalSet:
    """The questions with judgements of a set. Raises `InvalidInput` that names the invalid file and line."""
    return RetrievalSet.of(read_set(source, corpus), limit)


async def evaluate(
    search: Search,
    dataset: RetrievalSet,
    mode: str,
    on_progress: Callable[[int, int], None] | None = None,
    *,
    on_row: Callable[[RunRow], None] | None = None,
) -> tuple[RetrievalMeasures, list[str]]:
    """Run every query and average the measures, with 95 % intervals; and notes for the reader.

    `on_row` gets what each question adds to them.

    Documents and articles are ranked by their best passage. The corpus must be in the index. Latency is measured around
    the whole search, in milliseconds.
    """
    rows: list[dict[str, Ratio]] = []
    latencies: list[float] = []
    retrieved_id, relevant_retrieved = "", False
    for number, question in enumerate(dataset.questions, start=1):
        started = time.perf_counter()
        searched = await within_limit(search(question.text, PASSAGES))
        results = searched[0] if searched is not None else []
        latencies.append((time.perf_counter() - started) * 1000)
        ranking = list(dict.fromkeys(judged_name(result, dataset.relevant_ids) for result in results))
        retrieved_id = retrieved_id or next(iter(ranking), "")
        relevant_retrieved = relevant_retrieved or not dataset.relevant_ids.isdisjoint(ranking)
        rows.append(_measures(ranking[:DEPTH], question) if searched is not None else _UNFINISHED)
        if on_row is not None:
            on_row(RunRow(question.id, question.text, rows[-1], {"first results": ranking[:5]}))
        if on_progress is not None:
            on_progress(number, len(dataset.questions))
    notes = []
    if not relevant_retrieved:
        notes.append(
            "None of the relevant ids was retrieved for any question. Are they those of the corpus? "
            f"A relevant id: {min(dataset.relevant_ids)!r}; one of the corpus: {retrieved_id!r}."
        )
    measured = estimates(rows)
    return _result(dataset, mode, measured, latencies), notes


def _measures(ranking: list[str], question: JudgedQuestion) -> dict[str, Ratio]:
    judgements = question.judgements
    return {
        "ndcg@10": (ndcg_at(10, ranking, judgements), 1),
        "recall@10": (recall_at(10, ranking, judgements), 1),
        "recall@50": (recall_at(50, ranking, judgements), 1),
        "precision@5": (precision_at(5, ranking, judgements), 1),
        "mrr@10": (mrr_at(10, ranking, judgements), 1),
        "complete@10": (complete_at(10, ranking, judgements), 1),
        "unfinished": (0.0, 1),
    }


_UNFINISHED: dict[str, Ratio] = dict.fromkeys(
    ("ndcg@10", "recall@10", "recall@50", "precision@5", "mrr@10", "complete@10"), (0.0, 0.0)
) | {"unfinished": (1.0, 1.0)}
"""A query that was not searched in time: it counts for no measure of the ranking."""


def _result(
    dataset: RetrievalSet, mode: str, measured: dict[str, Estimate], latencies: list[float]
) -> RetrievalMeasures:
    def value(name: str) -> float:
        return round(measured[name].value or 0.0, 4)

    return {
        "dataset": dataset.name,
        "mode": mode,
        "queries": len(dataset.questions),
        "unfinished": round((measured["unfinished"].value or 0.0) * len(dataset.questions)),
        "unanswerable": dataset.unanswerable,
        "ndcg@10": value("ndcg@10"),
        "recall@10": value("recall@10"),
        "recall@50": value("recall@50"),
        "precision@5": value("precision@5"),
        "mrr@10": value("mrr@10"),
        "complete@10": value("complete@10"),
        "intervals": {
            name: (round(estimate.interval[0], 4), round(estimate.interval[1], 4))
            for name, estimate in measured.items()
            if estimate.interval is not None and name != "unfinished"
        },
        "latency_ms": {"p50": round(percentile(latencies, 0.5), 2), "p95": round(percentile(latencies, 0.95), 2)},
    }


def rows_of(measured: RetrievalMeasures) -> list[tuple[str, str]]:
    """Names and values for the text output."""
    latency, intervals = measured["latency_ms"], measured["intervals"]
    values = {
        "ndcg@10": measured["ndcg@10"],
        "recall@10": measured["recall@10"],
        "recall@50": measured["recall@50"],
        "precision@5": measured["precision@5"],
        "mrr@10": measured["mrr@10"],
        "complete@10": measured["complete@10"],
    }
    left_out = f", and {measured['unanswerable']:,} unanswerable (not searched)" if measured["unanswerable"] else ""
    return [
        ("dataset", measured["dataset"]),
        ("mode", measured["mode"]),
        ("queries", f"{measured['queries']:,}{left_out}"),
        *unfinished_line(measured["unfinished"]),
        *(
            (name, f"{value:.4f}  [{intervals[name][0]:.3f}, {intervals[name][1]:.3f}]")
            for name, value in values.items()
        ),
        ("latency", f"p50 {latency['p50']:.1f} ms, p95 {latency['p95']:.1f} ms"),
    ]
