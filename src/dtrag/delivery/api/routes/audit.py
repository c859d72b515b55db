"""The audit log, the isolation test, and kept evaluations, for administrators of the whole tree."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from dtrag.core.access.audit_chain import AuditLine, ChainHead, ChainVerdict, Decision
from dtrag.core.evaluation_run import EvaluationRun, RunReport, RunSummary
from dtrag.delivery.api.audited import add_subjects
from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.delivery.api.permissions import ADMIN_WHOLE_TREE, caller_of
from dtrag.delivery.api.request_tasks import until_gone
from dtrag.delivery.api.routes.jobs import QueuedJob
from dtrag.delivery.api.routing import JsonRoute, StrictBody, Time, failures
from dtrag.governance.evaluations import MAX_LISTED
from dtrag.isolation.runs import IsolationRun

router = APIRouter(route_class=JsonRoute, tags=["audit"], dependencies=ADMIN_WHOLE_TREE)

MAX_LIMIT = 1_000
MAX_NUMBER = 2**63 - 1
MAX_QUESTIONS = 2_000


class AuditPage(BaseModel):
    """Lines of the audit log, the newest first."""

    lines: list[AuditLine] = Field(description="The lines.")
    before: int | None = Field(description="The `before` parameter of the next page; null on the last page.")


@router.get("/audit", responses=failures(403, 422, 503))
async def audit(
    request: Request,
    *,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Maximum number of entries.")] = 100,
    before: Annotated[int | None, Query(ge=1, le=MAX_NUMBER, description="Only lines below this number.")] = None,
    since: Annotated[Time | None, Query(description="Only lines since this time (UTC if it has no zone).")] = None,
    until: Annotated[Time | None, Query(description="Only lines before this time (UTC if it has no zone).")] = None,
    actor: Annotated[str | None, Query(max_length=100, description="Only lines of this caller.")] = None,
    action: Annotated[
        str | None,
        Query(max_length=100, description="Only lines whose action contains this, in any case, such as `/search`."),
    ] = None,
    decision: Annotated[Decision | None, Query(description="allowed, denied or done.")] = None,
    subject: Annotated[
        str | None, Query(max_length=200, description="Only lines about the object with this id, such as a document.")
    ] = None,
) -> AuditPage:
    """The audit log, the newest lines first. This request itself appears in later ones."""
    rows = await app_of(request).audit.newest(
        limit=limit,
        before=before,
        since=since,
        until=until,
        actor=_without_nul(actor),
        action=_without_nul(action),
        decision=decision,
        subject=_without_nul(subject),
    )
    more = len(rows) == limit and rows[-1].number > 1
    return AuditPage(lines=list(map(AuditLine.of, rows)), before=rows[-1].number if more else None)


@router.get("/audit/verify", responses=failures(403, 422, 503))
async def verify(
    request: Request,
    expect: Annotated[
        str | None,
        Query(max_length=100, description="The `head` of an earlier check, which the log must still contain."),
    ] = None,
) -> ChainVerdict:
    """Check that no line of the audit log was changed, removed or added by hand.

    Without `expect`, the removal of the newest lines cannot be noticed.
    """
    expected = ChainHead.parse(expect) if expect else None
    work = app_of(request).audit.verify(expected)
    return await until_gone(request, service_of(request).in_flight, work)


def _without_nul(text: str | None) -> str | None:
    """PostgreSQL stores no NUL, so no line contains one."""
    return None if text is None else text.replace("\x00", "")


class IsolationBody(StrictBody):
    """What a run tests. More requests take longer: about a minute for a thousand."""

    requests: int = Field(1_000, ge=50, le=100_000, description="Minimum number of requests.")
    documents: int = Field(500, ge=10, le=100_000, description="Documents of the test index.")
    nodes: int = Field(50, ge=4, le=2_000, description="Categories of the test index.")
    live: bool = Field(False, description="Test the index of the service; nothing is written.")


@router.get("/isolation", responses=failures(403, 503))
async def last_isolation_test(request: Request) -> IsolationRun:
    """The state and the report of the last run since the service was started."""
    return service_of(request).isolation.last


@router.post(
    "/isolation",
    status_code=202,
    responses=failures(400, 403, 409, 413, 415, 422, 503, 507),
)
async def start_isolation_test(request: Request, body: IsolationBody) -> IsolationRun:
    """Start the isolation test; GET /isolation has its report when it is done.

    It runs in a process of its own, with a temporary index on the same database server.
    """
    service = service_of(request)
    return service.isolation.start(service.settings, body.model_dump())


evaluation_router = APIRouter(route_class=JsonRoute, tags=["evaluations"], dependencies=ADMIN_WHOLE_TREE)


class RunList(BaseModel):
    """The kept runs, the newest first."""

    evaluations: list[RunSummary] = Field(description="The runs.")


@evaluation_router.get("/evaluations", responses=failures(403, 404, 422, 503))
async def evaluations(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED, description="Maximum number of entries.")] = 20,
    after: Annotated[
        str | None, Query(max_length=100, description="Only runs older than the one with this id.")
    ] = None,
) -> RunList:
    """The runs that were kept, the newest first."""
    runs = await app_of(request).evaluations.newest(limit, after)
    return RunList(evaluations=runs)


class EvaluationBody(StrictBody):
    """Judged questions to ask."""

    dataset: str = Field(min_length=1, max_length=200, description="The name under which the run is listed.")
    questions: list[dict[str, Any]] = Field(
        min_length=1, max_length=MAX_QUESTIONS, description="As the lines of a file of judged questions."
    )


@evaluation_router.post("/evaluations", status_code=202, responses=failures(400, 403, 413, 415, 422, 503, 507))
async def start_evaluation(request: Request, body: EvaluationBody) -> QueuedJob:
    """Ask judged questions about the stored documents and keep the run; `result` of the job names it."""
    job = await app_of(request).queue_evaluation(body.dataset, body.questions, caller=caller_of(request))
    add_subjects(request, [str(job.job_id)])
    return QueuedJob.of(job)


@evaluation_router.get("/evaluations/{run_id}", responses=failures(403, 404, 422, 503))
async def evaluation(request: Request, run_id: str) -> RunReport:
    """One run with its questions."""
    run: EvaluationRun = await app_of(request).evaluations.get(run_id)
    request.state.subjects = [str(run.run_id)]
    return await asyncio.to_thread(run.report)
