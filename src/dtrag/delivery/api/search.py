"""`POST /search`: passages for a query."""

from __future__ import annotations

from fastapi import APIRouter, Request

from dtrag.delivery.api.asked import SearchRequest
from dtrag.delivery.api.body import JsonRoute
from dtrag.delivery.api.failures import QUESTION_FAILURES
from dtrag.delivery.api.shapes import Metrics, Passage, SearchResponse
from dtrag.delivery.api.state import correlation_of, service_of
from dtrag.errors import DtragError

router = APIRouter(route_class=JsonRoute, tags=["search"])

_PASSED_ON = {"filters", "mode", "bm25_candidates", "vector_candidates", "explain", "explain_documents"}


@router.post("/search", responses=QUESTION_FAILURES)
async def search(request: Request, asked: SearchRequest) -> SearchResponse:
    """The passages that fit the query best, with their scores."""
    return await found(request, asked)


async def found(request: Request, asked: SearchRequest) -> SearchResponse:
    """What the app finds, in the shape of the answer. Raises `DtragError`."""
    service = service_of(request)
    options = {**asked.model_dump(include=_PASSED_ON), "correlation_id": correlation_of(request)}
    try:
        results, metrics = await service.app.search(asked.query, asked.top_k, **options)
    except DtragError as error:
        service.telemetry.searches.failed(error)
        raise
    kept = [result for result in results if max(result.bm25_score, result.vector_score) >= asked.min_score]
    passages = [Passage.model_validate(result) for result in kept]
    if not asked.highlights:
        passages = [passage.model_copy(update={"highlights": []}) for passage in passages]
    counted = Metrics.model_validate(metrics).model_copy(update={"final_results": len(passages)})
    return SearchResponse(results=passages, metrics=counted)
