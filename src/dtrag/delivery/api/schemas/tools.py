"""The shapes of `/tools`, as OpenAPI shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class ApproveBody(BaseModel):
    """What is approved."""

    model_config = ConfigDict(extra="forbid", strict=True)

    fingerprint: str = Field(
        pattern="^[0-9a-fA-F]{64}$", description="Of the tool as you looked at it; another one is not approved (409)."
    )


class ToolShape(BaseModel):
    """A tool."""

    name: str = Field(description="`server.tool` for one of an MCP server.")
    server: str = Field(description='The MCP server that offers it; "" for a built-in one.')
    description: str = Field(description="What it does, as it says itself: a text from outside for an MCP server's.")
    input_schema: dict[str, Any] = Field(description="JSON Schema of its input; {} for one that is gone or refused.")
    state: Literal["built-in", "approved", "new", "changed", "gone", "refused"] = Field(
        description="Where it stands; only built-in and approved tools are ever executed."
    )
    usable: bool = Field(description="Whether it can be executed now.")
    fingerprint: str = Field(description='SHA-256 of its name, description and schema; "" where there is nothing.')
    reason: str = Field(description='Why it cannot be used, for people; "" without a special reason.')
    approved_by: str | None = Field(description="Who approved it, or what it was before it changed.")
    approved_at: datetime | None = Field(description="When.")


class ServerShape(BaseModel):
    """An MCP server."""

    name: str = Field(description="As the settings name it.")
    where: str = Field(description="Its program or address.")
    tools: int = Field(description="How many tools it offered when it answered last.")
    problem: str = Field(description='Why it cannot be used now, for people; "" when it can.')
    asking: bool = Field(description="Whether it is being asked; what is said here may be old then.")


class ToolList(BaseModel):
    """The tools that there are."""

    tools: list[ToolShape] = Field(description="Built-in ones first, by name; readers see the usable ones.")
    servers: list[ServerShape] = Field(description="The MCP servers; [] for callers who are no administrators.")
