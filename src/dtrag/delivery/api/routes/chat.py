"""`POST /chat/run` and `POST /chat/stream`: questions in conversations, answered at once or told while it happens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

from fastapi import APIRouter, Depends, Request, Response

from dtrag.delivery.api.chat_turn import Given, Turn, answered, name_subjects, note_streamed, turn_of
from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.delivery.api.json_body import JsonRoute
from dtrag.delivery.api.permissions import caller_of, needs
from dtrag.delivery.api.request_tasks import until_gone
from dtrag.delivery.api.schemas.chat import ChatRequest, ChatResponse
from dtrag.delivery.api.schemas.errors import failures
from dtrag.delivery.api.sse import BEAT, EventStream, Feed, event, failure_of

router = APIRouter(route_class=JsonRoute, tags=["chat"])
_FAILURES = failures(400, 403, 404, 413, 415, 422, 503)
_EVENTS = """Server-sent events: `step` for each step that ends, `token` for pieces of the text as a model writes them,
`replace` when the text so far is not the answer, `citations`, and at last one `done` with the body of /chat/run, or one
`error` with that of a failure."""


@router.post("/chat/run", responses=_FAILURES, dependencies=[Depends(needs("read"))])
async def run(request: Request, asked: ChatRequest) -> ChatResponse:
    """The answer with its sources; or that the documents do not answer."""
    turn = await _turn(request, asked)
    given = await until_gone(request, service_of(request).in_flight, answered(app_of(request), turn))
    name_subjects(request, turn, given)
    return ChatResponse.of(turn, given)


@router.post(
    "/chat/stream",
    response_class=Response,
    responses={
        **_FAILURES,
        200: {"description": _EVENTS, "content": {"text/event-stream": {}}},
    },
    dependencies=[Depends(needs("read"))],
)
async def stream(request: Request, asked: ChatRequest) -> Response:
    """The same answer, told while it is made. What fails before the first event has the status of /chat/run."""
    turn = await _turn(request, asked)
    name_subjects(request, turn)
    feed = Feed(service_of(request).in_flight, partial(answered, app_of(request), turn))
    await feed.begun(request)
    return EventStream(_events(request, turn, feed), feed.close)


async def _turn(request: Request, asked: ChatRequest) -> Turn:
    agent_id = asked.agent()
    agent = await app_of(request).agents.get(agent_id, caller=caller_of(request)) if agent_id else None
    return await turn_of(
        request,
        asked.question(),
        agent=agent,
        filters=asked.filters(),
        options=asked.options(),
        history=asked.history(),
        conversation=asked.conversation_id,
    )


async def _events(request: Request, turn: Turn, feed: Feed[Given]) -> AsyncIterator[bytes]:
    shown = ""
    async for told in feed.told():
        yield BEAT if told is None else event(*told)
        if told is not None and told[0] in {"token", "replace"}:
            shown = told[1]["text"] if told[0] == "replace" else shown + told[1]["text"]
    failed = failure_of(feed)
    if failed is not None:
        yield event("error", failed)
        return
    given = feed.result()
    await note_streamed(request, turn, given)
    if shown != given.response.answer:
        yield event("replace", {"text": given.response.answer})
    yield event("done", ChatResponse.of(turn, given).model_dump())
