"""`/agents`: made of branches, changed, exported; and asked, within what their manifests allow."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import JSONResponse

from dtrag.core.agent import Agent
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.delivery.api.dependencies import app_of, correlation_of, service_of
from dtrag.delivery.api.filter_policy import refuse_bypass
from dtrag.delivery.api.json_body import JsonRoute
from dtrag.delivery.api.middleware.audit import add_subjects
from dtrag.delivery.api.permissions import caller_of, needs
from dtrag.delivery.api.request_tasks import until_gone
from dtrag.delivery.api.routes.search import answered
from dtrag.delivery.api.schemas.agents import (
    AgentAskResponse,
    AgentBody,
    AgentChange,
    AgentList,
    AgentQuestion,
    AgentSearch,
    AgentShape,
    Editions,
    EditionShape,
    SpendingShape,
)
from dtrag.delivery.api.schemas.common import AskResponse, SearchResponse
from dtrag.delivery.api.schemas.errors import failures
from dtrag.errors import DtragError
from dtrag.governance.agents import MAX_LIMIT, manifest_yaml

router = APIRouter(tags=["agents"])
posting = APIRouter(route_class=JsonRoute, tags=["agents"])

READ, WRITE = [Depends(needs("read"))], [Depends(needs("write"))]
_FOUND = failures(404, 422, 503)
_POSTED = failures(400, 403, 413, 415, 422, 503)
_CHANGED = failures(400, 403, 404, 409, 413, 415, 422, 503)
_ASKED = failures(400, 403, 404, 413, 415, 422, 503)


@posting.post("/agents/from-category", responses=_POSTED, dependencies=WRITE)
async def create(request: Request, body: AgentBody) -> AgentShape:
    """A new agent that sees these branches and nothing else."""
    app = app_of(request)
    agent = await app.agents.create(
        body.version, body.node_paths, body.options, name=body.name, caller=caller_of(request)
    )
    _subject(request, agent)
    return _shape(agent, await app.agents.taxonomy())


@router.get("/agents", responses=failures(422, 503), dependencies=READ)
async def agents(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="How many at most.")] = 100,
    offset: Annotated[int, Query(ge=0, le=1_000_000_000, description="How many to pass over.")] = 0,
) -> AgentList:
    """The agents whose branches lie in your own, the newest first."""
    app = app_of(request)
    found, total = await app.agents.every(limit, offset, caller=caller_of(request))
    taxonomy = await app.agents.taxonomy()
    return AgentList(agents=[_shape(agent, taxonomy) for agent in found], total=total, limit=limit, offset=offset)


@router.get("/agents/{agent_id}", responses=_FOUND, dependencies=READ)
async def agent(request: Request, agent_id: str) -> AgentShape:
    """An agent with its manifest."""
    return _shape(await _agent(request, agent_id), await app_of(request).agents.taxonomy())


@posting.put("/agents/{agent_id}", responses=_CHANGED, dependencies=WRITE)
async def update(request: Request, agent_id: str, body: AgentChange) -> AgentShape:
    """A new edition of its manifest; those before it are kept."""
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
    return _shape(changed, await app.agents.taxonomy())


@router.delete("/agents/{agent_id}", status_code=204, responses=_FOUND, dependencies=WRITE)
async def delete(request: Request, agent_id: str) -> Response:
    """Delete an agent with all its editions; what it answered stays answered."""
    _subject(request, await _agent(request, agent_id))
    await app_of(request).agents.delete(agent_id, caller=caller_of(request))
    return Response(status_code=204)


@router.get(
    "/agents/{agent_id}/manifest",
    response_class=JSONResponse,
    responses={
        **_FOUND,
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
    """The manifest in force, to keep beside code or to hand on."""
    found = (await _agent(request, agent_id)).manifest
    if format == "yaml":
        return Response(manifest_yaml(found), media_type="application/yaml")
    return JSONResponse(found.as_dict())


@router.get("/agents/{agent_id}/editions", responses=_FOUND, dependencies=READ)
async def editions(request: Request, agent_id: str) -> Editions:
    """Every manifest that the agent has had, the newest first."""
    _subject(request, await _agent(request, agent_id))
    found = await app_of(request).agents.editions(agent_id, caller=caller_of(request))
    return Editions(editions=[EditionShape.of(edition) for edition in found])


@router.get("/agents/{agent_id}/spending", responses=_FOUND, dependencies=READ)
async def spending(request: Request, agent_id: str) -> SpendingShape:
    """What the agent's models have used today (UTC), and what they may."""
    found = await _agent(request, agent_id)
    service = app_of(request).agents
    return SpendingShape.of(await service.spending(found), service.budget(found))


@posting.post("/agents/{agent_id}/search", responses=_ASKED, dependencies=READ)
async def search(request: Request, agent_id: str, body: AgentSearch) -> SearchResponse:
    """The passages that the agent finds for you: in its branches and in yours, as many as its manifest allows."""
    found, app, caller = await _agent(request, agent_id), app_of(request), caller_of(request)
    telemetry = service_of(request).telemetry.searches
    try:
        await refuse_bypass(request, body.filters, caller, app.agents.access(found, caller))
        results, metrics = await app.agents.search(
            found, body.query, body.top_k, body.filters, caller=caller, correlation_id=correlation_of(request)
        )
    except DtragError as error:
        telemetry.failed(error)
        raise
    add_subjects(request, (str(result.metadata["document_id"]) for result in results))
    return answered(results, metrics)


@posting.post("/agents/{agent_id}/ask", responses=_ASKED, dependencies=READ)
async def ask(request: Request, agent_id: str, body: AgentQuestion) -> AgentAskResponse:
    """The agent's answer, quoted from its branches; one that it is not sure of waits for a person, too."""
    found, app, caller = await _agent(request, agent_id), app_of(request), caller_of(request)
    await refuse_bypass(request, body.filters, caller, app.agents.access(found, caller))
    asking = app.agents.ask(found, body.question, body.filters, caller=caller)
    given = await until_gone(request, service_of(request).in_flight, asking)
    add_subjects(request, (citation.document_id for citation in given.answer.citations))
    shown = AskResponse.model_validate(given.answer).model_dump()
    return AgentAskResponse(**shown, agent_id=str(found.agent_id), hitl_required=given.hitl_required)


async def _agent(request: Request, agent_id: str) -> Agent:
    found = await app_of(request).agents.get(agent_id, caller=caller_of(request))
    _subject(request, found)
    return found


def _subject(request: Request, about: Agent) -> None:
    request.state.subjects = [str(about.agent_id)]


def _shape(about: Agent, taxonomy: Taxonomy) -> AgentShape:
    return AgentShape.model_validate(about.as_dict(taxonomy))


router.include_router(posting)
