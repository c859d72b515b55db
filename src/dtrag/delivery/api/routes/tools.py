"""`/tools`: which tools there are, and an administrator's word about those of MCP servers."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Depends, Request, Response

from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.json_body import JsonRoute
from dtrag.delivery.api.middleware.audit import add_subjects
from dtrag.delivery.api.permissions import caller_of, needs
from dtrag.delivery.api.schemas.errors import failures
from dtrag.delivery.api.schemas.tools import ApproveBody, ServerShape, ToolList, ToolShape
from dtrag.tools.listing import listing

router = APIRouter(tags=["tools"])
posting = APIRouter(route_class=JsonRoute, tags=["tools"])

READ = [Depends(needs("read"))]
ADMIN = [Depends(needs("admin", whole_tree=True))]
WAIT_S = 2.0
"""Longest wait for MCP servers that have not said what they offer; what they say later is there the next time."""


@router.get("/tools", responses=failures(403, 503), dependencies=READ)
async def tools(request: Request) -> ToolList:
    """The tools that can be executed; administrators see those that wait for them, too, and the MCP servers."""
    app = app_of(request)
    caller = caller_of(request)
    found, servers = await listing(app.tools, app.mcp, WAIT_S)
    governs = caller.may("admin") and not caller.access.grants
    return ToolList(
        tools=[ToolShape.model_validate(tool.as_dict()) for tool in found if governs or tool.usable],
        servers=[ServerShape.model_validate(asdict(server)) for server in servers] if governs else [],
    )


@posting.post("/tools/{name}/approve", responses=failures(400, 403, 404, 409, 413, 415, 422, 503), dependencies=ADMIN)
async def approve(request: Request, name: str, body: ApproveBody) -> ToolShape:
    """Allow a tool of an MCP server as it is now. When it changes, it is out of use until it is approved again."""
    add_subjects(request, [name[:130]])
    done = await app_of(request).mcp.approve(name, body.fingerprint, caller=caller_of(request))
    return ToolShape.model_validate(done.as_dict())


@router.delete("/tools/{name}/approve", status_code=204, responses=failures(403, 404, 422, 503), dependencies=ADMIN)
async def revoke(request: Request, name: str) -> Response:
    """Take an approval back: the tool is not started any more."""
    add_subjects(request, [name[:130]])
    await app_of(request).mcp.revoke(name, caller=caller_of(request))
    return Response(status_code=204)


router.include_router(posting)
