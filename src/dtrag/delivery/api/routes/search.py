"""`POST /search`, `/search/batch`, `/ask` and `/search/neural`: passages, an answer, and past cases for a query."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field, ValidationError, WithJsonSchema

from dtrag.cases.suggesting import MAX_HITS, MODES, CaseHit, CaseSearch
from dtrag.core.access.scope import Access
from dtrag.core.cases.requests import MAX_QUERY
from dtrag.core.documents import Answer, SearchMetrics, SearchResult
from dtrag.delivery.api.audited import add_answer, add_subjects
from dtrag.delivery.api.dependencies import app_of, correlation_of, service_of
from dtrag.delivery.api.errors import invalid_sentence, sentence
from dtrag.delivery.api.permissions import BROWSE, READ, caller_of, refuse_bypass
from dtrag.delivery.api.request_tasks import until_gone
from dtrag.delivery.api.routing import (
    QUESTION_FAILURES,
    AskRequest,
    BatchRequest,
    BatchResponse,
    Hit,
    JsonRoute,
    RequestBody,
    SearchFailure,
    SearchRequest,
    SearchResponse,
    Text,
    failures,
)
from dtrag.errors import DtragError, FeatureOff, InvalidInput, NeuralSelectorOff
from dtrag.retrieval.request import MAX_CHOSEN, MAX_TOP_K
from dtrag.settings import flag

router = APIRouter(route_class=JsonRoute)

_OPTIONS = {"mode", "bm25_candidates", "vector_candidates", "explain", "explain_documents", "as_of", "highlights"}
AT_ONCE = 4
"""Concurrent searches of one batch: enough to keep the database busy while other requests get connections."""
MAX_PASSAGES = 5_000
"""Maximum sum of `top_k` over a batch; the whole response is held in memory."""


class NeuralRequest(RequestBody):
    """A search for past cases."""

    query: Text = Field(
        json_schema_extra={"maxLength": MAX_QUERY}, description="A question.", examples=["parental leave"]
    )
    limit: int = Field(
        default=10, json_schema_extra={"minimum": 1, "maximum": MAX_HITS}, description="Maximum number of cases."
    )
    category_path: list[Text] | None = Field(default=None, description="Only cases of exactly this category.")
    mode: Annotated[Text, WithJsonSchema({"type": "string", "enum": list(MODES)})] = Field(
        default="hybrid", description="hybrid (meaning and words, 7 to 3), neural (meaning) or bm25 (words)."
    )


class NeuralHit(BaseModel):
    """A case with its scores."""

    case_id: str = Field(description="The case.")
    query: str = Field(description='Its question; "" where questions are stored without text.')
    category_path: list[str] = Field(description="Its category.")
    content: str = Field(description="Its content.")
    score: float = Field(description="The score that orders the hits, in [0, 1] within this response.")
    vector_score: float | None = Field(description="Cosine of the questions; null where meaning did not count.")
    bm25_score: float | None = Field(description="BM25 as a share of the best hit; null where words did not count.")
    quality_score: float = Field(description="Its quality by votes, in [0, 1].")
    usage_count: int = Field(description="Number of votes on it.")

    @classmethod
    def of(cls, hit: CaseHit) -> NeuralHit:
        """The hit for JSON."""
        case = hit.case
        return cls(
            case_id=case.case_id,
            query=case.query,
            category_path=list(case.category_path),
            content=case.content,
            score=round(hit.score, 6),
            vector_score=hit.vector_score,
            bm25_score=None if hit.bm25_score is None else round(hit.bm25_score, 6),
            quality_score=case.quality_score,
            usage_count=case.usage_count,
        )


class NeuralResponse(BaseModel):
    """The cases, best first."""

    hits: list[NeuralHit] = Field(description="The cases.")
    mode: str = Field(description="hybrid, neural, bm25, or bm25_fallback where meaning could not count.")
    reason: str = Field(description='Why it could not; "" otherwise.')
    latency: float = Field(description="Seconds.")
    total_count: int = Field(description="Number of hits.")

    @classmethod
    def of(cls, search: CaseSearch) -> NeuralResponse:
        """The search for JSON."""
        hits = [NeuralHit.of(hit) for hit in search.hits]
        return cls(hits=hits, mode=search.mode, reason=search.reason, latency=search.seconds, total_count=len(hits))


@router.post("/search", tags=["search"], responses=QUESTION_FAILURES, dependencies=BROWSE)
async def search(request: Request, body: SearchRequest) -> SearchResponse:
    """The best passages for the query, with their scores."""
    return await until_gone(request, service_of(request).in_flight, run_search(request, body))


async def run_search(request: Request, body: SearchRequest) -> SearchResponse:
    """Search within the caller's scope. Raises `DtragError`, of these `Overloaded` when too many searches wait."""
    least_score = body.least_score()
    options = body.model_dump(include=_OPTIONS)
    results, metrics = await search_in(
        request, caller_of(request).access, body.query, body.requested_k, body.filters, **options
    )
    results = [result for result in results if max(result.bm25_score, result.vector_score) >= least_score]
    add_subjects(request, (result.chunk_id.rpartition(":")[0] for result in results))
    return search_response(results, metrics)


async def search_in(
    request: Request,
    access: Access,
    query: str,
    top_k: int | None,
    filters: Mapping[str, Any] | None,
    **options: Any,
) -> tuple[list[SearchResult], SearchMetrics]:
    """Search within `access`, the caller's own or a part of it; counted, with a place of the limit of searches."""
    service = service_of(request)
    try:
        await refuse_bypass(request, filters, caller_of(request))
        async with service.app.run.admission.search():
            return await service.app.search(
                query, top_k, filters=filters, scope=access, correlation_id=correlation_of(request), **options
            )
    except DtragError as error:
        service.telemetry.searches.failed(error)
        raise


def search_response(results: Sequence[SearchResult], metrics: SearchMetrics) -> SearchResponse:
    """The response body for these results."""
    return SearchResponse(
        results=list(results),
        metrics=replace(metrics, final_results=len(results)),
        hits=[Hit.of(result) for result in results],
        total_count=len(results),
        latency=metrics.total_time,
    )


@router.post("/ask", tags=["ask"], responses=QUESTION_FAILURES, dependencies=BROWSE)
async def ask(request: Request, body: AskRequest) -> Answer:
    """The answer with citations, or that the documents do not answer."""
    return await answer_question(request, body)


async def answer_question(request: Request, body: AskRequest, *, models: bool = True) -> Answer:
    """The answer within the caller's scope; without `models` no language model is called."""
    caller = caller_of(request)
    await refuse_bypass(request, body.filters, caller)
    work = app_of(request).ask(
        body.question, body.filters, scope=caller.access, owner=caller.owner, as_of=body.as_of, models=models
    )
    answer = await until_gone(request, service_of(request).in_flight, work)
    add_answer(request, answer)
    return answer


@router.post("/search/batch", tags=["search"], responses=QUESTION_FAILURES, dependencies=READ)
async def batch(request: Request, body: BatchRequest) -> BatchResponse:
    """The response of `POST /search` for each search, in order; a failed search has its error there."""
    parsed = [_parsed(search) for search in body.searches]
    requested_passages = sum(_requested_passages(search) for search in parsed if isinstance(search, SearchRequest))
    if requested_passages > MAX_PASSAGES:
        raise InvalidInput(
            f"The searches request {requested_passages:,} passages; the sum of top_k may be {MAX_PASSAGES:,}."
        )
    concurrency = asyncio.Semaphore(AT_ONCE)

    async def run(search: SearchRequest | SearchFailure) -> SearchResponse | SearchFailure:
        if isinstance(search, SearchFailure):
            return search
        async with concurrency:
            try:
                return await run_search(request, search)
            except DtragError as error:
                return SearchFailure(
                    detail=sentence(error.over_http), type=type(error).__name__, status=error.http_status
                )

    async def run_all() -> BatchResponse:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run(search)) for search in parsed]
        return BatchResponse(answers=[task.result() for task in tasks])

    return await until_gone(request, service_of(request).in_flight, run_all())


@router.post("/search/neural", tags=["search"], responses=QUESTION_FAILURES | failures(501), dependencies=READ)
async def neural(request: Request, body: NeuralRequest) -> NeuralResponse:
    """The cases whose questions are nearest, best first. Meaning counts from 1,000 interactions and 70 % success on.

    503 while the flag of the search is off, 501 while the case memory is.
    """
    if not flag("neural_case_selector"):
        raise NeuralSelectorOff
    app = app_of(request)
    if not app.cases.enabled:
        raise FeatureOff(feature="CBR system", variable="CBR_ENABLED")
    async with app.run.admission.search():
        nearest_cases = await app.neural_selector.search(
            body.query, body.limit, body.category_path, body.mode, viewer=caller_of(request).access
        )
    add_subjects(request, (hit.case.case_id for hit in nearest_cases.hits))
    return NeuralResponse.of(nearest_cases)


def _requested_passages(search: SearchRequest) -> int:
    """The number of requested passages; 0 if it is out of range, as the search then fails on its own."""
    number = max(search.top_k or 0, search.limit or 0) or MAX_CHOSEN
    return number if 1 <= number <= MAX_TOP_K else 0


def _parsed(body: object) -> SearchRequest | SearchFailure:
    try:
        return SearchRequest.model_validate(body)
    except ValidationError as error:
        return SearchFailure(detail=sentence(invalid_sentence(error)), type=InvalidInput.__name__, status=422)
