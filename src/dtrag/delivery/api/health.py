"""Is it alive, is it ready, and how is it: for supervisors, load balancers and people, in this order."""

from __future__ import annotations

import asyncio
from typing import Literal

from fastapi import APIRouter, Request, Response

from dtrag import __version__
from dtrag.delivery.api.errors import error_response
from dtrag.delivery.api.failures import failures
from dtrag.delivery.api.shapes import Alive, Check, Health, Ready, Status
from dtrag.delivery.api.state import Service, service_of
from dtrag.errors import DatabaseUnavailable, DtragError, IndexMismatch

router = APIRouter(tags=["health"])

PATIENCE_S = 2.0
"""A probe wants an answer soon; a database that needs longer for `select 1` is not ready."""

FEATURES = {
    "B-O1": "agent-manifest-builder",  # agents made from categories
    "B-O2": "retrieval-filter-healthy",  # keys, agents and filters confine what is searched and read
    "B-O3": "7-step-pipeline",  # intent to cited answer, with confidence, cost and the version of the tree
    "B-O4": "not-in-this-version",  # memory of past cases
}
PERFORMANCE = {"filter_latency_target": "≤10ms", "search_latency_target": "≤800ms"}


@router.get("/livez")
async def livez() -> Alive:
    """The process answers; says nothing about the database."""
    return Alive(status="alive")


@router.get("/readyz", response_model=Ready, responses=failures(503))
async def readyz(request: Request) -> Ready | Response:
    """The database answers and has the right schema, and the service is not about to stop."""
    service = service_of(request)
    if service.stopping:
        return error_response(503, "The service is stopping", "Stopping")
    try:
        await _database(service)
    except DtragError as error:
        return error_response(503, str(error), type(error).__name__)
    return Ready(status="ready")


@router.get("/health")
async def health(request: Request) -> Health | Status:
    """How the parts are, and why; always with HTTP 200. Without a key, where one is needed: the status alone."""
    whole = await _health(service_of(request))
    return whole if getattr(request.state, "caller", None) is not None else Status(status=whole.status)


async def _health(service: Service) -> Health:
    try:
        await _database(service)
        database = Check(status="healthy", reason="It answers.")
    except DtragError as error:
        database = Check(status="unhealthy", reason=str(error))
    if database.status == "healthy":
        index = await _index(service)
    else:
        index = Check(status="unhealthy", reason="The database does not answer.")
    checks = {"database": database, "index": index, "embedder": _embedder(service)} | _language_model(service)
    worst: Literal["healthy", "degraded", "unhealthy"] = "healthy"
    if database.status == "unhealthy":
        worst = "unhealthy"
    elif any(check.status != "healthy" for check in checks.values()):
        worst = "degraded"
    return Health(
        status=worst, service="dtrag", version=__version__, features=FEATURES, performance=PERFORMANCE, checks=checks
    )


async def _database(service: Service) -> None:
    """Raises `DatabaseUnavailable` unless a connection is to be had and the migrated schema answers in time."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            await service.app.database.ping()
            await service.app.index.snapshot()
    except TimeoutError as error:
        raise DatabaseUnavailable(reason=f"it did not answer within {PATIENCE_S:g} s.") from error


async def _index(service: Service) -> Check:
    """Whether the index was built with the analyzer and the embedder of now."""
    try:
        await service.app.check_identity()
    except IndexMismatch as error:
        return Check(status="degraded", reason=str(error))
    except DtragError as error:
        return Check(status="unhealthy", reason=str(error))
    return Check(status="healthy", reason="It fits the analyzer and the embedder.")


def _embedder(service: Service) -> Check:
    embedder = service.app.embedder
    if embedder is None:
        return Check(status="degraded", reason="No embedder is available: search is lexical only.")
    if service.embedder_problem:
        return Check(status="degraded", reason=service.embedder_problem)
    return Check(status="healthy", reason=embedder.id)


def _language_model(service: Service) -> dict[str, Check]:
    """What became of its last call; it is not called to find out. Nothing where answers are quotations by choice."""
    model = service.opened.model if service.opened is not None else None
    if model is None:
        return {}
    if model.problem:
        reason = f"{model.id} did not answer the last time: {model.problem} Answers are quotations meanwhile."
        return {"language model": Check(status="degraded", reason=reason)}
    return {"language model": Check(status="healthy", reason=model.id)}
