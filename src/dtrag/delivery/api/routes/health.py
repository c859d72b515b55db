"""Liveness, readiness and status endpoints."""

from __future__ import annotations

import asyncio
from typing import Literal

from fastapi import APIRouter, Request, Response

from dtrag import __version__
from dtrag.core.access.api_key import Caller
from dtrag.core.access.category_filter import CategoryFilter
from dtrag.core.access.scope import Scope
from dtrag.core.statements import stated, text_of_error
from dtrag.delivery.api.dependencies import Service, service_of
from dtrag.delivery.api.errors import error_response
from dtrag.delivery.api.schemas.errors import failures
from dtrag.delivery.api.schemas.health import Alive, Check, Health, Ready, Status
from dtrag.errors import DatabaseUnavailable, DtragError, IndexMismatch, StorageFull
from dtrag.ports import Monitored

router = APIRouter(tags=["health"])

PATIENCE_S = 2.0
"""A database that needs longer for `select 1` is not ready."""

FEATURES = {
    "B-O1": "agent-manifest-builder",  # agents created from categories
    "B-O3": "7-step-pipeline",  # intent to cited answer, with confidence, cost and the version of the tree
}
CASES = {  # B-O4: suggestions from the case memory and its interactions
    "off": "cbr-system-disabled",
    "healthy": "cbr-system-enabled",
    "degraded": "cbr-system-failed",
}
FILTERS = {  # B-O2: keys, agents and filters confine what is searched and read
    "healthy": "retrieval-filter-healthy",
    "degraded": "retrieval-filter-unknown",
    "unhealthy": "retrieval-filter-failed",
}
PERFORMANCE = {"filter_latency_target": "≤10ms", "search_latency_target": "≤800ms"}


@router.get("/livez")
async def livez() -> Alive:
    """The process responds; the database is not checked."""
    return Alive(status="alive")


@router.get("/readyz", response_model=Ready, responses=failures(503))
async def readyz(request: Request) -> Ready | Response:
    """The database responds with the right schema, and the service is not stopping."""
    service = service_of(request)
    if service.stopping:
        return error_response(503, "The service is stopping", "Stopping")
    try:
        await _database(service)
    except DtragError as error:
        return error_response(503, text_of_error(error), type(error).__name__)
    return Ready(status="ready")


@router.get("/health")
async def health(request: Request) -> Health | Status:
    """The state of each part, always with HTTP 200. Without a required key: only status and features."""
    state = await _health(service_of(request))
    caller = getattr(request.state, "caller", None)
    if isinstance(caller, Caller) and caller.may("read"):
        return state
    return Status(status=state.status, features=state.features)


async def _health(service: Service) -> Health:
    try:
        await _database(service)
        database = Check.of("healthy", stated("health_responds", "It responds."))
    except DtragError as error:
        database = Check.of("unhealthy", text_of_error(error))
    if database.status == "healthy":
        index, filters = await _index(service), await _filters(service)
    else:
        index = Check.of("unhealthy", stated("health_database_down", "The database does not respond."))
        unchecked = stated("health_unchecked", "It cannot be checked while the database does not respond.")
        filters = Check.of("degraded", unchecked)
    checks = {"database": database, "index": index, "filter": filters, "embedder": _embedder(service)}
    checks |= _language_model(service) | _disk(service) | await _cases(service)
    worst: Literal["healthy", "degraded", "unhealthy"] = "healthy"
    if "unhealthy" in {database.status, filters.status}:
        worst = "unhealthy"
    elif any(check.status != "healthy" for check in checks.values()):
        worst = "degraded"
    memory = checks["case memory"].status if "case memory" in checks else "off"
    features = FEATURES | {"B-O2": FILTERS[filters.status], "B-O4": CASES[memory]}
    return Health(
        status=worst, service="dtrag", version=__version__, features=features, performance=PERFORMANCE, checks=checks
    )


async def _database(service: Service) -> None:
    """Raises `DatabaseUnavailable` unless the database responds in time with the migrated schema."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            await service.app.storage.ping()
            await service.app.index.snapshot()
    except TimeoutError as error:
        raise DatabaseUnavailable(reason=f"it did not respond within {PATIENCE_S:g} s.") from error


async def _index(service: Service) -> Check:
    """Whether the index was built with the current analyzer and embedder."""
    try:
        await service.app.check_identity()
    except IndexMismatch as error:
        return Check.of("degraded", text_of_error(error))
    except DtragError as error:
        return Check.of("unhealthy", text_of_error(error))
    return Check.of("healthy", stated("health_index_matches", "It matches the analyzer and the embedder."))


async def _filters(service: Service) -> Check:
    """Whether both filters work: the one on lists in memory, and row-level security for an empty scope."""
    inside, outside = {"canonical_path": ["a", "b"]}, {"canonical_path": ["b"]}
    confined = CategoryFilter(allowed_paths=[["a"]])
    if confined.apply_filter([inside, outside]) != [inside] or not confined.validate_filter_bypass_attempt({}):
        return Check.of("unhealthy", "The category filter allows documents outside its branches.")
    try:
        async with asyncio.timeout(PATIENCE_S):
            visible = await service.app.index.counts(Scope(frozenset()))
    except (DtragError, TimeoutError):
        unchecked = "Row-level security of the database could not be checked."
        return Check.of("degraded", stated("health_security_unchecked", unchecked))
    if visible != (0, 0):
        return Check.of("unhealthy", stated("health_scope_leaks", "The database shows documents to an empty scope."))
    return Check.of("healthy", stated("health_scope_holds", "An empty scope sees no documents."))


async def _cases(service: Service) -> dict[str, Check]:
    """Whether the store of the case memory responds; empty while the memory is not enabled."""
    if service.opened is None or not service.opened.cases.enabled:
        return {}
    try:
        async with asyncio.timeout(PATIENCE_S):
            await service.opened.cases.ping()
    except (DtragError, TimeoutError) as error:
        reason = str(error) or f"It did not respond within {PATIENCE_S:g} s."
        return {
            "case memory": Check.of(
                "degraded", stated("health_cases_down", "The case memory cannot be read: {reason}", reason=reason)
            )
        }
    return {"case memory": Check.of("healthy", stated("health_responds", "It responds."))}


def _embedder(service: Service) -> Check:
    """`degraded` for an embedder that does not work; a missing or disabled one is healthy."""
    embedder = service.app.embedder
    if embedder is None and service.settings.embedder == "none":
        return Check.of("healthy", stated("health_embedder_off", "Disabled by DTRAG_EMBEDDER: search is lexical only."))
    if embedder is None:
        return Check.of(
            "healthy",
            stated("health_embedder_missing", "None is installed: search is lexical only. See: dtrag models list"),
        )
    if service.embedder_problem:
        return Check.of("degraded", service.embedder_problem)
    return Check.of("healthy", embedder.id)


def _disk(service: Service) -> dict[str, Check]:
    """A check that is present only while documents are refused because the disk is full."""
    try:
        service.app.storage.require_space()
    except StorageFull as error:
        return {"disk": Check.of("degraded", text_of_error(error))}
    return {}


def _language_model(service: Service) -> dict[str, Check]:
    """The outcome of its last call; no call is made for it. Empty without a language model."""
    model = service.opened.model if service.opened is not None else None
    if model is None:
        return {}
    if isinstance(model, Monitored) and model.problem:
        reason = stated(
            "health_model_failed",
            "The last call of {model} failed: {problem} Answers are quotations until it works again.",
            model=model.id,
            problem=model.problem,
        )
        return {"language model": Check.of("degraded", reason)}
    return {"language model": Check.of("healthy", model.id)}
