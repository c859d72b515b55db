"""`/v1`: the same answers for clients of the OpenAI protocol. `dtrag` is all that one may see, and agents are models.

The protocol has no way to take back what was sent. A stream therefore begins to tell the text when it has been checked,
with comments meanwhile that keep the connection open.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from fastapi import APIRouter, Depends, Request

from dtrag.core.agent import Agent
from dtrag.delivery.api.chat_turn import Given, Turn, answered, name_subjects, note_streamed, turn_of
from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.delivery.api.json_body import JsonRoute
from dtrag.delivery.api.middleware.audit import add_subjects
from dtrag.delivery.api.permissions import caller_of, needs
from dtrag.delivery.api.request_tasks import until_gone
from dtrag.delivery.api.schemas.common import CitationShape
from dtrag.delivery.api.schemas.errors import Failures
from dtrag.delivery.api.schemas.openai import (
    AssistantMessage,
    Choice,
    Completion,
    CompletionRequest,
    ModelList,
    ModelShape,
    OpenAIFailure,
    UsageShape,
    pieces,
)
from dtrag.delivery.api.sse import BEAT, EventStream, Feed, data_line, failure_of
from dtrag.errors import InvalidInput, NotFound
from dtrag.governance.agents import MAX_LIMIT

router = APIRouter(tags=["openai"])
posting = APIRouter(route_class=JsonRoute, tags=["openai"])
EVERYTHING = "dtrag"
AGENT = "agent:"
READ = [Depends(needs("read"))]
_MEANING = {
    400: "The input is not valid, or asks for what cannot be done.",
    403: "Your key does not allow it.",
    404: "There is no such model that you may see.",
    413: "The body is too large.",
    415: "The body has another media type.",
    422: "Never: what is not valid is answered with 400 here.",
    503: "The database is away, or the service has as much work as it can take.",
}


def _failures(*statuses: int) -> Failures:
    return {status: {"model": OpenAIFailure, "description": _MEANING[status]} for status in statuses}


@router.get("/v1/models", responses=_failures(503), dependencies=READ)
async def models(request: Request) -> ModelList:
    """What there is to ask: `dtrag`, and the agents whose branches lie in your own."""
    agents = await _agents(request)
    add_subjects(request, [str(agent.agent_id) for agent in agents])
    return ModelList(data=[_EVERYTHING, *(_shape(agent, agents) for agent in agents)])


@router.get("/v1/models/{model:path}", responses=_failures(400, 404, 422, 503), dependencies=READ)
async def model(request: Request, model: str) -> ModelShape:
    """One of them, by its id or as `agent:` and the agent's name."""
    agent = await _agent(request, model)
    if agent is None:
        return _EVERYTHING
    add_subjects(request, [str(agent.agent_id)])
    return _shape(agent, await _agents(request))


@posting.post(
    "/v1/chat/completions",
    response_model=Completion,
    responses={
        **_failures(400, 403, 404, 413, 415, 422, 503),
        200: {"content": {"text/event-stream": {}}},
    },
    dependencies=READ,
)
async def complete(request: Request, asked: CompletionRequest) -> Any:
    """The answer to the last message, with citations as [n] in the text and in `citations` of the message."""
    asked.check()
    turn = await turn_of(
        request,
        asked.question(),
        agent=await _agent(request, asked.model),
        history=asked.history(),
        kept=False,
    )
    if not asked.stream:
        given = await until_gone(request, service_of(request).in_flight, answered(app_of(request), turn))
        name_subjects(request, turn, given)
        return _completion(asked, given)
    name_subjects(request, turn)
    feed = Feed(service_of(request).in_flight, partial(answered, app_of(request), turn))
    await feed.begun(request)
    return EventStream(_chunks(request, asked, turn, feed), feed.close)


def _completion(asked: CompletionRequest, given: Given) -> Completion:
    found = given.response
    message = AssistantMessage(content=found.answer, citations=_citations(given))
    return Completion(
        id=f"chatcmpl-{found.trace_id}",
        created=int(time.time()),
        model=asked.model,
        choices=[Choice(message=message)],
        usage=_usage(given),
        confidence=found.confidence,
        decision=found.decision,
        degraded=list(found.degraded),
    )


async def _chunks(request: Request, asked: CompletionRequest, turn: Turn, feed: Feed[Given]) -> AsyncIterator[bytes]:
    yield BEAT
    async for told in feed.told():
        if told is None:
            yield BEAT
    failed = failure_of(feed)
    if failed is not None:
        yield data_line({"error": failed["error"]})
        return
    given = feed.result()
    await note_streamed(request, turn, given)
    head = {
        "id": f"chatcmpl-{given.response.trace_id}",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": asked.model,
    }
    counted = asked.stream_options is not None and asked.stream_options.include_usage is True
    extra = {"usage": None} if counted else {}
    yield data_line(head | extra | {"choices": [_delta({"role": "assistant", "content": ""})]})
    for piece in pieces(given.response.answer):
        yield data_line(head | extra | {"choices": [_delta({"content": piece})]})
    citations = [citation.model_dump() for citation in _citations(given)]
    yield data_line(head | extra | {"choices": [_delta({"citations": citations}, "stop")]})
    if counted:
        yield data_line(head | {"choices": [], "usage": _usage(given).model_dump()})
    yield data_line("[DONE]")


def _delta(delta: dict[str, Any], finished: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finished}


def _citations(given: Given) -> list[CitationShape]:
    return [CitationShape.model_validate(citation) for citation in given.response.citations]


def _usage(given: Given) -> UsageShape:
    used = given.response.usage
    return UsageShape(prompt_tokens=used.input_tokens, completion_tokens=used.output_tokens, total_tokens=used.tokens)


_EVERYTHING = ModelShape(id=EVERYTHING, created=0, owned_by="dtrag")


def _shape(agent: Agent, agents: list[Agent]) -> ModelShape:
    """The agent by its name; by its id where the name is that of others, too."""
    alone = sum(other.name == agent.name for other in agents) == 1
    called = agent.name if alone else str(agent.agent_id)
    return ModelShape(id=AGENT + called, created=int(agent.created_at.timestamp()), owned_by=agent.created_by)


async def _agents(request: Request) -> list[Agent]:
    found, _ = await app_of(request).agents.every(MAX_LIMIT, caller=caller_of(request))
    return found


async def _agent(request: Request, model: str) -> Agent | None:
    """The agent that the model names; None for the whole scope. Raises `NotFound`, `InvalidInput` for two of a name."""
    if model == EVERYTHING:
        return None
    if not model.startswith(AGENT):
        raise _no_model(model)
    called = model.removeprefix(AGENT)
    try:
        return await app_of(request).agents.get(called, caller=caller_of(request))
    except NotFound:
        named = [agent for agent in await _agents(request) if agent.name == called]
    if not named:
        raise _no_model(model)
    if len(named) > 1:
        raise InvalidInput("Several agents have this name: ask by id. GET /v1/models lists the ids.")
    return named[0]


def _no_model(model: str) -> NotFound:
    return NotFound(f"There is no model {model[:60]!r} that you may see. GET /v1/models lists what there is.")


router.include_router(posting)
