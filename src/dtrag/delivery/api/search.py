"""`POST /search`: passages for a query."""

from __future__ import annotations

from fastapi import APIRouter, Request

from dtrag.delivery.api.body import JsonRoute
from dtrag.delivery.api.failures import QUESTION_FAILURES
from dtrag.delivery.api.shapes import Metrics, Passage, SearchRequest, SearchResponse
from dtrag.delivery.api.state import app_of

router = APIRouter(route_class=JsonRoute, tags=["search"])


@router.post("/search", responses=QUESTION_FAILURES)
async def search(request: Request, asked: SearchRequest) -> SearchResponse:
    """The passages that fit the query best, with their scores."""
    results, metrics = await app_of(request).search(asked.query, asked.top_k, asked.filters, mode=asked.mode)
    return SearchResponse(
        results=[Passage.model_validate(result) for result in results], metrics=Metrics.model_validate(metrics)
    )
