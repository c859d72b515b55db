"""`/traces`: how answers were produced: each step's time and budget, and the model calls."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import AfterValidator, BaseModel, Field

from dtrag.core.trace import Trace
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.middleware.audit import add_subjects
from dtrag.delivery.api.permissions import READ, caller_of
from dtrag.delivery.api.schemas.errors import failures
from dtrag.pipeline.traces import MAX_LISTED

router = APIRouter(tags=["traces"])
FourDigits = Annotated[float, AfterValidator(lambda value: round(value, 4))]


class StepShape(BaseModel):
    """One step of a run."""

    name: str = Field(description="The step.")
    seconds: float = Field(description="Its duration in seconds.")
    budget: float = Field(description="Its time budget in seconds.")
    outcome: str = Field(description="done, skipped, timeout or failed.")
    facts: dict[str, object] = Field(description="Details, such as numbers of candidates before and after.")
    started: float | None = Field(description="Seconds since the run began; null in traces of earlier versions.")


class CallShape(BaseModel):
    """One call of a language model."""

    step: str = Field(description="The calling step.")
    model: str = Field(description="The model.")
    seconds: float = Field(description="Its duration in seconds.")
    input_tokens: int = Field(description="Input tokens.")
    output_tokens: int = Field(description="Output tokens.")
    cost: float = Field(description="Cost in won; 0 for a model without a known price.")
    error: str = Field(description="The error; empty on success.")
    prompt: str = Field(description="The prompt; empty unless texts are stored.")
    reply: str = Field(description="The reply; empty unless texts are stored.")
    started: float | None = Field(description="Seconds since the run began; null in traces of earlier versions.")


class TraceLine(BaseModel):
    """A trace in the list."""

    trace_id: str = Field(description="Its id.")
    created_at: str = Field(description="When the answer was given, ISO 8601 in UTC.")
    question: str = Field(description="The question; empty unless texts are stored.")
    decision: str = Field(description="answer, review or abstain.")
    confidence: FourDigits = Field(description="Confidence in [0, 1].")
    seconds: FourDigits = Field(description="Total duration in seconds.")
    degraded: list[str] = Field(description="Parts that failed and were left out.")
    model_calls: int = Field(description="Number of language model calls.")

    @classmethod
    def of(cls, trace: Trace) -> TraceLine:
        """The list entry of a trace."""
        return cls.model_validate({**trace.as_dict(), "model_calls": len(trace.calls)})


class TraceShape(BaseModel):
    """How an answer was produced."""

    trace_id: str = Field(description="Its id.")
    created_at: str = Field(description="When the answer was given, ISO 8601 in UTC.")
    question: str = Field(description="The question; empty unless texts are stored.")
    answer: str = Field(description="The answer; empty unless texts are stored.")
    decision: str = Field(description="answer, review or abstain.")
    confidence: FourDigits = Field(description="Confidence in [0, 1].")
    taxonomy_version: str = Field(description="The version of the category tree.")
    seconds: FourDigits = Field(description="Total duration in seconds.")
    degraded: list[str] = Field(description="Parts that failed and were left out.")
    document_ids: list[str] = Field(description="The documents used for the answer.")
    titles: dict[str, str] = Field(description="Their titles by id; without documents that were deleted.")
    steps: list[StepShape] = Field(description="The steps in order of execution.")
    calls: list[CallShape] = Field(description="The language model calls, in order.")
    debate: dict[str, object] | None = Field(description="The debate: its numbers, and its texts if they are stored.")


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
    return TraceShape.model_validate({**stored.as_dict(), "titles": await traces.titles([stored], caller=caller)})
