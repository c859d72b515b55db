"""`/agents`: create, change, export and delete agents; search and ask within their manifests.

`core/manifest.py` validates manifests.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, WithJsonSchema

from dtrag.core.access.api_key import Caller
from dtrag.core.access.scope import Grant
from dtrag.core.agent import Agent, AgentEdition, AgentView, SpendingToday
from dtrag.core.documents import Answer
from dtrag.core.editions import parse_date
from dtrag.core.manifest import MAX_AGENT_NAME, MAX_LEVELS, MAX_PATHS, MAX_TOOLS, TOOLS
from dtrag.core.response import extended, response
from dtrag.core.taxonomy.tree import CategoryPath
from dtrag.delivery.api.audited import add_answer, add_subjects
from dtrag.delivery.api.chat_turn import note_streamed_answer
from dtrag.delivery.api.dependencies import app_of, correlation_of, service_of
from dtrag.delivery.api.permissions import ASK, BROWSE, READ, WRITE, caller_of, refuse_bypass
from dtrag.delivery.api.request_tasks import until_gone
from dtrag.delivery.api.routes.chat import answer_events
from dtrag.delivery.api.routes.search import search_response
from dtrag.delivery.api.routing import AsOf, Filters, JsonRoute, Offset, Page, SearchResponse, StrictBody, failures
from dtrag.delivery.api.sse import EVENT_STREAM, EventFeed, EventStream
from dtrag.errors import DtragError
from dtrag.governance.agents import MAX_LIMIT, manifest_yaml
from dtrag.pipeline.state import PipelineResponse
from dtrag.retrieval.request import MAX_QUERY, MAX_TOP_K

_TOPK = {"type": "integer", "minimum": 1, "maximum": 50}
_OPTIONS = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "mcp_tools": {"type": "array", "maxItems": MAX_TOOLS, "items": {"type": "string", "enum": list(TOOLS)}},
        "custom_features": {"type": "object", "additionalProperties": {"type": "boolean"}},
        "override_settings": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "retrieval": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"bm25_topk": _TOPK, "vector_topk": _TOPK},
                },
                "features": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {"hitl_below_conf": {"type": "number", "minimum": 0.1, "maximum": 0.9}},
                },
            },
        },
        "budgets": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "tokens_per_day": {"type": "integer", "minimum": 0},
                "krw_per_day": {"type": "number", "minimum": 0},
            },
        },
    },
}
_NODE_PATHS = {
    "type": "array",
    "minItems": 1,
    "maxItems": MAX_PATHS,
    "items": {"type": "array", "minItems": 1, "maxItems": MAX_LEVELS, "items": {"type": "string"}},
}


class AgentBody(StrictBody):
    """The definition of an agent."""

    version: Annotated[object, WithJsonSchema({"type": "string"})] = Field(
        description="Version of the tree to which the paths refer, MAJOR.MINOR.PATCH.", examples=["1.0.0"]
    )
    node_paths: Annotated[object, WithJsonSchema(_NODE_PATHS)] = Field(
        description="1 to 10 category paths of 1 to 5 names; each includes its whole branch.",
        examples=[[["HR", "Leave"]]],
    )
    options: Annotated[object, WithJsonSchema({"anyOf": [_OPTIONS, {"type": "null"}]})] = Field(
        None, description="Tools, switches, numbers of candidates, threshold and budgets that differ from the defaults."
    )
    name: Annotated[
        object, WithJsonSchema({"anyOf": [{"type": "string", "maxLength": MAX_AGENT_NAME}, {"type": "null"}]})
    ] = Field(None, description="Its name; by default that of its first path.")


class AgentChange(AgentBody):
    """A new edition of an agent: everything is replaced except an omitted name."""

    edition: int | None = Field(
        None, ge=1, description="The edition you have seen: 409 when it is not the current one."
    )


class AgentList(Page):
    """A page of the agents that you may see, the newest first."""

    agents: list[AgentView] = Field(description="The agents of this page.")


class AgentEditions(BaseModel):
    """All manifests of an agent."""

    model_config = ConfigDict(title="Editions")

    editions: list[AgentEdition] = Field(description="The newest first.")


class AgentSearch(StrictBody):
    """A search in an agent's branches."""

    query: str = Field(max_length=MAX_QUERY, description="Words or a question; a blank query has no results.")
    top_k: int | None = Field(
        None, ge=1, le=MAX_TOP_K, description="Maximum number of passages; limited by the manifest's final_topk."
    )
    filters: Filters = None
    as_of: AsOf = None


class AgentQuestion(StrictBody):
    """A question to an agent."""

    question: str = Field(max_length=MAX_QUERY, description="The question.")
    filters: Filters = None
    as_of: AsOf = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAskResponse(Answer):
    """An agent's answer with its citations."""

    __pydantic_config__ = response()

    agent_id: str
    """The agent."""
    hitl_required: bool
    """Whether the confidence is below the agent's threshold: the answer then also waits for review."""


class AgentReachBody(StrictBody):
    """The branches of an agent that does not exist yet."""

    node_paths: list[list[str]] = Field(
        min_length=1,
        max_length=MAX_PATHS,
        description="Category paths; each includes its whole branch.",
        examples=[[["HR", "Leave"]]],
    )


class AgentReachShape(BaseModel):
    """What an agent reaches for the caller."""

    documents: int = Field(description="Documents that are valid today.")
    passages: int = Field(description="Their passages.")


router = APIRouter(route_class=JsonRoute, tags=["agents"])

_GET_ERRORS = failures(404, 422, 503)
_CREATE_ERRORS = failures(400, 403, 413, 415, 422, 503)
_UPDATE_ERRORS = failures(400, 403, 404, 409, 413, 415, 422, 503)
_QUESTION_ERRORS = failures(400, 403, 404, 413, 415, 422, 503)


@router.post("/agents/from-category", responses=_CREATE_ERRORS, dependencies=WRITE)
async def create(request: Request, body: AgentBody) -> AgentView:
    """Create an agent that sees only these branches."""
    app = app_of(request)
    agent = await app.agents.create(
        body.version, body.node_paths, body.options, name=body.name, caller=caller_of(request)
    )
    _subject(request, agent)
    return agent.view(await app.agents.taxonomy())


@router.get("/agents", responses=failures(422, 503), dependencies=BROWSE)
async def agents(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Maximum number of entries.")] = 100,
    offset: Offset = 0,
) -> AgentList:
    """The agents whose branches are within yours, the newest first."""
    app = app_of(request)
    page, total = await app.agents.every(limit, offset, caller=caller_of(request))
    taxonomy = await app.agents.taxonomy()
    return AgentList(agents=[agent.view(taxonomy) for agent in page], total=total, limit=limit, offset=offset)


@router.get("/agents/{agent_id}", responses=_GET_ERRORS, dependencies=READ)
async def agent(request: Request, agent_id: str) -> AgentView:
    """An agent with its manifest."""
    return (await _agent(request, agent_id)).view(await app_of(request).agents.taxonomy())


@router.put("/agents/{agent_id}", responses=_UPDATE_ERRORS, dependencies=WRITE)
async def update(request: Request, agent_id: str, body: AgentChange) -> AgentView:
    """Store a new edition of its manifest; earlier ones are kept."""
    app = app_of(request)
    changed = await app.agents.update(
        agent_id,
        body.version,
        body.node_paths,
        body.options,
        name=body.name,
        edition=body.edition,
        caller=caller_of(request),
    )
    _subject(request, changed)
    return changed.view(await app.agents.taxonomy())


@router.delete("/agents/{agent_id}", status_code=204, responses=_GET_ERRORS, dependencies=WRITE)
async def delete(request: Request, agent_id: str) -> Response:
    """Delete an agent with all its editions; its answers stay in conversations and traces."""
    _subject(request, await _agent(request, agent_id))
    await app_of(request).agents.delete(agent_id, caller=caller_of(request))
    return Response(status_code=204)


@router.get(
    "/agents/{agent_id}/manifest",
    response_class=JSONResponse,
    responses={
        **_GET_ERRORS,
        200: {
            "description": "The manifest.",
            "content": {"application/json": {"schema": {"type": "object"}}, "application/yaml": {}},
        },
    },
    dependencies=READ,
)
async def manifest(
    request: Request,
    agent_id: str,
    format: Annotated[Literal["yaml", "json"], Query(description="yaml or json.")] = "json",  # noqa: A002
) -> Response:
    """The current manifest, for version control or exchange."""
    current = (await _agent(request, agent_id)).manifest
    if format == "yaml":
        return Response(manifest_yaml(current), media_type="application/yaml")
    return JSONResponse(current.as_dict())


@router.get("/agents/{agent_id}/editions", responses=_GET_ERRORS, dependencies=READ)
async def editions(request: Request, agent_id: str) -> AgentEditions:
    """All manifests of the agent, the newest first."""
    _subject(request, await _agent(request, agent_id))
    stored = await app_of(request).agents.editions(agent_id, caller=caller_of(request))
    return AgentEditions(editions=stored)


@router.get("/agents/{agent_id}/spending", responses=_GET_ERRORS, dependencies=READ)
async def spending(request: Request, agent_id: str) -> SpendingToday:
    """Today's usage of the agent's models (UTC), and its budget."""
    return await app_of(request).agents.spending_today(await _agent(request, agent_id))


@router.get("/agents/{agent_id}/reach", responses=_GET_ERRORS, dependencies=READ)
async def reach(request: Request, agent_id: str) -> AgentReachShape:
    """How many documents and passages the agent reaches for you: those in its branches that are also yours."""
    agent, app = await _agent(request, agent_id), app_of(request)
    documents, passages = await app.counts(scope=app.agents.access(agent, caller_of(request)))
    return AgentReachShape(documents=documents, passages=passages)


@router.post("/agents/reach", responses=_CREATE_ERRORS, dependencies=READ)
async def reach_of_branches(request: Request, body: AgentReachBody) -> AgentReachShape:
    """How many documents and passages an agent with these branches would reach for you; nothing is stored."""
    app, access = app_of(request), caller_of(request).access
    paths = [CategoryPath.parse(path) for path in body.node_paths]
    documents, passages = await app.counts(scope=access.within(Grant.of(paths, await app.agents.taxonomy())))
    return AgentReachShape(documents=documents, passages=passages)


@router.post("/agents/{agent_id}/search", responses=_QUESTION_ERRORS, dependencies=READ)
async def search(request: Request, agent_id: str, body: AgentSearch) -> SearchResponse:
    """Passages from the branches that are both the agent's and yours, as many as its manifest allows."""
    agent, app = await _agent(request, agent_id), app_of(request)
    caller = caller_of(request).at(parse_date("as_of", body.as_of))
    telemetry = service_of(request).telemetry.searches
    try:
        await refuse_bypass(request, body.filters, caller, app.agents.access(agent, caller))
        results, metrics = await app.agents.search(
            agent, body.query, body.top_k, body.filters, caller=caller, correlation_id=correlation_of(request)
        )
    except DtragError as error:
        telemetry.failed(error)
        raise
    add_subjects(request, (str(result.metadata["document_id"]) for result in results))
    return search_response(results, metrics)


@router.post(
    "/agents/{agent_id}/ask",
    response_model=AgentAskResponse,
    responses={**_QUESTION_ERRORS, 200: {"content": {EVENT_STREAM: {}}}},
    dependencies=ASK,
)
async def ask(request: Request, agent_id: str, body: AgentQuestion) -> AgentAskResponse | Response:
    """The agent's answer from its branches; one below its confidence threshold also waits for a human review.

    With `Accept: text/event-stream` the events of /chat/stream; the last one, `done`, has the same answer.
    """
    if EVENT_STREAM not in request.headers.get("accept", ""):
        return await answer_question(request, agent_id, body)
    agent, caller, work = await _prepared(request, agent_id, body)
    feed = EventFeed(service_of(request).in_flight, lambda emit: work(emit=emit))
    await feed.wait_for_first(request)

    async def done(answer: PipelineResponse) -> object:
        await note_streamed_answer(request, caller, answer)
        return _ANSWER.dump_python(_answer_shape(agent, answer), mode="json")

    return EventStream(answer_events(feed, done), feed.close)


async def answer_question(request: Request, agent_id: str, body: AgentQuestion) -> AgentAskResponse:
    """The agent's whole answer."""
    agent, _, work = await _prepared(request, agent_id, body)
    answer = await until_gone(request, service_of(request).in_flight, work())
    add_answer(request, answer)
    return _answer_shape(agent, answer)


async def _prepared(
    request: Request, agent_id: str, body: AgentQuestion
) -> tuple[Agent, Caller, Callable[..., Coroutine[Any, Any, PipelineResponse]]]:
    """The agent, the caller on the requested day, and what answers. Raises `NotFound` and `FilterBypass`."""
    agent, app = await _agent(request, agent_id), app_of(request)
    caller = caller_of(request).at(parse_date("as_of", body.as_of))
    await refuse_bypass(request, body.filters, caller, app.agents.access(agent, caller))
    return agent, caller, partial(app.agents.ask, agent, body.question, body.filters, caller=caller)


_ANSWER = TypeAdapter(AgentAskResponse)


def _answer_shape(agent: Agent, answer: PipelineResponse) -> AgentAskResponse:
    return extended(AgentAskResponse, answer, agent_id=str(agent.agent_id), hitl_required=answer.hitl_required)


async def _agent(request: Request, agent_id: str) -> Agent:
    agent = await app_of(request).agents.get(agent_id, caller=caller_of(request))
    _subject(request, agent)
    return agent


def _subject(request: Request, agent: Agent) -> None:
    request.state.subjects = [str(agent.agent_id)]
