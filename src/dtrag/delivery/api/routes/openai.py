"""`/v1`: the OpenAI protocol. The model `dtrag` answers from the caller's whole scope; agents are models, too.

The protocol cannot replace text that was sent. A stream therefore sends the text after it was checked, and comments
that keep the connection open until then.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial

from fastapi import APIRouter, Request
from fastapi.sse import KEEPALIVE_COMMENT
from starlette.responses import Response

from dtrag.core.agent import Agent
from dtrag.delivery.api import chat_turn
from dtrag.delivery.api.audited import add_subjects
from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.delivery.api.errors import OpenAIFailure
from dtrag.delivery.api.permissions import READ, caller_of
from dtrag.delivery.api.request_tasks import until_gone
from dtrag.delivery.api.routing import JsonRoute, failures
from dtrag.delivery.api.schemas.openai import (
    AssistantMessage,
    Choice,
    Completion,
    CompletionRequest,
    ModelList,
    ModelShape,
    UsageShape,
    pieces,
)
from dtrag.delivery.api.sse import EventFeed, EventStream, event, failure_of
from dtrag.errors import InvalidInput, NotFound
from dtrag.governance.agents import MAX_LIMIT
from dtrag.pipeline.state import PipelineResponse

router = APIRouter(route_class=JsonRoute, tags=["openai"])
WHOLE_SCOPE = "dtrag"
AGENT = "agent:"
_failures = partial(
    failures,
    model=OpenAIFailure,
    descriptions={
        400: "The input is invalid or not supported.",
        404: "No such model is visible to you.",
        422: "Not used here: invalid input is answered with 400.",
    },
)


@router.get("/v1/models", responses=_failures(503), dependencies=READ)
async def models(request: Request) -> ModelList:
    """The models: `dtrag`, and the agents whose branches are within yours."""
    agents = await _agents(request)
    add_subjects(request, [str(agent.agent_id) for agent in agents])
    return ModelList(data=[_WHOLE_SCOPE_MODEL, *(_shape(agent, agents) for agent in agents)])


@router.get("/v1/models/{model:path}", responses=_failures(400, 404, 422, 503), dependencies=READ)
async def model(request: Request, model: str) -> ModelShape:
    """One model, by its id or as `agent:` and the agent's name."""
    agent = await _agent(request, model)
    if agent is None:
        return _WHOLE_SCOPE_MODEL
    add_subjects(request, [str(agent.agent_id)])
    return _shape(agent, await _agents(request))


@router.post(
    "/v1/chat/completions",
    response_model=Completion,
    responses={
        **_failures(400, 403, 404, 413, 415, 422, 503),
        200: {"content": {"text/event-stream": {}}},
    },
    dependencies=READ,
)
async def complete(request: Request, body: CompletionRequest) -> Completion | Response:
    """The answer to the last message, with citations as [n] in the text and in `citations` of the message."""
    body.check()
    turn = await chat_turn.prepare_turn(
        request,
        body.question(),
        agent=await _agent(request, body.model),
        options={} if body.as_of is None else {"as_of": body.as_of},
        history=body.history(),
        stored=False,
    )
    if not body.stream:
        answer = await until_gone(request, service_of(request).in_flight, chat_turn.answer_turn(app_of(request), turn))
        chat_turn.add_turn_subjects(request, turn, answer)
        return _completion(body, answer)
    chat_turn.add_turn_subjects(request, turn)
    feed = EventFeed(service_of(request).in_flight, partial(chat_turn.answer_turn, app_of(request), turn))
    await feed.wait_for_first(request)
    return EventStream(_chunks(request, body, turn, feed), feed.close)


def _completion(body: CompletionRequest, answer: PipelineResponse) -> Completion:
    message = AssistantMessage(content=in_bold(answer.text, answer.marked), citations=answer.citations)
    return Completion(
        id=f"chatcmpl-{answer.trace_id}",
        created=int(time.time()),
        model=body.model,
        choices=[Choice(message=message)],
        usage=UsageShape.of(answer.usage),
        confidence=answer.confidence,
        decision=answer.decision,
        degraded=answer.degraded,
        answered_before=answer.answered_before,
    )


async def _chunks(
    request: Request, body: CompletionRequest, turn: chat_turn.ChatTurn, feed: EventFeed[PipelineResponse]
) -> AsyncGenerator[bytes, None]:
    yield KEEPALIVE_COMMENT
    async for run_event in feed.events():
        if run_event is None:
            yield KEEPALIVE_COMMENT
    failure = failure_of(feed)
    if failure is not None:
        yield event({"error": failure["error"]})
        return
    answer = feed.result()
    await chat_turn.note_streamed_answer(request, turn.caller, answer)
    whole = _completion(body, answer).model_dump(mode="json")
    message = whole["choices"][0]["message"]
    common = {name: whole[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    with_usage = body.stream_options is not None and body.stream_options.include_usage is True
    extra = {"usage": None} if with_usage else {}
    yield event(common | extra | {"choices": [_choice({"role": "assistant", "content": ""})]})
    for piece in pieces(message["content"]):
        yield event(common | extra | {"choices": [_choice({"content": piece})]})
    last = {"citations": message["citations"], "answered_before": whole["answered_before"]}
    yield event(common | extra | {"choices": [_choice(last, "stop")]})
    if with_usage:
        yield event(common | {"choices": [], "usage": whole["usage"]})
    yield event("[DONE]")


def _choice(delta: Mapping[str, object], finish_reason: str | None = None) -> Mapping[str, object]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


_WHOLE_SCOPE_MODEL = ModelShape(id=WHOLE_SCOPE, created=0, owned_by="dtrag")


def _shape(agent: Agent, agents: list[Agent]) -> ModelShape:
    """The agent by its name; by its id when other agents have the same name."""
    is_unique = sum(other.name == agent.name for other in agents) == 1
    name = agent.name if is_unique else str(agent.agent_id)
    return ModelShape(id=AGENT + name, created=int(agent.created_at.timestamp()), owned_by=agent.created_by)


async def _agents(request: Request) -> list[Agent]:
    agents, _ = await app_of(request).agents.every(MAX_LIMIT, caller=caller_of(request))
    return agents


async def _agent(request: Request, model: str) -> Agent | None:
    """The agent that the model names; None for the whole scope.

    Raises `NotFound`, and `InvalidInput` for a name that several agents have.
    """
    if model == WHOLE_SCOPE:
        return None
    if not model.startswith(AGENT):
        raise _no_model(model)
    name = model.removeprefix(AGENT)
    try:
        return await app_of(request).agents.get(name, caller=caller_of(request))
    except NotFound:
        same_name = [agent for agent in await _agents(request) if agent.name == name]
    if not same_name:
        raise _no_model(model)
    if len(same_name) > 1:
        raise InvalidInput("Several agents have this name: ask by id. GET /v1/models lists the ids.")
    return same_name[0]


def _no_model(model: str) -> NotFound:
    return NotFound(f"There is no model {model[:60]!r} that you may see. GET /v1/models lists the models.")


def in_bold(text: str, marked: Sequence[tuple[int, int]]) -> str:
    """The text with its marked spans, in order and disjoint, in bold."""
    pieces, position = list[str](), 0
    for start, end in marked:
        pieces += [text[position:start], "**", text[start:end], "**"]
        position = end
    return "".join((*pieces, text[position:]))
