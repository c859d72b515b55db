"""`POST /search`, `POST /search/batch` and `POST /ask`: passages for one query or many, and an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Depends, Request
from pydantic import ValidationError

from dtrag.core.documents import SearchMetrics, SearchResult
from dtrag.delivery.api.dependencies import app_of, correlation_of, service_of
from dtrag.delivery.api.errors import ValidationProblem, sentence, validation_sentence
from dtrag.delivery.api.filter_policy import refuse_bypass
from dtrag.delivery.api.json_body import JsonRoute
from dtrag.delivery.api.middleware.audit import add_subjects
from dtrag.delivery.api.permissions import caller_of, needs
from dtrag.delivery.api.request_tasks import until_gone
from dtrag.delivery.api.schemas.common import (
    AskRequest,
    AskResponse,
    BatchResponse,
    Hit,
    Metrics,
    Passage,
    SearchFailure,
    SearchResponse,
)
from dtrag.delivery.api.schemas.errors import QUESTION_FAILURES
from dtrag.delivery.api.schemas.search import BatchRequest, SearchRequest
from dtrag.errors import DtragError, InvalidInput
from dtrag.retrieval.request import MAX_TOP_K

router = APIRouter(route_class=JsonRoute)

_PASSED_ON = {"filters", "mode", "bm25_candidates", "vector_candidates", "explain", "explain_documents"}
AT_ONCE = 4
"""Searches of one batch that run at the same time: enough to keep the database busy, and some of its connections are
left for everybody else."""
MAX_PASSAGES = 5_000
"""Sum of `top_k` over a batch; the whole answer is in memory before it is sent."""


@router.post("/search", tags=["search"], responses=QUESTION_FAILURES, dependencies=[Depends(needs("read"))])
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


@router.post("/ask", tags=["ask"], responses=QUESTION_FAILURES, dependencies=[Depends(needs("read"))])
async def ask(request: Request, asked: AskRequest) -> AskResponse:
    """The answer with citations, or that the documents do not answer."""
    caller = caller_of(request)
    await refuse_bypass(request, asked.filters, caller)
    answering = app_of(request).ask(asked.question, asked.filters, scope=caller.access, owner=caller.owner)
    answer = await until_gone(request, service_of(request).in_flight, answering)
    add_subjects(request, (citation.document_id for citation in answer.citations))
    return AskResponse.model_validate(answer)


@router.post("/search/batch", tags=["search"], responses=QUESTION_FAILURES, dependencies=[Depends(needs("read"))])
async def batch(request: Request, asked: BatchRequest) -> BatchResponse:
    """For each search what `POST /search` answers, in order; one that fails says so in its place."""
    parsed = [_parsed(body) for body in asked.searches]
    wanted = sum(_passages(search) for search in parsed if isinstance(search, SearchRequest))
    if wanted > MAX_PASSAGES:
        raise InvalidInput(f"The searches ask for {wanted:,} passages; top_k may add up to {MAX_PASSAGES:,}.")
    free = asyncio.Semaphore(AT_ONCE)

    async def answer(search: SearchRequest | SearchFailure) -> SearchResponse | SearchFailure:
        if isinstance(search, SearchFailure):
            return search
        async with free:
            try:
                return await found(request, search)
            except DtragError as error:
                return SearchFailure(detail=sentence(str(error)), type=type(error).__name__, status=error.http_status)

    async def every() -> BatchResponse:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(answer(search)) for search in parsed]
        return BatchResponse(answers=[task.result() for task in tasks])

    return await until_gone(request, service_of(request).in_flight, every())


def _passages(search: SearchRequest) -> int:
    """How many passages the search may bring: none when its number is out of range, because then it fails alone."""
    number = max(search.top_k, search.limit or 0)
    return number if 1 <= number <= MAX_TOP_K else 0


def _parsed(body: Any) -> SearchRequest | SearchFailure:
    try:
        return SearchRequest.model_validate(body)
    except ValidationError as error:
        problems = [
            ValidationProblem(type=problem["type"], loc=("body", *problem["loc"]), msg=problem["msg"])
            for problem in error.errors(include_url=False)
        ]
        return SearchFailure(detail=sentence(validation_sentence(problems)), type=InvalidInput.__name__, status=422)
