"""Explanations of ranks and of absences; they reveal nothing about documents outside the scope."""

from __future__ import annotations

import math
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from dtrag.core.access.scope import Scope
from dtrag.core.documents import Absence, SearchMetrics, SearchResult
from dtrag.core.statements import Statement
from dtrag.core.taxonomy.tree import ROOT, Node, Taxonomy
from dtrag.ports import Embedder
from dtrag.retrieval.engine import HybridSearchEngine
from dtrag.retrieval.explain import NOT_ADMITTED, NOT_FOUND, NOT_IN_CATEGORIES
from tests.toy import ToyEmbedder
from tests.unit.retrieval.memory import MemoryIndex, Row

TREE = Taxonomy.of("1", [Node(2, ROOT, "AI", "ai"), Node(3, ROOT, "HR", "hr")])
KETTLE, BOILER, LEAVE, GARDEN, SECRET = (str(uuid.UUID(int=number)) for number in range(1, 6))
ROWS = (
    Row(f"{KETTLE}:0", "The kettle has a valve.", 2, "Manual", metadata={"author": "Kim"}),
    Row(f"{BOILER}:0", "A boiler has a valve and a valve.", 2),
    Row(f"{LEAVE}:0", "Summer.", 3, "Holidays"),
    Row(f"{LEAVE}:1", "The valve of the salary office.", 3, "Holidays", processed_at=datetime(2024, 1, 1, tzinfo=UTC)),
    Row(f"{GARDEN}:0", "Gardens are closed in winter.", 3, content_type="text/html"),
    Row(f"{SECRET}:0", "kettle valve kettle valve", 9),
)
VISIBLE = Scope(frozenset({2, 3}))


async def _search(
    query: str = "The kettle's valve?",
    top_k: int = 2,
    embedder: Embedder | None = None,
    **options: Any,
) -> tuple[list[SearchResult], SearchMetrics, MemoryIndex]:
    index = MemoryIndex(ROWS, embedder, TREE)
    engine = HybridSearchEngine(embedder, index, enable_reranking=False, filter_keys={"author"})
    arguments: dict[str, Any] = {"scope": VISIBLE, "explain": True} | options
    results, metrics = await engine.search(query, top_k, **arguments)
    return results, metrics, index


async def _absence_of(document_id: str, **options: Any) -> Absence:
    _, metrics, _ = await _search(explain_documents=[document_id], **options)
    (absent,) = metrics.absent
    assert absent.document_id == document_id
    return absent


async def test_each_result_is_explained_by_its_scores_ranks_and_words() -> None:
    results, metrics, _ = await _search(embedder=ToyEmbedder(), top_k=5)
    assert metrics.absent == ()
    for rank, result in enumerate(results, start=1):
        explanation = result.explanation
        assert explanation is not None
        assert explanation.fused_rank == rank
        assert max(explanation.fused or 0.0, 1e-6) == pytest.approx(result.hybrid_score)
        assert explanation.bm25_score == pytest.approx(result.bm25_score)
        assert explanation.cosine is not None
        assert max(0.0, explanation.cosine) == pytest.approx(result.vector_score)
        assert explanation.vector_rank is not None
        assert (explanation.lexical_rank is None) == (explanation.bm25 == 0.0)
        assert explanation.rerank is None
    best = results[0].explanation
    assert best is not None
    assert (best.lexical_rank, best.terms) == (1, ("kettle's", "valve"))
    assert best.bm25 > best.bm25_score > 0


async def test_without_explain_the_index_gets_no_further_reads() -> None:
    results, metrics, index = await _search(explain=False)
    assert results[0].explanation is None
    assert metrics.absent == ()
    assert index.calls == ["snapshot", "statistics", "lexical", "fetch"]


async def test_without_vectors_there_is_no_cosine_and_no_vector_rank() -> None:
    results, _, _ = await _search()
    explanation = results[0].explanation
    assert explanation is not None
    assert (explanation.cosine, explanation.vector_rank) == (None, None)


@pytest.mark.parametrize("document_id", [SECRET, str(uuid.UUID(int=99)), "nonsense", "", "'; DROP TABLE chunks; --"])
async def test_missing_and_invisible_documents_get_the_same_reason(document_id: str) -> None:
    absent = await _absence_of(document_id, embedder=ToyEmbedder())
    assert absent == Absence(document_id, (NOT_FOUND,))


async def test_a_document_among_the_results_is_not_absent() -> None:
    _, metrics, _ = await _search(explain_documents=[KETTLE, KETTLE.upper().replace("-", "")])
    assert metrics.absent == ()


@pytest.mark.parametrize(
    ("filters", "document_id", "reason"),
    [
        ({"canonical_in": [["HR"]]}, KETTLE, NOT_IN_CATEGORIES),
        ({"canonical_in": [["ghost"]]}, KETTLE, NOT_IN_CATEGORIES),
        ({"content_types": ["text/html"]}, KETTLE, NOT_ADMITTED),
        ({"date_from": "2025-07-01"}, KETTLE, NOT_ADMITTED),
        ({"metadata": {"author": "Lee"}}, KETTLE, NOT_ADMITTED),
    ],
)
async def test_a_document_that_the_filters_exclude(
    filters: dict[str, Any], document_id: str, reason: Statement
) -> None:
    assert (await _absence_of(document_id, filters=filters)) == Absence(document_id, (reason,))


async def test_a_document_without_any_word_of_the_query() -> None:
    absent = await _absence_of(GARDEN)
    assert absent.reason == "Its best passage is not a candidate: it contains no word of the query."
    assert absent.chunk_id == f"{GARDEN}:0"
    assert absent.explanation is not None
    assert (absent.explanation.bm25, absent.explanation.terms, absent.explanation.fused_rank) == (0.0, (), None)
    strict = await _absence_of(LEAVE, mode="strict", query="kettle valve")
    assert "it does not contain every word of the query" in strict.reason


async def test_a_document_ranked_below_the_last_result() -> None:
    absent = await _absence_of(LEAVE, top_k=1)
    assert absent.chunk_id == f"{LEAVE}:1"
    assert absent.reason == "Its best passage has rank 3 of 3 candidates; the list ends with rank 1."
    assert absent.explanation is not None
    assert (absent.explanation.fused_rank, absent.explanation.terms) == (3, ("valve",))
    assert absent.explanation.bm25 > 0


async def test_a_document_that_no_retriever_returned_is_explained_with_its_scores() -> None:
    absent = await _absence_of(
        GARDEN, query="kettle valve", top_k=1, embedder=ToyEmbedder(), bm25_candidates=1, vector_candidates=1
    )
    assert "it contains no word of the query. Its best passage is not a candidate: its similarity is " in absent.reason
    assert "the last of the 1 candidates has" in absent.reason
    assert absent.explanation is not None
    assert absent.explanation.cosine is not None
    assert math.isfinite(absent.explanation.cosine)
    lexical = await _absence_of(LEAVE, query="kettle valve", top_k=1, bm25_candidates=1)
    assert "its lexical score is" in lexical.reason


async def test_an_explanation_does_not_call_a_retriever_that_failed() -> None:
    embedder = ToyEmbedder()
    index = MemoryIndex(ROWS, embedder, TREE)
    index.broken["lexical"] = OSError("gone")
    engine = HybridSearchEngine(embedder, index, scope=VISIBLE)
    results, metrics = await engine.search("kettle", 1, explain=True, explain_documents=[KETTLE, BOILER, LEAVE, GARDEN])
    assert metrics.degraded == ("lexical",)
    assert "lexical_scores" not in index.calls
    assert results[0].explanation is not None
    assert (results[0].explanation.bm25, results[0].explanation.lexical_rank) == (0.0, None)
    assert len(metrics.absent) == 3
    for absent in metrics.absent:
        assert absent.reason.startswith("Its best passage had rank")
