"""`/traces`: how answers were produced: each step's time and budget, and the model calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field, PlainSerializer

from dtrag.core.response import Moment, response
from dtrag.core.trace import Trace
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.middleware.audit import add_subjects
from dtrag.delivery.api.permissions import READ, caller_of
from dtrag.delivery.api.routing import extended, failures
from dtrag.pipeline.traces import MAX_LISTED

router = APIRouter(tags=["traces"])
FourDigits = Annotated[float, PlainSerializer(lambda value: round(value, 4), return_type=float)]


class TraceLine(BaseModel):
    """A trace in the list."""

    trace_id: UUID = Field(description="Its id.")
    created_at: Moment = Field(description="When the answer was given, ISO 8601 in UTC.")
    question: str = Field(description="The question; empty unless texts are stored.")
    decision: str = Field(description="answer, review or abstain.")
    confidence: FourDigits = Field(description="Confidence in [0, 1].")
    seconds: FourDigits = Field(description="Total duration in seconds.")
    degraded: tuple[str, ...] = Field(description="Parts that failed and were left out.")
    model_calls: int = Field(description="Number of language model calls.")

    @classmethod
    def of(cls, trace: Trace) -> TraceLine:
        """The list entry of a trace."""
        names = cls.model_fields.keys() - {"model_calls"}
        return cls(**{name: getattr(trace, name) for name in names}, model_calls=len(trace.calls))


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceShape(Trace):
    """How an answer was produced."""

    __pydantic_config__ = response()

    created_at: Moment
    """When the answer was given, ISO 8601 in UTC."""
    confidence: FourDigits
    """Confidence in [0, 1]."""
    seconds: FourDigits
    """Total duration in seconds."""
    titles: dict[str, str]
    """Their titles by id; without documents that were deleted."""


class TraceList(BaseModel):
    """The newest traces that you may see, the newest first."""

    traces: list[TraceLine] = Field(description="The traces.")


@router.get("/traces", responses=failures(403, 422, 503), dependencies=READ)
async def traces(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED, description="Maximum number of entries.")] = 20,
) -> TraceList:
    """The newest traces: your own; with an unscoped administrator's key all traces."""
    newest = await app_of(request).traces.newest(limit, caller=caller_of(request))
    return TraceList(traces=[TraceLine.of(trace) for trace in newest])


@router.get("/traces/{trace_id}", responses=failures(403, 404, 422, 503), dependencies=READ)
async def trace(request: Request, trace_id: str) -> TraceShape:
    """One trace, if you may see every document used for the answer."""
    traces, caller = app_of(request).traces, caller_of(request)
    stored = await traces.get(trace_id, caller=caller)
    add_subjects(request, [str(stored.trace_id), *stored.document_ids])
    return extended(TraceShape, stored, titles=await traces.titles([stored], caller=caller))
