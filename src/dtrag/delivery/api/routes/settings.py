"""Settings, sentences and tools of the service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field

from dtrag.delivery.api.audited import add_subjects
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.permissions import ADMIN_WHOLE_TREE, BROWSE, READ, caller_of
from dtrag.delivery.api.routing import JsonRoute, StrictBody, failures
from dtrag.delivery.texts import korean_settings, korean_statements
from dtrag.errors import Conflict
from dtrag.governance.changed_settings import PUBLIC, ChangedSettings, PublicEffect
from dtrag.logs import redact
from dtrag.settings import FLAGS, Changeable, SettingRow, changeable_settings, flag
from dtrag.tools.listing import listing
from dtrag.tools.mcp import ServerStatus, ToolStatus

router = APIRouter()
change_router = APIRouter(route_class=JsonRoute, tags=["settings"])
SettingName = Annotated[str, Path(max_length=60, description="Name of the setting, such as decision.")]
NO_KEY = (
    "This service has no key yet. With public branches, callers without a key may only ask and read: create a key for "
    "administration first, with: dtrag keys create --role admin"
)


class SettingShape(BaseModel):
    """A setting."""

    name: str = Field(description="Its name, as in Python.")
    environment: str = Field(description="Its environment variable.")
    value: str | int | float | None = Field(description="Its value; `(set)` for a secret that is set.")
    default: str | int | float | None = Field(description="Its default.")
    is_default: bool = Field(description="Whether it has its default value.")
    secret: bool = Field(description="Whether its value is never shown.")
    description: str = Field(description="What it means.")
    change: Changeable | None = Field(description="How it may be changed while the service runs; null: it cannot be.")
    fixed: bool = Field(description="Whether it was set where the service was started, which has precedence.")
    changed_by: str | None = Field(description="Name of the key that stored its value; null if none is in use.")
    changed_at: str | None = Field(description="When, in ISO 8601.")


class ChangeBody(StrictBody):
    """A new value of a setting."""

    value: str | int | float = Field(description="The value, as text or a number.")
    accept_widening: bool = Field(False, description="false: a change that shows more without a key is refused.")
    dry_run: bool = Field(False, description="For public: true changes nothing and returns what would be seen.")


class ChangedShape(BaseModel):
    """A setting after a change."""

    setting: SettingShape = Field(description="The setting as it is in use now.")
    public: PublicEffect | None = Field(description="For public: what callers without a key see; null for others.")


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
    korean = _korean(request)
    return SettingsShape(
        settings=[_setting(row, app_of(request).changed_settings, korean) for row in app_of(request).settings.rows()],
        flags=[
            FlagShape(name=each.name, on=flag(each.name), description=korean.get(each.name, each.help))
            for each in FLAGS
        ],
    )


def _korean(request: Request) -> Mapping[str, str]:
    return korean_settings() if request.headers.get("accept-language", "").lower().startswith("ko") else {}


def _setting(row: SettingRow, changed: ChangedSettings, korean: Mapping[str, str]) -> SettingShape:
    name, fixed = row["name"], changed.at_start.is_fixed(row["name"])
    stored = None if fixed else changed.values.get(name)
    return SettingShape(
        name=name,
        environment=row["environment"],
        value=_shown(row["value"]),
        default=_shown(row["default"]),
        is_default=row["is_default"],
        secret=row["secret"],
        description=korean.get(name, row["help"]),
        change=changeable_settings().get(name),
        fixed=fixed,
        changed_by=None if stored is None else stored.by,
        changed_at=None if stored is None else stored.at,
    )


@change_router.put(
    "/settings/{name}", responses=failures(400, 403, 404, 409, 413, 415, 422, 503), dependencies=ADMIN_WHOLE_TREE
)
async def change(request: Request, name: SettingName, body: ChangeBody) -> ChangedShape:
    """Change a setting while the service runs: every service of the database follows within seconds.

    A change of `public` that shows more to callers without a key must be accepted. It needs a key: with public
    branches, callers without one cannot administer.
    """
    app = app_of(request)
    add_subjects(request, [name])
    if name == PUBLIC and not body.dry_run and not await app.keys.needed():
        raise Conflict(NO_KEY)
    options = {"accept_widening": body.accept_widening, "dry_run": body.dry_run}
    effect = await app.changed_settings.set(name, body.value, by=caller_of(request), **options)
    [row] = [row for row in app.settings.rows() if row["name"] == name]
    return ChangedShape(setting=_setting(row, app.changed_settings, _korean(request)), public=effect)


@change_router.delete(
    "/settings/{name}", status_code=204, responses=failures(403, 404, 409, 422, 503), dependencies=ADMIN_WHOLE_TREE
)
async def reset(request: Request, name: SettingName) -> Response:
    """Remove the stored value of a setting: its default counts again."""
    add_subjects(request, [name])
    await app_of(request).changed_settings.unset(name, by=caller_of(request))
    return Response(status_code=204)


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
