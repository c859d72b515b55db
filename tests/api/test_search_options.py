"""What a search over HTTP can be asked beyond its query: marks, reasons, depth, a least score, and ids of its own."""

from __future__ import annotations

from typing import Any, NoReturn

import httpx2
import pytest
import pytest_asyncio

from dtrag.core.access.scope import Access
from dtrag.core.documents import Absence, Explanation, SearchMetrics, SearchResult
from dtrag.core.statements import Statement
from dtrag.delivery.api.dependencies import Service
from dtrag.retrieval import results as ordering
from dtrag.retrieval.request import CANDIDATES
from tests.api.shape import FORM, assert_failure, form

BOOK = """# Ferry rules

## Bicycles

Bicycles travel free on the ferries of the lake.

## 자전거

자전거는 무료로 실을 수 있다.
"""
WHY = Explanation(9.5, 0.8, None, 1.0, None, 1, None, 1, ("bicycl",))


@pytest_asyncio.fixture(scope="module", autouse=True)
async def book(client: httpx2.AsyncClient) -> str:
    body = form(("files", b"ferry.md", BOOK.encode()), ("category", None, b"Lake"))
    response = await client.post("/documents", content=body, headers=FORM)
    assert response.status_code == 201
    return str(response.json()["documents"][0]["document_id"])


class Recorded:
    """In the place of the app's search: remembers what it is asked, and answers with what it was given."""

    def __init__(self, *results: SearchResult, absent: tuple[Absence, ...] = ()) -> None:
        self.results = list(results)
        self.metrics = SearchMetrics(bm25_candidates=7, final_results=len(results), absent=absent)
        self.asked: dict[str, Any] = {}

    async def __call__(self, query: str, top_k: int, **options: Any) -> tuple[list[SearchResult], SearchMetrics]:
        self.asked = {"query": query, "top_k": top_k, **options}
        return self.results, self.metrics


@pytest.mark.parametrize(
    ("query", "words"),
    [("travelling by bicycle", {"Bicycles", "travel"}), ("자전거를 실을 수 있나요?", {"자전거"})],
)
async def test_the_words_of_the_query_are_marked(client: httpx2.AsyncClient, query: str, words: set[str]) -> None:
    asked = {"query": query, "filters": {"taxonomy_paths": [["Lake"]]}}
    (first, *_) = (await client.post("/search", json=asked)).json()["results"]
    assert words <= {first["text"][start:end] for start, end in first["highlights"]}
    (first, *_) = (await client.post("/search", json={**asked, "highlights": False})).json()["results"]
    assert first["highlights"] == []


async def test_words_are_only_located_when_they_are_marked(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> NoReturn:
        raise AssertionError("highlights were computed")

    monkeypatch.setattr(ordering, "highlights", fail)
    answer = await client.post("/search", json={"query": "bicycles on the lake", "highlights": False})
    assert answer.status_code == 200
    assert {len(row["highlights"]) for row in answer.json()["results"]} == {0}


async def test_every_option_reaches_the_app(
    client: httpx2.AsyncClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = Recorded()
    monkeypatch.setattr(service.app, "search", recorded)
    options = {
        "top_k": 3,
        "mode": "lexical",
        "filters": {"metadata": {"language": "ko", "year": 2024, "open": True}},
        "bm25_candidates": 200,
        "vector_candidates": 9,
        "explain": True,
        "explain_documents": ["a", "b"],
        "highlights": False,
        "as_of": "2024-03-01",
    }
    body = {"query": "x", **options}
    assert (await client.post("/search", json=body, headers={"X-Correlation-ID": "w-9"})).status_code == 200
    assert recorded.asked == {**body, "correlation_id": "w-9", "scope": Access(principals=None)}
    assert (await client.post("/search", json={"query": "x"})).status_code == 200
    assert recorded.asked["bm25_candidates"] == recorded.asked["vector_candidates"] == CANDIDATES


async def test_explanations_are_returned(
    client: httpx2.AsyncClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = SearchResult("d:1", "Bicycles", bm25_score=0.8, explanation=WHY)
    none = Absence("f", (Statement("", "There is none."),))
    absent = Absence("e", (Statement("", "It is the 31st of the list."),), "e:4", WHY)
    monkeypatch.setattr(service.app, "search", Recorded(found, absent=(absent, none)))
    body = (await client.post("/search", json={"query": "x", "explain": True, "explain_documents": ["e", "f"]})).json()
    reasons = body["results"][0]["explanation"]
    assert reasons == {
        "bm25": 9.5,
        "bm25_score": 0.8,
        "cosine": None,
        "fused": 1.0,
        "rerank": None,
        "lexical_rank": 1,
        "vector_rank": None,
        "fused_rank": 1,
        "terms": ["bicycl"],
        "expansions": [],
        "imagined": None,
        "imagined_questions": [],
    }
    texts = ("It is the 31st of the list.", "There is none.")
    statements = [[{"code": "", "text": text, "values": {}}] for text in texts]
    rows = [("e", texts[0], statements[0], "e:4", reasons), ("f", texts[1], statements[1], None, None)]
    names = ("document_id", "reason", "reason_statements", "chunk_id", "explanation")
    assert body["metrics"]["absent"] == [dict(zip(names, row, strict=True)) for row in rows]


async def test_explanations_come_from_the_engine(client: httpx2.AsyncClient, book: str) -> None:
    nobody = "00000000-0000-4000-8000-000000000000"
    asked = {"query": "bicycles", "mode": "lexical", "explain": True, "explain_documents": [book, nobody]}
    body = (await client.post("/search", json=asked)).json()
    first = body["results"][0]
    assert first["explanation"]["lexical_rank"] == 1
    assert first["explanation"]["bm25_score"] == pytest.approx(first["bm25_score"])
    assert first["explanation"]["terms"]
    assert nobody in {absent["document_id"] for absent in body["metrics"]["absent"]}
    assert book not in {absent["document_id"] for absent in body["metrics"]["absent"]}
    plain = (await client.post("/search", json={"query": "bicycles"})).json()
    assert plain["results"][0]["explanation"] is None
    assert plain["metrics"]["absent"] == []


async def test_the_minimum_score_applies_to_comparable_scores(
    client: httpx2.AsyncClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_words = SearchResult("d:1", "x", bm25_score=0.5, vector_score=0.1, hybrid_score=1.0)
    by_meaning = SearchResult("d:2", "x", bm25_score=0.0, vector_score=0.5, hybrid_score=0.9)
    by_neither = SearchResult("d:3", "x", bm25_score=0.4, vector_score=0.4, hybrid_score=0.8)
    monkeypatch.setattr(service.app, "search", Recorded(by_words, by_meaning, by_neither))
    body = (await client.post("/search", json={"query": "x", "min_score": 0.5})).json()
    assert [result["chunk_id"] for result in body["results"]] == ["d:1", "d:2"]
    assert body["metrics"]["final_results"] == 2


async def test_correlation_ids_are_returned(client: httpx2.AsyncClient) -> None:
    both = await client.post("/search", json={"query": "x"}, headers={"X-Correlation-ID": "w-7", "X-Request-ID": "r-1"})
    assert (both.headers["x-correlation-id"], both.headers["x-request-id"]) == ("w-7", "r-1")
    assert both.json()["metrics"]["correlation_id"] == "w-7"
    one = await client.get("/livez", headers={"X-Request-ID": "r-2"})
    assert one.headers["x-correlation-id"] == "r-2"
    bad = await client.get("/livez", headers={"X-Correlation-ID": "a b"})
    assert bad.headers["x-correlation-id"] == bad.headers["x-request-id"]


async def test_facts_that_are_not_declared_are_refused(client: httpx2.AsyncClient) -> None:
    asked = {"query": "bicycles", "filters": {"metadata": {"taste": "sweet"}}}
    assert "the setting filter_keys" in assert_failure(await client.post("/search", json=asked), 422)["detail"]
