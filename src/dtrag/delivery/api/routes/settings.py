"""Settings, sentences and tools of the service."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field

from dtrag.delivery.api.audited import add_subjects
from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.delivery.api.permissions import ADMIN_WHOLE_TREE, BROWSE, READ, caller_of
from dtrag.delivery.api.routing import JsonRoute, StrictBody, failures
from dtrag.delivery.texts import korean_settings, korean_statements
from dtrag.logs import redact
from dtrag.settings import FLAGS, flag
from dtrag.tools.listing import listing
from dtrag.tools.mcp import ServerStatus, ToolStatus

router = APIRouter()


class SettingShape(BaseModel):
    """A setting."""

    name: str = Field(description="Its name, as in Python.")
    environment: str = Field(description="Its environment variable.")
    value: str | int | float | None = Field(description="Its value; `(set)` for a secret that is set.")
    default: str | int | float | None = Field(description="Its default.")
    is_default: bool = Field(description="Whether it has its default value.")
    secret: bool = Field(description="Whether its value is never shown.")
    description: str = Field(description="What it means.")


class FlagShape(BaseModel):
    """A flag, which is read for every request."""

    name: str = Field(description="Its name; the variable is FEATURE_ and the name in upper case.")
    on: bool = Field(description="Whether it is on now.")
    description: str = Field(description="What it switches.")


class SettingsShape(BaseModel):
    """The settings of the service."""

    settings: list[SettingShape] = Field(description="All settings.")
    flags: list[FlagShape] = Field(description="All flags.")


@router.get("/settings", tags=["settings"], responses=failures(403, 503), dependencies=ADMIN_WHOLE_TREE)
async def settings(request: Request) -> SettingsShape:
    """The settings with which the service was started, and the flags as they are now. Secrets are not shown.

    An `Accept-Language` that begins with `ko` gives the descriptions in Korean.
    """
    korean = korean_settings() if request.headers.get("accept-language", "").lower().startswith("ko") else {}
    return SettingsShape(
        settings=[
            SettingShape(
                name=row["name"],
                environment=row["environment"],
                value=_shown(row["value"]),
                default=_shown(row["default"]),
                is_default=row["is_default"],
                secret=row["secret"],
                description=korean.get(row["name"], row["help"]),
            )
            for row in service_of(request).settings.rows()
        ],
        flags=[
            FlagShape(name=each.name, on=flag(each.name), description=korean.get(each.name, each.help))
            for each in FLAGS
        ],
    )


def _shown(value: str | int | float | None) -> str | int | float | None:
    """The value without passwords inside addresses."""
    return redact(value) if isinstance(value, str) else value


@router.get("/statements/{language}", tags=["statements"], responses=failures(403, 422), dependencies=BROWSE)
async def statements(
    language: Annotated[Literal["ko"], Path(description="The language: ko. English is in the statements themselves.")],
) -> dict[str, str]:
    """The texts of statements by code; `{name}` in a text stands for the value of that name."""
    return korean_statements()


tool_router = APIRouter(route_class=JsonRoute, tags=["tools"])

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


@tool_router.get("/tools", responses=failures(403, 503), dependencies=READ)
async def tools(request: Request) -> ToolList:
    """The usable tools; administrators also see tools that wait for approval, and the MCP servers."""
    app = app_of(request)
    caller = caller_of(request)
    listed, servers = await listing(app.tools, app.mcp, WAIT_S)
    is_admin = caller.may("admin") and not caller.access.grants
    return ToolList(tools=[tool for tool in listed if is_admin or tool.usable], servers=servers if is_admin else [])


@tool_router.post(
    "/tools/{name}/approve", responses=failures(400, 403, 404, 409, 413, 415, 422, 503), dependencies=ADMIN_WHOLE_TREE
)
async def approve(request: Request, name: str, body: ApproveBody) -> ToolStatus:
    """Approve a tool of an MCP server in its current form. A changed tool must be approved again."""
    add_subjects(request, [name[:130]])
    return await app_of(request).mcp.approve(name, body.fingerprint, caller=caller_of(request))


@tool_router.delete(
    "/tools/{name}/approve", status_code=204, responses=failures(403, 404, 422, 503), dependencies=ADMIN_WHOLE_TREE
)
async def revoke(request: Request, name: str) -> Response:
    """Revoke an approval: the tool is no longer executed."""
    add_subjects(request, [name[:130]])
    await app_of(request).mcp.revoke(name, caller=caller_of(request))
    return Response(status_code=204)
