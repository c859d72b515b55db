"""`/filter/validate`, `/filter/test` and `/metrics/filter`: category filters, tried out and counted."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Request
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from dtrag.core.access.category_filter import CategoryFilter
from dtrag.core.access.scope import MAX_PATHS
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.delivery.api.dependencies import service_of
from dtrag.delivery.api.json_body import JsonRoute
from dtrag.delivery.api.permissions import needs
from dtrag.delivery.api.schemas.errors import failures
from dtrag.errors import InvalidInput

router = APIRouter(tags=["filters"])
posting = APIRouter(route_class=JsonRoute, tags=["filters"], dependencies=[Depends(needs("read"))])

TARGET_MS = 10.0
"""Longest time for the documents of one search (AC-ORCH-007)."""
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
    paths_count: int = Field(description="Different paths among them.")
    normalized_paths: list[list[str]] = Field(description="The paths as they are compared; [] unless all are valid.")
    message: str = Field(description="What is wrong, or that nothing is.")


class FilterTrial(BaseModel):
    """Documents to send through a filter."""

    model_config = ConfigDict(extra="forbid", strict=True)

    allowed_paths: Annotated[list[Any], WithJsonSchema(_PATHS_SCHEMA)] = Field(
        max_length=MAX_PATHS, description="Branches that are let through; none: nothing is."
    )
    test_documents: list[dict[str, Any]] = Field(
        max_length=MAX_DOCUMENTS, description="Each with its canonical_path, a list of names."
    )


class TrialPerformance(BaseModel):
    """How quickly documents went through a filter."""

    filter_latency_ms: float = Field(description="For all of the documents together.")
    documents_per_second: float = Field(description="Documents looked at in a second; 0 without any.")
    meets_target: bool = Field(description=f"Whether it took at most {TARGET_MS:g} ms.")


class TrialResults(BaseModel):
    """What a filter let through, and what it did not."""

    total: int = Field(description="Documents.")
    allowed: int = Field(description="Let through.")
    blocked: int = Field(description="Not let through.")
    pass_rate: float = Field(description="The share let through; 0 without any.")


class TrialStatistics(BaseModel):
    """What a filter noticed on the way."""

    allowed_paths: list[list[str]] = Field(description="The branches as they are compared.")
    bypass_attempts: dict[str, int] = Field(description="Documents that hold an attempt to get around it, by kind.")


class FilterTrialResponse(BaseModel):
    """What a filter does with documents, and how quickly."""

    performance: TrialPerformance = Field(description="How quick it was.")
    filtering_results: TrialResults = Field(description="What was let through.")
    filter_stats: TrialStatistics = Field(description="What the filter noticed.")


class FilterTimes(BaseModel):
    """Times of looking at the filters of a request before its search, in milliseconds."""

    p50_ms: float = Field(description="Half of them took at most this.")
    p95_ms: float = Field(description="95 in 100 took at most this.")
    p99_ms: float = Field(description="99 in 100 took at most this.")
    throughput: float = Field(description="Documents a second through POST /filter/test; 0 before the first.")
    requests: int = Field(description="Requests with filters since the start.")


class FilterSecurity(BaseModel):
    """Attempts to get around filters since the start; each was answered with 403."""

    path_traversal_attempts: int = Field(description="Paths that lead upwards.")
    injection_attempts: int = Field(description="Operators, prototypes, control characters.")
    bypass_attempts: int = Field(description="Switches, null paths, and branches outside the caller's scope.")
    last_violation: str | None = Field(description="When the last was, ISO 8601 in UTC; null for never.")


class FilterMetrics(BaseModel):
    """How the filters of this service do."""

    filter_system: str = Field(description="How branches are told apart.")
    performance_metrics: FilterTimes = Field(description="Times and throughput.")
    security_metrics: FilterSecurity = Field(description="Attempts.")


@posting.post("/filter/validate", responses=_FAILURES)
async def validate(
    paths: Annotated[
        Annotated[list[Any], WithJsonSchema(_PATHS_SCHEMA)],
        Body(max_length=MAX_PATHS, description="Category paths, outermost name first.", examples=[[["AI", "ML"]]]),
    ],
) -> FilterCheck:
    """Whether these are category paths, and how they are compared; nothing is looked up."""
    if not paths:
        return FilterCheck(valid=False, paths_count=0, normalized_paths=[], message="There is no path: nothing passes.")
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
    """Sends documents that the request brings along through a filter; the index is not touched."""
    for path in trial.allowed_paths:
        _parsed(path)
    made = CategoryFilter(trial.allowed_paths)
    await asyncio.to_thread(_filter, made, trial.test_documents)
    done = made.statistics()
    service_of(request).filters.filtered(done.total, done.seconds)
    return FilterTrialResponse(
        performance=TrialPerformance(
            filter_latency_ms=round(done.seconds * 1000, 4),
            documents_per_second=round(done.documents_per_second, 1),
            meets_target=done.seconds * 1000 <= TARGET_MS,
        ),
        filtering_results=TrialResults(
            total=done.total, allowed=done.allowed, blocked=done.blocked, pass_rate=round(done.pass_rate, 4)
        ),
        filter_stats=TrialStatistics(
            allowed_paths=[list(path.key) for path in made.allowed_paths], bypass_attempts=dict(done.attempts)
        ),
    )


@router.get("/metrics/filter", responses=failures(503), dependencies=[Depends(needs("admin", whole_tree=True))])
async def filter_metrics(request: Request) -> FilterMetrics:
    """Times of the filters of requests, and attempts to get around them, since the start of this process."""
    watch = service_of(request).filters
    p50, p95, p99 = watch.quantiles_ms((0.5, 0.95, 0.99))
    last = watch.last_violation
    return FilterMetrics(
        filter_system="element-wise prefixes of folded names, resolved to nodes of the tree",
        performance_metrics=FilterTimes(
            p50_ms=p50, p95_ms=p95, p99_ms=p99, throughput=watch.documents_per_second, requests=watch.checked
        ),
        security_metrics=FilterSecurity(
            path_traversal_attempts=watch.attempts("path_traversal"),
            injection_attempts=watch.attempts("injection"),
            bypass_attempts=watch.attempts("bypass"),
            last_violation=last.isoformat() if last else None,
        ),
    )


def _parsed(path: Any) -> CategoryPath:
    if not isinstance(path, list):
        raise InvalidInput("A category path is a list of names, such as ['AI', 'ML'].")
    return CategoryPath.parse(path)


def _filter(made: CategoryFilter, documents: list[dict[str, Any]]) -> None:
    made.apply_filter(documents)
    for document in documents:
        made.validate_filter_bypass_attempt(document)


router.include_router(posting)
