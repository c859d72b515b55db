"""The averages of retrieval are those worked out by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from dtrag.core.documents import SearchMetrics, SearchResult
from dtrag.errors import InvalidInput
from dtrag.evaluation.judged_questions import JudgedQuestion, JudgedSet
from dtrag.evaluation.retrieval import PASSAGES, RetrievalSet, Search, evaluate, rows_of

AVERAGES = ("ndcg@10", "recall@10", "recall@50", "precision@5", "mrr@10", "complete@10")


def _set(*questions: JudgedQuestion, limit: int | None = None) -> RetrievalSet:
    return RetrievalSet.of(JudgedSet("toy", Path("corpus.jsonl"), questions), limit)


def _passages(*ids: str) -> list[SearchResult]:
    return [SearchResult(f"{number}", "", metadata={"id": key} if key else {}) for number, key in enumerate(ids)]


def _searching(rankings: Mapping[str, Sequence[SearchResult]]) -> Search:
    async def search(text: str, requested: int) -> tuple[list[SearchResult], SearchMetrics]:
        assert requested == PASSAGES
        return list(rankings[text]), SearchMetrics()

    return search


def test_a_retrieval_set_has_the_questions_with_judgements() -> None:
    questions = [JudgedQuestion(str(number), "q", {"a": 1}) for number in range(4)]
    others = (JudgedQuestion("none", "q", {}), JudgedQuestion("absent", "q", {}, answerable=False))
    dataset = _set(*questions, *others, limit=2)
    assert [question.id for question in dataset.questions] == ["0", "2"]
    assert (dataset.unanswerable, dataset.relevant_ids) == (1, frozenset("a"))
    with pytest.raises(InvalidInput, match=r"no query has a relevant document\. Add qrels\.tsv"):
        _set(*others)


async def test_averages_by_hand() -> None:
    # q1: documents in the order x, a, y, b; each document counts at its best passage only.
    rankings = {"valve": _passages("x", "a", "x", "a", "y", "b"), "휴학": _passages("c")}
    dataset = _set(
        JudgedQuestion("q1", "valve", {"a": 2, "b": 1}),
        JudgedQuestion("2", "휴학", {"c": 1}),
        JudgedQuestion("3", "absent", {}, answerable=False),
    )
    steps: list[tuple[int, int]] = []
    measured, notes = await evaluate(
        _searching(rankings), dataset, "lexical", lambda done, total: steps.append((done, total))
    )
    first = (2 / math.log2(3) + 1 / math.log2(5)) / (2 + 1 / math.log2(3))
    latency, intervals = measured["latency_ms"], measured["intervals"]
    assert {name: value for name, value in measured.items() if name not in {"latency_ms", "intervals"}} == {
        "dataset": "toy",
        "mode": "lexical",
        "queries": 2,
        "unanswerable": 1,
        "unfinished": 0,
        "ndcg@10": round((first + 1) / 2, 4),
        "recall@10": 1.0,
        "recall@50": 1.0,
        "precision@5": round((2 / 5 + 1 / 5) / 2, 4),
        "mrr@10": 0.75,
        "complete@10": 1.0,
    }
    assert intervals["mrr@10"] == (0.5, 1.0)
    assert intervals["recall@10"] == (1.0, 1.0)
    assert set(intervals) == set(AVERAGES)
    assert 0 <= latency["p50"] <= latency["p95"]
    assert (steps, notes) == ([(1, 2), (2, 2)], [])
    json.dumps(measured)
    rows = dict(rows_of(measured))
    assert rows["mrr@10"] == "0.7500  [0.500, 1.000]"
    assert rows["queries"] == "2, and 1 unanswerable (not searched)"
    assert max(len(value) for value in rows.values()) <= 60


async def test_articles_are_compared_by_code_and_number() -> None:
    def article(number: str, occurrence: int) -> SearchResult:
        metadata = {"regulation": "학칙", "code": "1-1", "article": number, "occurrence": occurrence, "id": "1-1"}
        return SearchResult("c", title="학칙", metadata=metadata)

    results = [article("제1조", 1), article("제2조", 1), article("제2조", 1), article("제2조", 2)]
    dataset = _set(JudgedQuestion("q", "q", {"1-1:제2조#2": 1}), JudgedQuestion("r", "q", {"학칙:제1조": 1}))
    measured, _ = await evaluate(_searching({"q": results}), dataset, "hybrid")
    assert measured["mrr@10"] == round((1 / 3 + 1) / 2, 4)


async def test_ranks_beyond_10_and_50_count_where_they_should() -> None:
    results = _passages(*(f"d{number}" for number in range(60)))
    dataset = _set(JudgedQuestion("q", "any", {"d0": 1, "d10": 1, "d49": 1, "d50": 1}))
    measured, _ = await evaluate(_searching({"any": results}), dataset, "hybrid")
    assert (measured["recall@10"], measured["recall@50"], measured["complete@10"]) == (0.25, 0.75, 0.0)


@pytest.mark.parametrize(("results", "other"), [(_passages(), "''"), (_passages("b"), "'b'")])
async def test_results_without_a_relevant_id_are_zero_and_noted(results: list[SearchResult], other: str) -> None:
    dataset = _set(JudgedQuestion("q", "any", {"a": 1}))
    measured, notes = await evaluate(_searching({"any": results}), dataset, "strict")
    assert {measured["ndcg@10"], measured["recall@50"], measured["precision@5"], measured["mrr@10"]} == {0.0}
    assert len(notes) == 1
    assert f"A relevant id: 'a'; one of the corpus: {other}" in notes[0]
