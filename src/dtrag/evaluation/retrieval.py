"""Measures retrieval on a collection with judgements: `corpus.jsonl`, `queries.jsonl`, `qrels.tsv` in one folder."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from dtrag.core.documents import SearchMetrics, SearchResult
from dtrag.core.metrics.ranking import complete_at, mrr_at, ndcg_at, percentile, precision_at, recall_at
from dtrag.errors import InvalidInput

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
        "ndcg@10": float,
        "recall@10": float,
        "recall@50": float,
        "precision@5": float,
        "mrr@10": float,
        "complete@10": float,
        "latency_ms": Latency,
    },
)
"""The result of `evaluate`, as `dtrag eval retrieval --json` prints it."""


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """Queries with a judged relevant document; `judgements` maps query id to document id to grade (> 0)."""

    name: str
    corpus: Path
    queries: Mapping[str, str]
    judgements: Mapping[str, Mapping[str, int]]


def read_set(folder: Path) -> RetrievalSet:
    """The set in `folder`. Raises `InvalidInput` that names the invalid file and line."""
    corpus, queries_file, qrels = (folder / name for name in ("corpus.jsonl", "queries.jsonl", "qrels.tsv"))
    for file in (corpus, queries_file, qrels):
        if not file.is_file():
            raise InvalidInput(f"{folder} is not a retrieval set: there is no {file.name} in it.")
    judgements: dict[str, dict[str, int]] = {}
    for number, line in enumerate(qrels.read_text("utf-8").splitlines(), start=1):
        try:
            query, document, grade = line.split("\t")
            if int(grade) > 0:
                judgements.setdefault(query, {})[document] = int(grade)
        except ValueError as error:
            raise InvalidInput(
                f"{qrels}, line {number}: expected query id, document id and grade with tabs."
            ) from error
    queries: dict[str, str] = {}
    for number, line in enumerate(queries_file.read_text("utf-8").splitlines(), start=1):
        try:
            row = json.loads(line)
            if str(row["id"]) in judgements:
                queries[str(row["id"])] = str(row["text"])
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f'{queries_file}, line {number}: expected {{"id": ..., "text": ...}}.') from error
    if not queries:
        raise InvalidInput(f"{folder}: no query has a relevant document in {qrels.name}.")
    return RetrievalSet(folder.resolve().name, corpus, queries, judgements)


async def evaluate(
    search: Search, dataset: RetrievalSet, mode: str, on_progress: Callable[[int, int], None] | None = None
) -> RetrievalMeasures:
    """Run every query and average the measures; latency in milliseconds, measured around the whole search.

    Documents are ranked by their best passage. The corpus must be in the index, with its ids in `metadata["id"]`.
    """
    ndcg, recall10, recall50, precision, mrr, complete = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    latencies: list[float] = []
    for number, (query_id, text) in enumerate(dataset.queries.items(), start=1):
        started = time.perf_counter()
        results, _ = await search(text, PASSAGES)
        latencies.append((time.perf_counter() - started) * 1000)
        ranking = list(dict.fromkeys(str(result.metadata.get("id", "")) for result in results))[:DEPTH]
        judgements = dataset.judgements[query_id]
        ndcg += ndcg_at(10, ranking, judgements)
        recall10 += recall_at(10, ranking, judgements)
        recall50 += recall_at(50, ranking, judgements)
        precision += precision_at(5, ranking, judgements)
        mrr += mrr_at(10, ranking, judgements)
        complete += complete_at(10, ranking, judgements)
        if on_progress is not None:
            on_progress(number, len(dataset.queries))
    count = len(dataset.queries)
    return {
        "dataset": dataset.name,
        "mode": mode,
        "queries": count,
        "ndcg@10": round(ndcg / count, 4),
        "recall@10": round(recall10 / count, 4),
        "recall@50": round(recall50 / count, 4),
        "precision@5": round(precision / count, 4),
        "mrr@10": round(mrr / count, 4),
        "complete@10": round(complete / count, 4),
        "latency_ms": {"p50": round(percentile(latencies, 0.5), 2), "p95": round(percentile(latencies, 0.95), 2)},
    }
