"""Liveness, readiness and status endpoints."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Literal, TypeVar

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from dtrag import __version__
from dtrag.core.access.api_key import Caller
from dtrag.core.access.category_filter import CategoryFilter
from dtrag.core.access.scope import Scope
from dtrag.core.statements import Statement, stated, statement_of
from dtrag.delivery.api.dependencies import Service, service_of
from dtrag.delivery.api.errors import error_response
from dtrag.delivery.api.request_tasks import within
from dtrag.delivery.api.routing import ReasonStatements, failures
from dtrag.errors import DatabaseUnavailable, DtragError, IndexMismatch, StorageFull
from dtrag.ingestion.vectors import VECTORS
from dtrag.jobs.queue import sees_all
from dtrag.ports import Monitored

T = TypeVar("T")
router = APIRouter(tags=["health"])

PATIENCE_S = 2.0
"""A database that needs longer for the checks is not ready."""

UNCHECKED = "It cannot be checked while the database does not respond."
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


class Alive(BaseModel):
    """The process responds."""

    status: Literal["alive"] = Field(description="Always alive.")


class Ready(BaseModel):
    """The service can process requests."""

    status: Literal["ready"] = Field(description="Always ready; otherwise the status is 503.")


class Check(BaseModel):
    """One part of the service."""

    status: Literal["healthy", "degraded", "unhealthy"] = Field(description="Its state.")
    reason: str = Field(description="The reason for the state, or a detail.")
    reason_statements: ReasonStatements

    @classmethod
    def of(cls, status: Literal["healthy", "degraded", "unhealthy"], reason: Statement) -> Check:
        """The state with its reason."""
        return cls(status=status, reason=str(reason), reason_statements=(reason,))


class Status(BaseModel):
    """The state of the service, for callers without a key."""

    status: Literal["healthy", "degraded", "unhealthy"] = Field(description="The worst state of the essential parts.")
    features: dict[str, str] = Field(description="The implemented features by work item.")


class Health(BaseModel):
    """The state of the service and its parts. The HTTP status is always 200."""

    status: Literal["healthy", "degraded", "unhealthy"] = Field(description="The worst state of the essential parts.")
    service: str = Field(description="dtrag.")
    version: str = Field(description="Its version.")
    workers: int = Field(description="Processes that serve requests (DTRAG_WORKERS).")
    features: dict[str, str] = Field(description="The implemented features by work item.")
    performance: dict[str, str] = Field(description="The performance targets of the service.")
    checks: dict[str, Check] = Field(
        description="database, index, filter, embedder; language model where one is configured; vectors while some are "
        "being made; jobs while some fail or are not taken."
    )


@router.get("/livez")
async def livez() -> Alive:
    """The process responds; the database is not checked."""
    return Alive(status="alive")


@router.get("/readyz", response_model=Ready, responses=failures(503))
async def readyz(request: Request) -> Ready | Response:
    """The database responds with the right schema, models and index are loaded, and the service is not stopping."""
    service = service_of(request)
    if service.stopping:
        return error_response(503, "The service is stopping", "Stopping")
    if not service.ready:
        return error_response(503, "The service is loading its models and its index", "Starting")
    try:
        await _in_time(_respond(service))
    except DtragError as error:
        return error_response(503, statement_of(error), type(error).__name__)
    return Ready(status="ready")


@router.get("/health")
async def health(request: Request) -> Health | Status:
    """The state of each part, always with HTTP 200. Without a required key: only status and features."""
    caller = getattr(request.state, "caller", None)
    reader = caller if isinstance(caller, Caller) and caller.may("read") else None
    state = await _health(service_of(request), getattr(request.state, "database_problem", None), reader)
    if reader is not None:
        return state
    return Status(status=state.status, features=state.features)


async def _health(service: Service, problem: DatabaseUnavailable | None, reader: Caller | None) -> Health:
    """The state of all parts. `problem`: why the database could not even recognise the caller."""
    database_checks, memory_check, vector_check, job_check = await asyncio.gather(
        _database(service, problem),
        _cases(service, problem),
        _vectors(service, problem, reader),
        _jobs(service, problem, reader),
    )
    checks = database_checks | {"embedder": embedder_check(service)}
    checks |= _language_model(service) | _disk(service) | memory_check | vector_check | job_check
    worst: Literal["healthy", "degraded", "unhealthy"] = "healthy"
    if "unhealthy" in {checks["database"].status, checks["filter"].status}:
        worst = "unhealthy"
    elif any(check.status != "healthy" for check in checks.values()):
        worst = "degraded"
    memory = checks["case memory"].status if "case memory" in checks else "off"
    features = FEATURES | {"B-O2": FILTERS[checks["filter"].status], "B-O4": CASES[memory]}
    return Health(
        status=worst,
        service="dtrag",
        version=__version__,
        workers=service.workers,
        features=features,
        performance=PERFORMANCE,
        checks=checks,
    )


async def _database(service: Service, problem: DatabaseUnavailable | None) -> dict[str, Check]:
    """The checks of the database, the index and the filter, which together take `PATIENCE_S` at most."""
    try:
        if problem is not None:
            raise problem
        return await _in_time(_database_checks(service))
    except DtragError as error:
        return {
            "database": Check.of("unhealthy", statement_of(error)),
            "index": Check.of("unhealthy", stated("health_database_down", "The database does not respond.")),
            "filter": Check.of("degraded", stated("health_unchecked", UNCHECKED)),
        }


async def _database_checks(service: Service) -> dict[str, Check]:
    await _respond(service)
    healthy = Check.of("healthy", stated("health_responds", "It responds."))
    return {"database": healthy, "index": await _index(service), "filter": await _filters(service)}


async def _respond(service: Service) -> None:
    """Raises `DatabaseUnavailable` unless the database responds with the migrated schema."""
    await service.app.database.ping()
    await service.app.index.snapshot()


async def _in_time(work: Coroutine[Any, Any, T]) -> T:
    """The result of the work. Raises `DatabaseUnavailable` when it takes longer than `PATIENCE_S`."""
    try:
        return await within(PATIENCE_S, work)
    except TimeoutError as error:
        raise DatabaseUnavailable(reason=f"it did not respond within {PATIENCE_S:g} s.") from error


async def _index(service: Service) -> Check:
    """Whether the index was built with the current analyzer."""
    try:
        await service.app.check_identity()
    except IndexMismatch as error:
        return Check.of("degraded", statement_of(error))
    except DtragError as error:
        return Check.of("unhealthy", statement_of(error))
    return Check.of("healthy", stated("health_index_matches", "It matches the analyzer."))


async def _filters(service: Service) -> Check:
    """Whether both filters work: the one on lists in memory, and row-level security for an empty scope."""
    inside, outside = {"canonical_path": ["a", "b"]}, {"canonical_path": ["b"]}
    confined = CategoryFilter(allowed_paths=[["a"]])
    if confined.apply_filter([inside, outside]) != [inside] or not confined.validate_filter_bypass_attempt({}):
        return Check.of("unhealthy", Statement("", "The category filter allows documents outside its branches."))
    try:
        visible = await service.app.index.counts(Scope(frozenset()))
    except DtragError:
        unchecked = "Row-level security of the database could not be checked."
        return Check.of("degraded", stated("health_security_unchecked", unchecked))
    if visible != (0, 0):
        return Check.of("unhealthy", stated("health_scope_leaks", "The database shows documents to an empty scope."))
    return Check.of("healthy", stated("health_scope_holds", "An empty scope sees no documents."))


async def _cases(service: Service, problem: DatabaseUnavailable | None) -> dict[str, Check]:
    """Whether the store of the case memory responds; empty while the memory is not enabled."""
    if service.opened is None or not service.opened.cases.enabled:
        return {}
    if problem is not None:
        return {"case memory": Check.of("degraded", stated("health_unchecked", UNCHECKED))}
    try:
        await within(PATIENCE_S, service.opened.cases.ping())
    except (DtragError, TimeoutError) as error:
        reason = str(error) or f"It did not respond within {PATIENCE_S:g} s."
        return {
            "case memory": Check.of(
                "degraded", stated("health_cases_down", "The case memory cannot be read: {reason}", reason=reason)
            )
        }
    return {"case memory": Check.of("healthy", stated("health_responds", "It responds."))}


def embedder_check(service: Service) -> Check:
    """`degraded` for an embedder that does not work; a missing or disabled one is healthy."""
    embedder = service.app.embedder
    if embedder is None and service.settings.embedder == "none":
        return Check.of("healthy", stated("health_embedder_off", "Disabled by its setting: search is lexical only."))
    if embedder is None:
        return Check.of(
            "healthy",
            stated("health_embedder_missing", "None is installed: search is lexical only. See: dtrag models list"),
        )
    if service.embedder_problem:
        return Check.of("degraded", Statement("", service.embedder_problem))
    return Check.of("healthy", Statement("", embedder.id))


async def _jobs(service: Service, problem: DatabaseUnavailable | None, reader: Caller | None) -> dict[str, Check]:
    """Present while vectors cannot be made, and for administrators of the whole tree while jobs fail or wait."""
    if service.opened is None or problem is not None:
        return {}
    try:
        counts = await within(PATIENCE_S, service.opened.jobs.counts())
        not_taken = await within(PATIENCE_S, service.opened.jobs.not_taken(counts))
    except (DtragError, TimeoutError):
        return {}
    checks = {}
    for count in counts:
        if count.reason and count.kind == VECTORS:
            text = "They cannot be made at the moment, and are tried again: {reason}"
            checks["vectors"] = Check.of("degraded", stated("health_vectors_fail", text, reason=count.reason))
    if reader is None or not sees_all(reader):
        return checks
    failed = sum(count.jobs for count in counts if count.state == "failed")
    if not_taken:
        text = "Jobs wait, and no process takes them: start one whose setting jobs_at_once is above 0."
        checks["jobs"] = Check.of("degraded", stated("health_jobs_wait", text))
    elif failed:
        text = "{count} have failed in the last week: GET /jobs?state=failed has the reasons."
        checks["jobs"] = Check.of("healthy", stated("health_jobs_failed", text, count=f"{failed:,}"))
    return checks


async def _vectors(service: Service, problem: DatabaseUnavailable | None, reader: Caller | None) -> dict[str, Check]:
    """Present while passages that the reader may see wait for their vectors."""
    app = service.opened
    if app is None or problem is not None or reader is None:
        return {}
    try:
        pending = await within(PATIENCE_S, app.pending_vectors(scope=reader.access))
    except (DtragError, TimeoutError):
        return {}
    if not pending:
        return {}
    text = "Being made for {count} passages, which are found by their words until then."
    return {"vectors": Check.of("healthy", stated("health_vectors_pending", text, count=f"{pending:,}"))}


def _disk(service: Service) -> dict[str, Check]:
    """A check that is present only while documents are refused because the disk is full."""
    try:
        service.app.database.require_space()
    except StorageFull as error:
        return {"disk": Check.of("degraded", statement_of(error))}
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
    return {"language model": Check.of("healthy", Statement("", model.id))}
