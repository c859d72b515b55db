"""`/traces`: what happened while an answer was made: each step's time against its budget, and the calls of models."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, Field

from dtrag.core.trace import Trace
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.middleware.audit import add_subjects
from dtrag.delivery.api.permissions import caller_of, needs
from dtrag.delivery.api.schemas.errors import failures
from dtrag.pipeline.traces import MAX_LISTED

router = APIRouter(tags=["traces"])


class StepShape(BaseModel):
    """One step of a run."""

    name: str = Field(description="Which step.")
    seconds: float = Field(description="How long it took.")
    budget: float = Field(description="How long it might take, in seconds.")
    outcome: str = Field(description="done, skipped, timeout or failed.")
    facts: dict[str, Any] = Field(description="What it did, such as numbers of candidates before and after.")


class CallShape(BaseModel):
    """One call of a language model."""

    step: str = Field(description="The step that called.")
    model: str = Field(description="Which model.")
    seconds: float = Field(description="How long it took.")
    input_tokens: int = Field(description="Tokens that were sent.")
    output_tokens: int = Field(description="Tokens that came back.")
    cost: float = Field(description="What it cost, in won; 0 for a model without a known price.")
    error: str = Field(description="Why it gave no answer; empty when it did.")
    prompt: str = Field(description="What was sent; empty unless the service keeps texts.")
    reply: str = Field(description="What came back; empty unless the service keeps texts.")


class TraceLine(BaseModel):
    """A trace in the list."""

    trace_id: str = Field(description="Its id.")
    created_at: str = Field(description="When the answer was given, ISO 8601 in UTC.")
    question: str = Field(description="The question; empty unless the service keeps texts.")
    decision: str = Field(description="answer, review or abstain.")
    confidence: float = Field(description="How sure, in [0, 1].")
    seconds: float = Field(description="How long all of it took.")
    degraded: list[str] = Field(description="What did not work and was done without.")
    model_calls: int = Field(description="How often language models were called.")

    @classmethod
    def of(cls, trace: Trace) -> TraceLine:
        """In the shape of the list."""
        return cls(model_calls=len(trace.calls), **_common(trace))


class TraceShape(BaseModel):
    """What happened while an answer was made."""

    trace_id: str = Field(description="Its id.")
    created_at: str = Field(description="When the answer was given, ISO 8601 in UTC.")
    question: str = Field(description="The question; empty unless the service keeps texts.")
    answer: str = Field(description="The answer; empty unless the service keeps texts.")
    decision: str = Field(description="answer, review or abstain.")
    confidence: float = Field(description="How sure, in [0, 1].")
    taxonomy_version: str = Field(description="The version of the category tree.")
    seconds: float = Field(description="How long all of it took.")
    degraded: list[str] = Field(description="What did not work and was done without.")
    document_ids: list[str] = Field(description="The documents that had a part in it.")
    steps: list[StepShape] = Field(description="The steps in the order in which they ran.")
    calls: list[CallShape] = Field(description="The calls of language models, in order.")
    debate: dict[str, Any] | None = Field(description="The debate: its numbers, and its texts where they are kept.")

    @classmethod
    def of(cls, trace: Trace) -> TraceShape:
        """In the shape of the answer."""
        told = trace.as_dict()
        names = ("answer", "taxonomy_version", "document_ids", "steps", "calls", "debate")
        return cls.model_validate({**_common(trace), **{name: told[name] for name in names}})


class TraceList(BaseModel):
    """The newest traces that you may see, the newest first."""

    traces: list[TraceLine] = Field(description="The traces.")


@router.get("/traces", responses=failures(403, 422, 503), dependencies=[Depends(needs("read"))])
async def traces(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED, description="How many at most.")] = 20,
) -> TraceList:
    """The newest traces: your own, and with an administrator's key for the whole tree everybody's."""
    found = await app_of(request).traces.newest(limit, caller=caller_of(request))
    return TraceList(traces=[TraceLine.of(trace) for trace in found])


@router.get("/traces/{trace_id}", responses=failures(403, 404, 422, 503), dependencies=[Depends(needs("read"))])
async def trace(request: Request, trace_id: str) -> TraceShape:
    """One trace, as long as you may see every document that had a part in the answer."""
    found = await app_of(request).traces.get(trace_id, caller=caller_of(request))
    add_subjects(request, [str(found.trace_id), *found.document_ids])
    return TraceShape.of(found)


def _common(trace: Trace) -> dict[str, Any]:
    return {
        "trace_id": str(trace.trace_id),
        "created_at": trace.created_at.isoformat(),
        "question": trace.question,
        "decision": trace.decision,
        "confidence": round(trace.confidence, 4),
        "seconds": round(trace.seconds, 4),
        "degraded": list(trace.degraded),
    }
