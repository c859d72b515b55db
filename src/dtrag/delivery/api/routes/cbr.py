"""`/cbr`: suggestions from the case memory, feedback on them, and its cases. 501 while the memory is off.

The shapes of bodies and responses are those of the acceptance documents, with a few additions.
"""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import AliasChoices, BaseModel, Field

from dtrag.cases.case_input import MAX_PASSAGES
from dtrag.cases.memory import MAX_LIMIT
from dtrag.cases.views import AddedCase, CaseExport, CasePage, JudgedCase, Suggestions, notes_on
from dtrag.core.cases.case import DEFAULT_QUALITY, CaseLog, FeedbackType, SimilarityMethod
from dtrag.core.cases.requests import MAX_CONTENT, MAX_ID, MAX_K, MAX_QUERY, CaseSuggestion
from dtrag.core.cases.reuse_verdict import CollectionEvidence
from dtrag.core.cases.statistics import LEAST_INTERACTIONS, LEAST_SUCCESS, CaseStatistics, Readiness
from dtrag.core.response import extended, plain
from dtrag.core.taxonomy.tree import MAX_DEPTH
from dtrag.delivery.api.audited import add_subjects
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.permissions import ADMIN, READ, WRITE, caller_of
from dtrag.delivery.api.routing import JsonObject, JsonRoute, NoteStatements, StrictBody, Text, failures

router = APIRouter(route_class=JsonRoute, tags=["cbr"])

MAX_IN_RESPONSE = 10_000
"""Cases, and interactions, of one response."""
_SUGGEST_ERRORS = failures(400, 403, 413, 415, 422, 501, 503)
_READ_ERRORS = failures(400, 403, 404, 422, 501, 503)
_LIST_ERRORS = failures(403, 422, 501, 503)
_VOTE_ERRORS = failures(400, 403, 404, 413, 415, 422, 501, 503, 507)
_CHANGE_ERRORS = failures(400, 403, 404, 409, 413, 415, 422, 501, 503, 507)
TARGET_MS = 200.0
"""Longest mean time of a suggestion (AC-ORCH-004)."""
Method = Literal["cosine", "euclidean", "jaccard", "semantic"]
Feedback = Literal["thumbs_up", "thumbs_down", "selected", "ignored"]
_CATEGORY = "The category, outermost name first."
_QUALITY = "Quality in [0, 1]."


class SuggestBody(StrictBody):
    """A question to which similar cases are wanted."""

    query: Text = Field(min_length=1, max_length=MAX_QUERY, description="The question.")
    category_path: list[Text] | None = Field(
        None, max_length=MAX_DEPTH, description=f"{_CATEGORY} Only cases of exactly this category are suggested."
    )
    k: int = Field(5, ge=1, le=MAX_K, description="Maximum number of cases.")
    similarity_method: Method = Field(
        "semantic",
        description="semantic compares meaning and words where the case and the question have vectors of one embedder, "
        "else words; cosine and jaccard compare words, euclidean their counts.",
    )
    include_metadata: bool = Field(True, description="Whether the response contains the metadata of the cases.")
    min_quality_score: float = Field(0.0, ge=0, le=1, description="Cases of a lower quality are left out.")
    include_subcategories: bool = Field(False, description="Whether the branch below category_path counts, too.")


class SuggestResponse(BaseModel):
    """The most similar cases, best first."""

    suggestions: list[CaseSuggestion] = Field(description="The cases.")
    execution_time_ms: float = Field(description="Time of the comparison in milliseconds.")
    query: str = Field(description="The question.")
    k_requested: int = Field(description="The requested number of cases.")
    k_returned: int = Field(description="The number of cases of this response.")
    log_id: str | None = Field(
        description="Id of this interaction, for POST /cbr/feedback; null when the disk was too full to store it."
    )
    similarity_method: Method = Field(description="The similarity that was used.")
    notes: list[str] = Field(description="Remarks for the reader, such as why words were compared instead.")
    note_statements: NoteStatements

    @classmethod
    def of(cls, body: SuggestBody, suggestions: Suggestions) -> SuggestResponse:
        """The response for these suggestions."""
        rows = [
            CaseSuggestion.of(case, score, suggestions.method, include_metadata=body.include_metadata)
            for case, score in suggestions.cases
        ]
        return cls(
            suggestions=rows,
            execution_time_ms=suggestions.milliseconds,
            query=body.query,
            k_requested=body.k,
            k_returned=len(rows),
            log_id=suggestions.log_id,
            similarity_method=suggestions.method.value,
            notes=list(map(str, suggestions.notes)),
            note_statements=suggestions.notes,
        )


class FeedbackBody(StrictBody):
    """What a person did with a suggested case."""

    log_id: Text = Field(max_length=MAX_ID, description="The log_id of the response that suggested the case.")
    case_id: Text = Field(max_length=MAX_ID, description="The case.")
    feedback: Feedback = Field(
        validation_alias=AliasChoices("feedback", "feedback_type"),
        description="thumbs_up and selected raise the quality by .1, thumbs_down lowers it.",
    )
    success: bool | None = Field(
        None, description="Whether the case helped; counted in the success rate. Default: it is no thumbs_down."
    )


class FeedbackResponse(BaseModel):
    """The case after the vote."""

    status: Literal["success"] = Field(description="success.")
    log_id: str = Field(description="The interaction.")
    case_id: str = Field(description="The case.")
    feedback: Feedback = Field(description="The vote.")
    quality_score: float = Field(description=_QUALITY)
    usage_count: int = Field(description="Number of votes on the case.")
    success_rate: float = Field(description="Share of the votes that reported success.")
    message: str = Field(description="A confirmation.")


class CaseBody(StrictBody):
    """A new case."""

    query: Text = Field(max_length=MAX_QUERY, description="The question.", examples=["How long is parental leave?"])
    category_path: list[Text] = Field(
        max_length=MAX_DEPTH,
        description=f"{_CATEGORY} Restricted keys: one of their own categories.",
        examples=[["HR", "Leave"]],
    )
    content: Text = Field(max_length=MAX_CONTENT, description="What is shown with the case; never part of an answer.")
    quality_score: float = Field(DEFAULT_QUALITY, ge=0, le=1, description=_QUALITY)
    metadata: JsonObject = Field(default_factory=dict, description="Anything that helps to recognise the case.")
    case_id: Text | None = Field(None, max_length=MAX_ID, description="Its id; only for keys without a scope.")
    passages: list[Text] = Field(
        default_factory=list,
        max_length=MAX_PASSAGES,
        description="Ids of passages that answer the question (chunk_id of a search result).",
    )
    as_of: Text | None = Field(
        None, json_schema_extra={"format": "date"}, description="The day of the question; null: today's texts."
    )


class CaseChangeBody(StrictBody):
    """Fields of a case to replace; null leaves a field unchanged."""

    query: Text | None = Field(None, max_length=MAX_QUERY, description="The question.")
    category_path: list[Text] | None = Field(None, max_length=MAX_DEPTH, description=_CATEGORY)
    content: Text | None = Field(None, max_length=MAX_CONTENT, description="What is shown with the case.")
    quality_score: float | None = Field(None, ge=0, le=1, description=_QUALITY)
    metadata: JsonObject | None = Field(None, description="The metadata, all of them.")
    passages: list[Text] | None = Field(None, max_length=MAX_PASSAGES, description="Ids of all cited passages.")
    status: Literal["active", "archived"] | None = Field(None, description="An archived case is never suggested.")


class QualityBody(StrictBody):
    """A new quality of a case."""

    quality_score: float = Field(ge=0, le=1, description=_QUALITY)


class ChangedCase(BaseModel):
    """A change that was made."""

    status: Literal["success"] = Field(description="success.")
    case_id: str = Field(description="The case.")
    message: str = Field(description="A confirmation.")
    updated_fields: list[str] = Field(description="The names of the replaced fields.")
    updated_at: str = Field(description="ISO 8601 in UTC.")


class ChangedQuality(BaseModel):
    """A changed quality."""

    status: Literal["success"] = Field(description="success.")
    case_id: str = Field(description="The case.")
    quality_score: float = Field(description="The quality now.")
    previous_quality_score: float = Field(description="The quality before.")
    message: str = Field(description="A confirmation.")
    updated_at: str = Field(description="ISO 8601 in UTC.")


class DeletedCase(BaseModel):
    """A deleted case."""

    status: Literal["success"] = Field(description="success.")
    case_id: str = Field(description="The case.")
    message: str = Field(description="A confirmation.")
    deleted_at: str = Field(description="ISO 8601 in UTC.")


class PerformanceShape(BaseModel):
    """The speed of suggestions."""

    target_response_time_ms: float = Field(description="The goal.")
    current_avg_response_time_ms: float = Field(description="The mean time.")
    meets_target: bool = Field(description="Whether the mean time is within the goal.")


class StatsResponse(BaseModel):
    """The state of the case memory."""

    cbr_system_stats: CaseStatistics = Field(description="Figures.")
    performance: PerformanceShape = Field(description="Speed.")
    neural_selector_readiness: Readiness = Field(description="Training data.")
    reuse: CollectionEvidence = Field(description="Evidence about reuse.")
    timestamp: str = Field(description="ISO 8601 in UTC.")

    @classmethod
    def of(cls, statistics: CaseStatistics, evidence: CollectionEvidence, timestamp: str) -> StatsResponse:
        """The response for these figures."""
        mean = statistics.average_response_time_ms
        return cls(
            cbr_system_stats=statistics,
            performance=PerformanceShape(
                target_response_time_ms=TARGET_MS, current_avg_response_time_ms=mean, meets_target=mean <= TARGET_MS
            ),
            neural_selector_readiness=Readiness.of(statistics),
            reuse=evidence,
            timestamp=timestamp,
        )


class LogReadiness(BaseModel):
    """Whether there are enough good interactions for the neural selector."""

    sufficient_data: bool = Field(description="Whether there are at least 1,000 interactions.")
    training_ready: bool = Field(description="Whether at least 700 of them were successful.")


class LogList(BaseModel):
    """The newest interactions, newest first."""

    logs: list[CaseLog] = Field(description="The interactions.")
    total_count: int = Field(description="Number of interactions of this response.")
    neural_selector_readiness: LogReadiness = Field(description="Training data.")


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
async def case(request: Request, case_id: str) -> JudgedCase:
    """One case, and whether it may be shown to you as answered before."""
    app, caller = app_of(request), caller_of(request)
    stored = await app.cases.get(case_id, caller=caller)
    add_subjects(request, [stored.case_id])
    return await app.reuse.judged(stored, caller.access)


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
