"""Reading a retrieval set says which line is wrong; the averages are those worked out by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from dtrag.core.documents import SearchMetrics, SearchResult
from dtrag.errors import InvalidInput
from dtrag.evaluation.retrieval import PASSAGES, RetrievalSet, evaluate, read_set

QUERIES = [{"id": "q1", "text": "valve"}, {"id": 2, "text": "휴학"}, {"id": "q3", "text": "nobody judged this"}]
QRELS = "q1\ta\t2\nq1\tb\t1\n2\tc\t1\n2\td\t0\nq9\tx\t1\n"


def _folder(folder: Path, queries: str | None = None, qrels: str | None = QRELS) -> Path:
    rows = "\n".join(map(json.dumps, QUERIES)) if queries is None else queries
    (folder / "corpus.jsonl").write_text("", "utf-8")
    (folder / "queries.jsonl").write_text(rows, "utf-8")
    if qrels is not None:
        (folder / "qrels.tsv").write_text(qrels, "utf-8")
    return folder


def test_a_set_holds_the_queries_that_have_a_relevant_document(tmp_path: Path) -> None:
    found = read_set(_folder(tmp_path))
    assert found.queries == {"q1": "valve", "2": "휴학"}
    assert found.judgements["q1"] == {"a": 2, "b": 1}
    assert found.judgements["2"] == {"c": 1}
    assert (found.name, found.corpus) == (tmp_path.name, tmp_path / "corpus.jsonl")


@pytest.mark.parametrize("missing", ["corpus.jsonl", "queries.jsonl", "qrels.tsv"])
def test_a_folder_without_one_of_the_files_is_not_a_set(tmp_path: Path, missing: str) -> None:
    (_folder(tmp_path) / missing).unlink()
    with pytest.raises(InvalidInput, match=f"there is no {missing} in it"):
        read_set(tmp_path)


@pytest.mark.parametrize("line", ["q1\ta", "q1\ta\tyes", "q1 a 1", "", "q1\t0\ta\t1"])
def test_a_bad_judgement_is_named_by_its_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(InvalidInput, match=r"qrels\.tsv, line 2: expected query id"):
        read_set(_folder(tmp_path, qrels=f"q1\ta\t1\n{line}\nq1\tb\t1\n"))


@pytest.mark.parametrize("line", ["{", "[]", "5", '{"text": "x"}', '{"id": "q1"}', '"q1"', "null", ""])
def test_a_bad_query_is_named_by_its_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(InvalidInput, match=r"queries\.jsonl, line 2: expected"):
        read_set(_folder(tmp_path, queries=json.dumps(QUERIES[0]) + f"\n{line}\n"))


@pytest.mark.parametrize("qrels", ["", "q1\ta\t0\n", "other\ta\t1\n"])
def test_a_set_without_a_judged_query_is_refused(tmp_path: Path, qrels: str) -> None:
    with pytest.raises(InvalidInput, match="no query has a relevant document"):
        read_set(_folder(tmp_path, qrels=qrels))


def _passages(*ids: str) -> list[SearchResult]:
    return [SearchResult(f"{number}", "", metadata={"id": key} if key else {}) for number, key in enumerate(ids)]


async def test_averages_by_hand() -> None:
    # q1: documents in the order x, a, y, b; each document counts at its best passage only.
    rankings = {"valve": _passages("x", "a", "x", "a", "y", "b"), "휴학": _passages("c")}
    asked: list[tuple[str, int]] = []

    async def search(text: str, wanted: int) -> tuple[list[SearchResult], SearchMetrics]:
        asked.append((text, wanted))
        return rankings[text], SearchMetrics()

    dataset = RetrievalSet(
        "toy", Path("corpus.jsonl"), {"q1": "valve", "2": "휴학"}, {"q1": {"a": 2, "b": 1}, "2": {"c": 1}}
    )
    steps: list[tuple[int, int]] = []
    measured = await evaluate(search, dataset, "lexical", lambda done, of: steps.append((done, of)))
    first = (2 / math.log2(3) + 1 / math.log2(5)) / (2 + 1 / math.log2(3))
    latency = measured["latency_ms"]
    assert {name: value for name, value in measured.items() if name != "latency_ms"} == {
        "dataset": "toy",
        "mode": "lexical",
        "queries": 2,
        "ndcg@10": round((first + 1) / 2, 4),
        "recall@10": 1.0,
        "recall@50": 1.0,
        "precision@5": round((2 / 5 + 1 / 5) / 2, 4),
        "mrr@10": 0.75,
        "complete@10": 1.0,
    }
    assert 0 <= latency["p50"] <= latency["p95"]
    assert asked == [("valve", PASSAGES), ("휴학", PASSAGES)]
    assert steps == [(1, 2), (2, 2)]
    json.dumps(measured)


async def test_ranks_beyond_10_and_50_count_where_they_should() -> None:
    async def search(text: str, wanted: int) -> tuple[list[SearchResult], SearchMetrics]:
        return _passages(*(f"d{number}" for number in range(60))), SearchMetrics()

    dataset = RetrievalSet("toy", Path("x"), {"q": "any"}, {"q": {"d0": 1, "d10": 1, "d49": 1, "d50": 1}})
    measured = await evaluate(search, dataset, "hybrid")
    assert (measured["recall@10"], measured["recall@50"], measured["complete@10"]) == (0.25, 0.75, 0.0)


async def test_nothing_found_is_nothing_reached() -> None:
    async def search(text: str, wanted: int) -> tuple[list[SearchResult], SearchMetrics]:
        return [], SearchMetrics()

    measured = await evaluate(search, RetrievalSet("toy", Path("x"), {"q": "any"}, {"q": {"a": 1}}), "strict")
    assert {
        measured[name] for name in ("ndcg@10", "recall@10", "recall@50", "precision@5", "mrr@10", "complete@10")
    } == {0.0}
