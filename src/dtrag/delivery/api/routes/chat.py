"""`POST /chat/run` and `POST /chat/stream`: questions in conversations, answered as one response or as events.

`POST /chat/feedback`: what the caller thinks of an answer.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from dtrag.core.answer_feedback import MAX_REASON
from dtrag.delivery.api.audited import add_subjects
from dtrag.delivery.api.chat_turn import (
    ChatTurn,
    add_turn_subjects,
    answer_turn,
    note_streamed_answer,
    prepare_turn,
)
from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.delivery.api.permissions import READ, caller_of
from dtrag.delivery.api.request_tasks import until_gone
from dtrag.delivery.api.routing import JsonRoute, failures
from dtrag.delivery.api.schemas.chat import ChatRequest, ChatResponse
from dtrag.delivery.api.schemas.search import RequestBody, Text
from dtrag.delivery.api.sse import EVENT_STREAM, EventFeed, EventStream, answer_events
from dtrag.pipeline.answer_feedback import FeedbackOutcome
from dtrag.pipeline.state import PipelineResponse

router = APIRouter(route_class=JsonRoute, tags=["chat"])
_FAILURES = failures(400, 403, 404, 413, 415, 422, 503)
_EVENTS = """Server-sent events: `step` when a step ends, `token` for pieces of the text as a model writes them,
`replace` when the text so far is not the answer, `answered_before` and `offered` with earlier questions, `citations`,
and finally one `done` with the body of /chat/run, or one `error` with that of an error response."""


class AnswerFeedbackBody(RequestBody):
    """Feedback on an answer: `rating` or `thumbs`; limits are checked when it is stored."""

    trace_id: Text = Field(description="The trace_id of the answer.", examples=["8f14e45f-ceea-467f-a8d4-3f1b2c6d7e80"])
    rating: Annotated[
        int | None,
        Field(json_schema_extra={"minimum": 1, "maximum": 5}, description="4 and 5 are up, 1 and 2 down, 3 neither."),
    ] = None
    thumbs: Annotated[
        Text | None,
        Field(json_schema_extra={"enum": ["up", "down", None]}, description="Instead of rating: up or down."),
    ] = None
    reason: Annotated[
        Text | None, Field(json_schema_extra={"maxLength": MAX_REASON}, description="Why, for administrators.")
    ] = None


@router.post("/chat/run", responses=_FAILURES, dependencies=READ)
async def run(request: Request, body: ChatRequest) -> ChatResponse:
    """The answer with its sources, or that the documents do not answer."""
    turn = await _turn(request, body)
    answer = await until_gone(request, service_of(request).in_flight, answer_turn(app_of(request), turn))
    add_turn_subjects(request, turn, answer)
    return ChatResponse.of(turn, answer)


@router.post(
    "/chat/stream",
    response_class=Response,
    responses={
        **_FAILURES,
        200: {"description": _EVENTS, "content": {EVENT_STREAM: {}}},
    },
    dependencies=READ,
)
async def stream(request: Request, body: ChatRequest) -> Response:
    """The same answer as events while it is generated. A failure before the first event has the status of /chat/run."""
    turn = await _turn(request, body)
    add_turn_subjects(request, turn)
    feed = EventFeed(service_of(request).in_flight, partial(answer_turn, app_of(request), turn))
    await feed.wait_for_first(request)

    async def done(answer: PipelineResponse) -> dict[str, Any]:
        await note_streamed_answer(request, turn.caller, answer)
        return ChatResponse.of(turn, answer).model_dump(mode="json", by_alias=True)

    return EventStream(answer_events(feed, done), feed.close)


@router.post("/chat/feedback", responses=failures(400, 403, 404, 413, 415, 422, 503, 507), dependencies=READ)
async def feedback(request: Request, body: AnswerFeedbackBody) -> FeedbackOutcome:
    """Stores your feedback on an answer to your question; sent again, it replaces the earlier one."""
    outcome = await app_of(request).feedback.give(
        body.trace_id, rating=body.rating, thumbs=body.thumbs, reason=body.reason, caller=caller_of(request)
    )
    add_subjects(request, [outcome.trace_id])
    return outcome


async def _turn(request: Request, body: ChatRequest) -> ChatTurn:
    agent_id = body.agent()
    agent = await app_of(request).agents.get(agent_id, caller=caller_of(request)) if agent_id else None
    return await prepare_turn(
        request,
        body.question(),
        agent=agent,
        filters=body.filters(),
        options=body.options(),
        history=body.history(),
        conversation=body.conversation_id,
    )
