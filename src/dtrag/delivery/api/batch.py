"""`POST /search/batch`: several searches in one request, each with an answer or a failure of its own."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Depends, Request
from pydantic import ValidationError

from dtrag.delivery.api.dependencies import service_of
from dtrag.delivery.api.errors import sentence, shape_sentence
from dtrag.delivery.api.json_body import JsonRoute
from dtrag.delivery.api.permissions import needs
from dtrag.delivery.api.request_tasks import until_gone
from dtrag.delivery.api.routes.search import found
from dtrag.delivery.api.schemas.common import BatchResponse, SearchFailure, SearchResponse
from dtrag.delivery.api.schemas.errors import QUESTION_FAILURES
from dtrag.delivery.api.schemas.search import BatchRequest, SearchRequest
from dtrag.errors import DtragError, InvalidInput
from dtrag.retrieval.request import MAX_TOP_K

router = APIRouter(route_class=JsonRoute, tags=["search"])

AT_ONCE = 4
"""Searches of one batch that run at the same time: enough to keep the database busy, and some of its connections are
left for everybody else."""
MAX_PASSAGES = 5_000
"""Sum of `top_k` over a batch; the whole answer is in memory before it is sent."""


@router.post("/search/batch", responses=QUESTION_FAILURES, dependencies=[Depends(needs("read"))])
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
        problems = [{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors(include_url=False)]
        return SearchFailure(detail=sentence(shape_sentence(problems)), type=InvalidInput.__name__, status=422)
