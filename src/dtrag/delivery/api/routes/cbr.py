"""`/cbr`: suggestions from the case memory, feedback on them, and its cases. 501 while the memory is off."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from dtrag.cases.memory import MAX_LIMIT
from dtrag.cases.views import AddedCase, CaseExport, CasePage, notes_on
from dtrag.core.cases.case import Case, FeedbackType, SimilarityMethod
from dtrag.core.cases.statistics import LEAST_INTERACTIONS, LEAST_SUCCESS, Readiness
from dtrag.core.response import extended, plain
from dtrag.delivery.api.audited import add_subjects
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.permissions import ADMIN, READ, WRITE, caller_of
from dtrag.delivery.api.routing import JsonRoute, failures
from dtrag.delivery.api.schemas.cbr import (
    CaseBody,
    CaseChangeBody,
    ChangedCase,
    ChangedQuality,
    DeletedCase,
    FeedbackBody,
    FeedbackResponse,
    LogList,
    LogReadiness,
    QualityBody,
    StatsResponse,
    SuggestBody,
    SuggestResponse,
)

router = APIRouter(route_class=JsonRoute, tags=["cbr"])

MAX_IN_RESPONSE = 10_000
"""Cases, and interactions, of one response."""
_SUGGEST_ERRORS = failures(400, 403, 413, 415, 422, 501, 503)
_READ_ERRORS = failures(400, 403, 404, 422, 501, 503)
_LIST_ERRORS = failures(403, 422, 501, 503)
_VOTE_ERRORS = failures(400, 403, 404, 413, 415, 422, 501, 503, 507)
_CHANGE_ERRORS = failures(400, 403, 404, 409, 413, 415, 422, 501, 503, 507)


@router.post("/cbr/suggest", responses=_SUGGEST_ERRORS, dependencies=READ)
async def suggest(request: Request, body: SuggestBody) -> SuggestResponse:
    """The cases whose questions are most similar, best first."""
    app = app_of(request)
    async with app.run.admission.case():
        suggestions = await app.cases.suggest(
            body.query,
            body.category_path,
            body.k,
            method=SimilarityMethod(body.similarity_method),
            min_quality=body.min_quality_score,
            prefix=body.include_subcategories,
            caller=caller_of(request),
        )
    add_subjects(request, (case.case_id for case, _ in suggestions.cases))
    return SuggestResponse.of(body, suggestions)


@router.post("/cbr/feedback", responses=_VOTE_ERRORS, dependencies=READ)
async def feedback(request: Request, body: FeedbackBody) -> FeedbackResponse:
    """A vote on a case that was suggested to you; another vote on it in the same interaction replaces the first."""
    app = app_of(request)
    async with app.run.admission.case():
        case = await app.cases.feedback(
            body.log_id, body.case_id, FeedbackType(body.feedback), success=body.success, caller=caller_of(request)
        )
    add_subjects(request, [case.case_id])
    return FeedbackResponse(
        status="success",
        log_id=body.log_id,
        case_id=case.case_id,
        feedback=body.feedback,
        quality_score=case.quality_score,
        usage_count=case.usage_count,
        success_rate=case.success_rate,
        message="The feedback was stored.",
    )


@router.post("/cbr/case", responses=_CHANGE_ERRORS, dependencies=WRITE)
async def add(request: Request, body: CaseBody) -> AddedCase:
    """Add a case. The passages that it cites must be in your scope."""
    case = await app_of(request).cases.add(**body.model_dump(), caller=caller_of(request))
    add_subjects(request, [case.case_id])
    notes = notes_on(case)
    return extended(AddedCase, case, notes=tuple(map(str, notes)), note_statements=notes)


@router.get("/cbr/cases", responses=_LIST_ERRORS, dependencies=READ)
async def cases(
    request: Request,
    *,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Maximum number of entries.")] = 100,
    after: Annotated[str | None, Query(max_length=200, description="`next` of the page before.")] = None,
    status: Annotated[Literal["active", "archived"] | None, Query(description="Only cases of this status.")] = None,
    stale: Annotated[
        bool | None, Query(description="Only cases with passages that changed or are gone, or only the others.")
    ] = None,
) -> CasePage:
    """The cases in your scope, by id. A filtered page may be short although there is a next one."""
    page = await app_of(request).cases.page(limit, after, status=status, stale=stale, caller=caller_of(request))
    add_subjects(request, (row.case_id for row in page.cases))
    return page


@router.get("/cbr/cases/{case_id}", responses=_READ_ERRORS, dependencies=READ)
async def case(request: Request, case_id: str) -> Case:
    """One case."""
    stored = await app_of(request).cases.get(case_id, caller=caller_of(request))
    add_subjects(request, [stored.case_id])
    return stored


@router.put("/cbr/cases/{case_id}", responses=_CHANGE_ERRORS, dependencies=WRITE)
async def change(request: Request, case_id: str, body: CaseChangeBody) -> ChangedCase:
    """Replace fields of a case; null leaves a field unchanged."""
    values = body.model_dump(exclude_none=True)
    _, changed = await app_of(request).cases.change(case_id, **values, caller=caller_of(request))
    add_subjects(request, [changed.case_id])
    return ChangedCase(
        status="success",
        case_id=changed.case_id,
        message="The case was changed.",
        updated_fields=list(values),
        updated_at=changed.updated_at.isoformat(),
    )


@router.delete("/cbr/cases/{case_id}", responses=_READ_ERRORS, dependencies=WRITE)
async def delete(request: Request, case_id: str) -> DeletedCase:
    """Delete a case, with its votes and the interactions that name only it."""
    await app_of(request).cases.delete(case_id, caller=caller_of(request))
    add_subjects(request, [case_id])
    return DeletedCase(
        status="success",
        case_id=case_id,
        message="The case and the interactions that name only it were deleted.",
        deleted_at=_now(),
    )


@router.put("/cbr/cases/{case_id}/quality", responses=_CHANGE_ERRORS, dependencies=WRITE)
async def quality(request: Request, case_id: str, body: QualityBody) -> ChangedQuality:
    """Set the quality of a case."""
    before, after = await app_of(request).cases.change(
        case_id, quality_score=body.quality_score, caller=caller_of(request)
    )
    add_subjects(request, [after.case_id])
    return ChangedQuality(
        status="success",
        case_id=after.case_id,
        quality_score=after.quality_score,
        previous_quality_score=before.quality_score,
        message="The quality was changed.",
        updated_at=after.updated_at.isoformat(),
    )


@router.get("/cbr/stats", responses=failures(403, 501, 503), dependencies=READ)
async def stats(request: Request) -> StatsResponse:
    """Figures over the cases and interactions in your scope."""
    app, caller = app_of(request), caller_of(request)
    await app.retention.flush()
    statistics = await app.cases.statistics(caller=caller)
    return StatsResponse.of(statistics, await app.reuse.evidence_for(caller.access), _now())


@router.get("/cbr/logs", responses=_LIST_ERRORS, dependencies=ADMIN)
async def logs(
    request: Request,
    *,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Maximum number of entries.")] = 100,
    success_only: Annotated[bool, Query(description="Only interactions that ended with success.")] = False,
) -> LogList:
    """The newest interactions of all callers whose category and cases are all in your scope."""
    memory, caller = app_of(request).cases, caller_of(request)
    await app_of(request).retention.flush()
    newest = await memory.logs(limit, success_only=success_only, caller=caller)
    readiness = Readiness.of(await memory.statistics(caller=caller))
    add_subjects(request, (log.log_id for log in newest))
    return LogList(
        logs=list(newest),
        total_count=len(newest),
        neural_selector_readiness=LogReadiness(
            sufficient_data=readiness.sufficient,
            training_ready=readiness.successes >= LEAST_INTERACTIONS * LEAST_SUCCESS,
        ),
    )


@router.get("/cbr/export", response_model=CaseExport, responses=_LIST_ERRORS, dependencies=ADMIN)
async def export(
    request: Request,
    limit: Annotated[
        int, Query(ge=1, le=MAX_IN_RESPONSE, description="Maximum number of cases, and of interactions.")
    ] = MAX_IN_RESPONSE,
) -> Response:
    """Cases and interactions of your scope, as training data. `dtrag cbr export` exports more than 10,000."""
    await app_of(request).retention.flush()
    exported = await app_of(request).cases.export(limit, caller=caller_of(request))
    text = await asyncio.to_thread(lambda: json.dumps(plain(exported), ensure_ascii=False, separators=(",", ":")))
    return Response(text, media_type="application/json")


def _now() -> str:
    return datetime.now(UTC).isoformat()
