"""`/tools`: list tools, approve and revoke tools of MCP servers."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.middleware.audit import add_subjects
from dtrag.delivery.api.permissions import ADMIN_WHOLE_TREE, READ, caller_of
from dtrag.delivery.api.routing import JsonRoute, StrictBody, failures
from dtrag.tools.listing import listing
from dtrag.tools.mcp import ServerStatus, ToolStatus

router = APIRouter(route_class=JsonRoute, tags=["tools"])

WAIT_S = 2.0
"""Maximum wait for MCP servers that have not listed their tools yet; a later response is used the next time."""


class ApproveBody(StrictBody):
    """An approval."""

    fingerprint: str = Field(
        pattern="^[0-9a-fA-F]{64}$",
        description="Of the tool that you reviewed; if the tool has changed since, it is not approved (409).",
    )


class ToolList(BaseModel):
    """The tools and MCP servers."""

    tools: list[ToolStatus] = Field(description="Built-in tools first, by name; readers see only usable ones.")
    servers: list[ServerStatus] = Field(description="The MCP servers; [] unless the caller is an administrator.")


@router.get("/tools", responses=failures(403, 503), dependencies=READ)
async def tools(request: Request) -> ToolList:
    """The usable tools; administrators also see tools that wait for approval, and the MCP servers."""
    app = app_of(request)
    caller = caller_of(request)
    listed, servers = await listing(app.tools, app.mcp, WAIT_S)
    is_admin = caller.may("admin") and not caller.access.grants
    return ToolList(tools=[tool for tool in listed if is_admin or tool.usable], servers=servers if is_admin else [])


@router.post(
    "/tools/{name}/approve", responses=failures(400, 403, 404, 409, 413, 415, 422, 503), dependencies=ADMIN_WHOLE_TREE
)
async def approve(request: Request, name: str, body: ApproveBody) -> ToolStatus:
    """Approve a tool of an MCP server in its current form. A changed tool must be approved again."""
    add_subjects(request, [name[:130]])
    return await app_of(request).mcp.approve(name, body.fingerprint, caller=caller_of(request))


@router.delete(
    "/tools/{name}/approve", status_code=204, responses=failures(403, 404, 422, 503), dependencies=ADMIN_WHOLE_TREE
)
async def revoke(request: Request, name: str) -> Response:
    """Revoke an approval: the tool is no longer executed."""
    add_subjects(request, [name[:130]])
    await app_of(request).mcp.revoke(name, caller=caller_of(request))
    return Response(status_code=204)
