"""`/conversations`: stored questions and answers of the caller; `/traces`: how answers were produced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field, PlainSerializer

from dtrag.core.answer_bundle import Bundle
from dtrag.core.answer_feedback import AnswerFeedback
from dtrag.core.answers.replay import Replay
from dtrag.core.conversation import MAX_TITLE, Conversation, Turn
from dtrag.core.response import Moment, extended, response
from dtrag.core.trace import Trace, TracedPassage
from dtrag.delivery.api.audited import add_subjects
from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.delivery.api.permissions import READ, caller_of, refuse_bypass
from dtrag.delivery.api.request_tasks import until_gone
from dtrag.delivery.api.routing import Filters, JsonRoute, Offset, Page, RequestBody, StrictBody, Text, Time, failures
from dtrag.pipeline.conversations import MAX_LISTED
from dtrag.pipeline.traces import MAX_LISTED as MAX_TRACES
from dtrag.retrieval.request import MAX_QUERY

router = APIRouter(route_class=JsonRoute, tags=["conversations"], dependencies=READ)


class TurnShape(BaseModel):
    """A question with its answer, and what the caller said of it."""

    number: int = Field(description="Counts from 1 in the conversation.")
    question: str = Field(description="The question.")
    answer: str = Field(description="The answer; empty when it is withheld.")
    withheld: bool = Field(description="Whether the answer rests on documents that you may no longer see.")
    trace_id: str | None = Field(description="The id of the answer's trace; null when unknown or withheld.")
    feedback: str | None = Field(description="Your own: thumbs_up, thumbs_down, ignored; null without feedback.")
    feedback_reason: str = Field(description="The reason that you gave with it; empty without one.")
    created_at: Moment = Field(description="When it was answered.")

    @classmethod
    def of(cls, turn: Turn, feedback: AnswerFeedback | None) -> TurnShape:
        """The turn with the caller's own feedback."""
        return cls.model_validate(
            {
                "number": turn.number,
                "question": turn.question,
                "answer": turn.answer,
                "withheld": turn.withheld,
                "trace_id": str(turn.trace_id) if turn.trace_id else None,
                "feedback": feedback.feedback.value if feedback else None,
                "feedback_reason": feedback.reason if feedback else "",
                "created_at": turn.created_at,
            }
        )


class ConversationList(Page):
    """A page of your conversations, the newest first."""

    conversations: list[Conversation] = Field(description="The conversations of this page.")


class TitleBody(StrictBody):
    """The name of a conversation."""

    title: Text = Field(max_length=MAX_TITLE, description="Its name; empty to show its first question again.")


class ConversationResponse(BaseModel):
    """A conversation with its turns."""

    conversation: Conversation = Field(description="Its dates and number of turns.")
    messages: list[TurnShape] = Field(description="The stored questions with their answers, oldest first.")


@router.get("/conversations", responses=failures(403, 422, 503))
async def conversations(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED, description="Maximum number of entries.")] = 100,
    offset: Offset = 0,
    q: Annotated[
        str, Query(max_length=MAX_TITLE, description="Text in the title or in a question, in any case; all without it.")
    ] = "",
) -> ConversationList:
    """Your conversations, the newest first."""
    page, total = await app_of(request).conversations.every(limit, offset, text=q, caller=caller_of(request))
    return ConversationList(conversations=page, total=total, limit=limit, offset=offset)


@router.get("/conversations/{conversation_id}", responses=failures(403, 404, 422, 503))
async def conversation(request: Request, conversation_id: str) -> ConversationResponse:
    """One of your conversations. Answers that rest on documents that you may no longer see are withheld."""
    stored, turns = await app_of(request).conversations.get(conversation_id, caller=caller_of(request))
    add_subjects(request, [stored.conversation_id])
    trace_ids = [turn.trace_id for turn in turns if turn.trace_id]
    feedback = await app_of(request).feedback.given(trace_ids, caller=caller_of(request))
    return ConversationResponse(
        conversation=stored,
        messages=[TurnShape.of(turn, feedback.get(turn.trace_id) if turn.trace_id else None) for turn in turns],
    )


@router.put(
    "/conversations/{conversation_id}",
    status_code=204,
    responses=failures(400, 403, 404, 413, 415, 422, 503),
)
async def rename_conversation(request: Request, conversation_id: str, body: TitleBody) -> Response:
    """Name one of your conversations."""
    app = app_of(request)
    title = app.personal_data.masked(body.title)
    await app.conversations.rename(conversation_id, title, caller=caller_of(request))
    add_subjects(request, [conversation_id])
    return Response(status_code=204)


@router.delete("/conversations/{conversation_id}", status_code=204, responses=failures(403, 404, 422, 503))
async def delete_conversation(request: Request, conversation_id: str) -> Response:
    """Delete one of your conversations with everything stored of it."""
    await app_of(request).conversations.delete(conversation_id, caller=caller_of(request))
    add_subjects(request, [conversation_id])
    return Response(status_code=204)


trace_router = APIRouter(route_class=JsonRoute, tags=["traces"])
FourDigits = Annotated[float, PlainSerializer(lambda value: round(value, 4), return_type=float)]


class TraceLine(BaseModel):
    """A trace in the list."""

    trace_id: UUID = Field(description="Its id.")
    created_at: Moment = Field(description="When the answer was given, ISO 8601 in UTC.")
    question: str = Field(description="The question; empty unless texts are stored.")
    titles: tuple[str | None, ...] = Field(
        description="Titles of the documents that the answer cites; null for one that is not there any more."
    )
    decision: str = Field(description="answer, review or abstain.")
    confidence: FourDigits = Field(description="Confidence in [0, 1].")
    seconds: FourDigits = Field(description="Total duration in seconds.")
    degraded: tuple[str, ...] = Field(description="Parts that failed and were left out.")
    model_calls: int = Field(description="Number of language model calls.")

    @classmethod
    def of(cls, trace: Trace, titles: Mapping[str, str]) -> TraceLine:
        """The list entry of a trace."""
        names = cls.model_fields.keys() - {"model_calls", "titles"}
        cited = tuple(map(titles.get, trace.cited_documents))
        return cls(**{name: getattr(trace, name) for name in names}, titles=cited, model_calls=len(trace.calls))


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
    passages: tuple[TracedPassage, ...]
    """The passages that the answer used, in their order."""


class TraceList(BaseModel):
    """The newest traces that you may see, the newest first."""

    traces: list[TraceLine] = Field(description="The traces.")


@trace_router.get("/traces", responses=failures(403, 422, 503), dependencies=READ)
async def traces(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_TRACES, description="Maximum number of entries.")] = 20,
    since: Annotated[Time | None, Query(description="Only traces since this time (UTC if it has no zone).")] = None,
    until: Annotated[Time | None, Query(description="Only traces before this time (UTC if it has no zone).")] = None,
) -> TraceList:
    """The newest traces: your own; with an unscoped administrator's key all traces."""
    traces, caller = app_of(request).traces, caller_of(request)
    newest = await traces.newest(limit, since=since, until=until, caller=caller)
    titles = await traces.titles((key for trace in newest for key in trace.cited_documents), caller=caller)
    return TraceList(traces=[TraceLine.of(trace, titles) for trace in newest])


@trace_router.get("/traces/{trace_id}", responses=failures(403, 404, 422, 503), dependencies=READ)
async def trace(request: Request, trace_id: str) -> TraceShape:
    """One trace, if you may see every document used for the answer."""
    traces, caller = app_of(request).traces, caller_of(request)
    stored = await traces.get(trace_id, caller=caller)
    add_subjects(request, [str(stored.trace_id), *stored.document_ids])
    titles = await traces.titles(stored.document_ids, caller=caller)
    return extended(TraceShape, stored, titles=titles, passages=await traces.passages(stored, caller=caller))


_REPLAY_FAILURES = failures(400, 403, 404, 409, 413, 415, 422, 503)


class ReplayBody(RequestBody):
    """What the trace has not kept of its question."""

    question: Text | None = Field(
        default=None,
        json_schema_extra={"maxLength": MAX_QUERY},
        description="The question as it was asked; not needed where the trace has its text.",
    )
    filters: Filters = None


@trace_router.post("/traces/{trace_id}/replay", responses=_REPLAY_FAILURES, dependencies=READ)
async def replay(request: Request, trace_id: str, body: ReplayBody) -> Replay:
    """Answers the question of the trace again, in the categories and from the texts of then as far as they exist, and
    says what is the same, what differs and what has changed since."""
    caller = caller_of(request)
    await refuse_bypass(request, body.filters, caller)
    work = app_of(request).replays.replay(trace_id, question=body.question, filters=body.filters, caller=caller)
    replayed = await until_gone(request, service_of(request).in_flight, work)
    add_subjects(request, [replayed.trace_id])
    return replayed


@trace_router.post(
    "/traces/{trace_id}/bundle",
    response_model=Bundle,
    responses={**_REPLAY_FAILURES, **failures(501)},
    dependencies=READ,
)
async def bundle(request: Request, trace_id: str, body: ReplayBody) -> Response:
    """The answer with its evidence as one signed file, for `dtrag verify`; texts that are not kept are left out."""
    caller = caller_of(request)
    await refuse_bypass(request, body.filters, caller)
    work = app_of(request).replays.bundle(trace_id, question=body.question, filters=body.filters, caller=caller)
    exported = await until_gone(request, service_of(request).in_flight, work)
    add_subjects(request, [str(exported.payload["trace_id"])])
    return Response(exported.written(), media_type="application/json")
