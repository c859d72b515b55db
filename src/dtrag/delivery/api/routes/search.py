"""`POST /search`: passages for a query."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Depends, Request

from dtrag.core.documents import SearchMetrics, SearchResult
from dtrag.delivery.api.dependencies import correlation_of, service_of
from dtrag.delivery.api.filter_policy import refuse_bypass
from dtrag.delivery.api.json_body import JsonRoute
from dtrag.delivery.api.middleware.audit import add_subjects
from dtrag.delivery.api.permissions import caller_of, needs
from dtrag.delivery.api.request_tasks import until_gone
from dtrag.delivery.api.schemas.common import Hit, Metrics, Passage, SearchResponse
from dtrag.delivery.api.schemas.errors import QUESTION_FAILURES
from dtrag.delivery.api.schemas.search import SearchRequest
from dtrag.errors import DtragError

router = APIRouter(route_class=JsonRoute, tags=["search"])

_PASSED_ON = {"filters", "mode", "bm25_candidates", "vector_candidates", "explain", "explain_documents"}


@router.post("/search", responses=QUESTION_FAILURES, dependencies=[Depends(needs("read"))])
async def search(request: Request, asked: SearchRequest) -> SearchResponse:
    """The passages that fit the query best, with their scores."""
    return await until_gone(request, service_of(request).in_flight, found(request, asked))


async def found(request: Request, asked: SearchRequest) -> SearchResponse:
    """What the app finds, in the shape of the answer. Raises `DtragError`; `Overloaded` when too many wait already."""
    service, caller = service_of(request), caller_of(request)
    options = {
        **asked.model_dump(include=_PASSED_ON),
        "correlation_id": correlation_of(request),
        "scope": caller.access,
        "highlights": asked.highlights,
    }
    least = asked.least_score()
    try:
        await refuse_bypass(request, asked.filters, caller)
        async with service.app.run.admission.search():
            results, metrics = await service.app.search(asked.query, asked.wanted, **options)
    except DtragError as error:
        service.telemetry.searches.failed(error)
        raise
    kept = [result for result in results if max(result.bm25_score, result.vector_score) >= least]
    add_subjects(request, (result.chunk_id.rpartition(":")[0] for result in kept))
    return answered(kept, metrics)


def answered(results: Sequence[SearchResult], metrics: SearchMetrics) -> SearchResponse:
    """These passages in the shape of the answer."""
    passages = [Passage.model_validate(result) for result in results]
    return SearchResponse(
        results=passages,
        metrics=Metrics.model_validate(metrics).model_copy(update={"final_results": len(passages)}),
        hits=[Hit.of(passage) for passage in passages],
        total_count=len(passages),
        latency=metrics.total_time,
    )
