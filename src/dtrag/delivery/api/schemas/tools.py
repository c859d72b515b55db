"""Bodies and responses of `/tools`."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from dtrag.delivery.api.schemas.base import StrictBody


class ApproveBody(StrictBody):
    """An approval."""

    fingerprint: str = Field(
        pattern="^[0-9a-fA-F]{64}$",
        description="Of the tool that you reviewed; if the tool has changed since, it is not approved (409).",
    )


class ToolShape(BaseModel):
    """A tool."""

    name: str = Field(description="`server.tool` for one of an MCP server.")
    server: str = Field(description='The MCP server that offers it; "" for a built-in one.')
    description: str = Field(description="Its own description; untrusted text for a tool of an MCP server.")
    input_schema: dict[str, object] = Field(description="JSON Schema of its input; {} for a missing or refused tool.")
    state: Literal["built-in", "approved", "new", "changed", "gone", "refused"] = Field(
        description="Its state; only built-in and approved tools are executed."
    )
    usable: bool = Field(description="Whether it can be executed now.")
    fingerprint: str = Field(description='SHA-256 of its name, description and schema; "" for a missing tool.')
    reason: str = Field(description='Why it cannot be used; "" without a special reason.')
    approved_by: str | None = Field(description="Who approved it, or its earlier form before it changed.")
    approved_at: datetime | None = Field(description="When it was approved.")


class ServerShape(BaseModel):
    """An MCP server."""

    name: str = Field(description="Its name in the settings.")
    where: str = Field(description="Its command or address.")
    tools: int = Field(description="Number of tools in its last response.")
    problem: str = Field(description='Why it cannot be used now; "" if it can.')
    asking: bool = Field(description="Whether a request to it is under way; these values may then be outdated.")


class ToolList(BaseModel):
    """The tools and MCP servers."""

    tools: list[ToolShape] = Field(description="Built-in tools first, by name; readers see only usable ones.")
    servers: list[ServerShape] = Field(description="The MCP servers; [] unless the caller is an administrator.")
