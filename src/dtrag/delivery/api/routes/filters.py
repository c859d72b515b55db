"""`/filter/validate`, `/filter/test`, `/metrics/filter`: category filters, tested and measured; and `/metrics`."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Body, Request, Response
from pydantic import BaseModel, Field, WithJsonSchema

from dtrag.core.access.category_filter import CategoryFilter
from dtrag.core.access.scope import MAX_PATHS
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.delivery.api.dependencies import service_of
from dtrag.delivery.api.permissions import ADMIN_WHOLE_TREE, READ, READ_WHOLE_TREE
from dtrag.delivery.api.prometheus import CONTENT_TYPE
from dtrag.delivery.api.routing import JsonObject, JsonRoute, StrictBody, failures
from dtrag.errors import InvalidInput

router = APIRouter()
posting = APIRouter(route_class=JsonRoute, tags=["filters"], dependencies=READ)

TARGET_MS = 10.0
"""Maximum time for the documents of one search (AC-ORCH-007)."""
MAX_DOCUMENTS = 20_000
_FAILURES = failures(400, 413, 415, 422, 503)
_PATHS_SCHEMA = {
    "type": "array",
    "maxItems": MAX_PATHS,
    "items": {"type": "array", "items": {"type": "string"}},
}


class FilterCheck(BaseModel):
    """Whether category paths are well formed; not whether they exist."""

    valid: bool = Field(description="Whether every path is well formed.")
    paths_count: int = Field(description="Number of distinct paths.")
    normalized_paths: list[list[str]] = Field(description="The normalised paths; [] unless all are valid.")
    message: str = Field(description="The first error, or a confirmation.")


class FilterTrial(StrictBody):
    """A filter and documents to test it with."""

    allowed_paths: Annotated[list[object], WithJsonSchema(_PATHS_SCHEMA)] = Field(
        max_length=MAX_PATHS, description="Allowed branches; [] allows none."
    )
    test_documents: list[JsonObject] = Field(
        max_length=MAX_DOCUMENTS, description="Each with its canonical_path, a list of names."
    )


class TrialPerformance(BaseModel):
    """The speed of a filter."""

    filter_latency_ms: float = Field(description="Total time for all documents.")
    documents_per_second: float = Field(description="Documents per second; 0 without documents.")
    meets_target: bool = Field(description=f"Whether the total time is at most {TARGET_MS:g} ms.")


class TrialResults(BaseModel):
    """The numbers of allowed and blocked documents."""

    total: int = Field(description="All documents.")
    allowed: int = Field(description="Allowed documents.")
    blocked: int = Field(description="Blocked documents.")
    pass_rate: float = Field(description="The share of allowed documents; 0 without documents.")


class TrialStatistics(BaseModel):
    """Statistics of a filter."""

    allowed_paths: list[list[str]] = Field(description="The normalised branches.")
    bypass_attempts: dict[str, int] = Field(description="Documents with an attempt to bypass the filter, by kind.")


class FilterTrialResponse(BaseModel):
    """The result of a filter test."""

    performance: TrialPerformance = Field(description="Its speed.")
    filtering_results: TrialResults = Field(description="Allowed and blocked documents.")
    filter_stats: TrialStatistics = Field(description="Statistics of the filter.")


class FilterTimes(BaseModel):
    """Times of checking the filters of a request before its search, in milliseconds."""

    p50_ms: float = Field(description="The median.")
    p95_ms: float = Field(description="The 95th percentile.")
    p99_ms: float = Field(description="The 99th percentile.")
    throughput: float = Field(description="Documents per second in POST /filter/test; 0 before the first.")
    requests: int = Field(description="Requests with filters since the start.")


class FilterSecurity(BaseModel):
    """Attempts to bypass filters since the start; each was refused with 403."""

    path_traversal_attempts: int = Field(description="Paths that lead upwards.")
    injection_attempts: int = Field(description="Operators, prototypes, control characters.")
    bypass_attempts: int = Field(description="Switches, null paths, and branches outside the caller's scope.")
    last_violation: str | None = Field(description="Time of the last attempt, ISO 8601 in UTC; null if none.")


class FilterMetrics(BaseModel):
    """Metrics of filters in this process."""

    filter_system: str = Field(description="How branches are compared.")
    performance_metrics: FilterTimes = Field(description="Times and throughput.")
    security_metrics: FilterSecurity = Field(description="Bypass attempts.")


@posting.post("/filter/validate", responses=_FAILURES)
async def validate(
    paths: Annotated[
        Annotated[list[object], WithJsonSchema(_PATHS_SCHEMA)],
        Body(max_length=MAX_PATHS, description="Category paths, outermost name first.", examples=[[["AI", "ML"]]]),
    ],
) -> FilterCheck:
    """Whether these are well-formed category paths, and their normalised form. The tree is not consulted."""
    if not paths:
        return FilterCheck(
            valid=False, paths_count=0, normalized_paths=[], message="There is no path: no document passes."
        )
    try:
        keys = dict.fromkeys(_parsed(path).key for path in paths)
    except InvalidInput as error:
        return FilterCheck(valid=False, paths_count=0, normalized_paths=[], message=str(error))
    return FilterCheck(
        valid=True,
        paths_count=len(keys),
        normalized_paths=[list(key) for key in keys],
        message="Every path is well formed.",
    )


@posting.post("/filter/test", responses=_FAILURES)
async def try_out(request: Request, trial: FilterTrial) -> FilterTrialResponse:
    """Apply a filter to the documents of the request; the index is not used."""
    category_filter = CategoryFilter([_parsed(path).names for path in trial.allowed_paths])
    await asyncio.to_thread(_filter, category_filter, trial.test_documents)
    statistics = category_filter.statistics()
    service_of(request).telemetry.filters.filtered(statistics.total, statistics.seconds)
    return FilterTrialResponse(
        performance=TrialPerformance(
            filter_latency_ms=round(statistics.seconds * 1000, 4),
            documents_per_second=round(statistics.documents_per_second, 1),
            meets_target=statistics.seconds * 1000 <= TARGET_MS,
        ),
        filtering_results=TrialResults(
            total=statistics.total,
            allowed=statistics.allowed,
            blocked=statistics.blocked,
            pass_rate=round(statistics.pass_rate, 4),
        ),
        filter_stats=TrialStatistics(
            allowed_paths=[list(path.key) for path in category_filter.allowed_paths],
            bypass_attempts=dict(statistics.attempts),
        ),
    )


@router.get("/metrics/filter", tags=["filters"], responses=failures(503), dependencies=ADMIN_WHOLE_TREE)
async def filter_metrics(request: Request) -> FilterMetrics:
    """Times of filter checks and attempts to bypass filters, since the start of the service."""
    figures = service_of(request).telemetry.filters
    p50, p95, p99 = map(figures.quantile_ms, (0.5, 0.95, 0.99))
    last = figures.last_violation
    return FilterMetrics(
        filter_system="element-wise prefixes of folded names, resolved to nodes of the tree",
        performance_metrics=FilterTimes(
            p50_ms=p50, p95_ms=p95, p99_ms=p99, throughput=figures.documents_per_second, requests=figures.checked
        ),
        security_metrics=FilterSecurity(
            path_traversal_attempts=figures.attempts["path_traversal"],
            injection_attempts=figures.attempts["injection"],
            bypass_attempts=figures.attempts["bypass"],
            last_violation=last.isoformat() if last else None,
        ),
    )


def _parsed(path: object) -> CategoryPath:
    if not isinstance(path, list):
        raise InvalidInput("A category path is a list of names, such as ['AI', 'ML'].")
    return CategoryPath.parse(path)


def _filter(category_filter: CategoryFilter, documents: list[JsonObject]) -> None:
    category_filter.apply_filter(documents)
    for document in documents:
        category_filter.validate_filter_bypass_attempt(document)


@router.get(
    "/metrics",
    tags=["health"],
    response_class=Response,
    responses={**failures(403), 200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    dependencies=READ_WHOLE_TREE,
)
async def metrics(request: Request) -> Response:
    """Counts and times since the start of the service, in the text format of Prometheus; no content."""
    service = service_of(request)
    await service.measure_cases()
    await service.measure_vectors()
    return Response(service.telemetry.exposition(), headers={"Content-Type": CONTENT_TYPE})


router.include_router(posting)
