"""`/tools`: list tools, approve and revoke tools of MCP servers."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Request, Response

from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.json_body import JsonRoute
from dtrag.delivery.api.middleware.audit import add_subjects
from dtrag.delivery.api.permissions import ADMIN_WHOLE_TREE, READ, caller_of
from dtrag.delivery.api.schemas.errors import failures
from dtrag.delivery.api.schemas.tools import ApproveBody, ServerShape, ToolList, ToolShape
from dtrag.tools.listing import listing

router = APIRouter(tags=["tools"])
posting = APIRouter(route_class=JsonRoute, tags=["tools"])

WAIT_S = 2.0
"""Maximum wait for MCP servers that have not listed their tools yet; a later response is used the next time."""


@router.get("/tools", responses=failures(403, 503), dependencies=READ)
async def tools(request: Request) -> ToolList:
    """The usable tools; administrators also see tools that wait for approval, and the MCP servers."""
    app = app_of(request)
    caller = caller_of(request)
    listed, servers = await listing(app.tools, app.mcp, WAIT_S)
    is_admin = caller.may("admin") and not caller.access.grants
    return ToolList(
        tools=[ToolShape.model_validate(tool.as_dict()) for tool in listed if is_admin or tool.usable],
        servers=[ServerShape.model_validate(asdict(server)) for server in servers] if is_admin else [],
    )


@posting.post(
    "/tools/{name}/approve", responses=failures(400, 403, 404, 409, 413, 415, 422, 503), dependencies=ADMIN_WHOLE_TREE
)
async def approve(request: Request, name: str, body: ApproveBody) -> ToolShape:
    """Approve a tool of an MCP server in its current form. A changed tool must be approved again."""
    add_subjects(request, [name[:130]])
    approved = await app_of(request).mcp.approve(name, body.fingerprint, caller=caller_of(request))
    return ToolShape.model_validate(approved.as_dict())


@router.delete(
    "/tools/{name}/approve", status_code=204, responses=failures(403, 404, 422, 503), dependencies=ADMIN_WHOLE_TREE
)
async def revoke(request: Request, name: str) -> Response:
    """Revoke an approval: the tool is no longer executed."""
    add_subjects(request, [name[:130]])
    await app_of(request).mcp.revoke(name, caller=caller_of(request))
    return Response(status_code=204)


router.include_router(posting)
