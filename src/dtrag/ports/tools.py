"""Ports of tools: MCP servers, approvals of their tools, and HTTP requests."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from dtrag.core.tool_approval import Approval, OfferedTool


class ToolServer(Protocol):
    """An MCP server. It is connected on first use; every call has a time limit."""

    @property
    def name(self) -> str:
        """Unique among the configured servers."""

    @property
    def where(self) -> str:
        """Its command or address, for display."""

    @property
    def answer_seconds(self) -> float:
        """Time limit of one call, in seconds."""

    async def tools(self) -> list[OfferedTool]:
        """The tools that it offers now, as it describes them. Raises `ToolServerFailed`."""

    async def call(self, tool: str, arguments: Mapping[str, Any], expected: bytes) -> Any:
        """The tool's result, if the server still offers the tool with the fingerprint `expected`.

        Raises `ToolChanged` if not, `ToolFailed` when the tool reports an error, and `ToolServerFailed`.
        """

    async def close(self) -> None:
        """Close the connection and stop the process, if there is one."""


class ApprovalStore(Protocol):
    """Approvals of tools of MCP servers."""

    async def every(self) -> dict[str, Approval]:
        """Full name of a tool -> its approval."""

    async def put(self, approval: Approval) -> None:
        """Store the approval; replaces an earlier one of the same tool."""

    async def remove(self, tool: str) -> bool:
        """Revoke the approval; False when there is none."""


@dataclass(frozen=True, slots=True)
class WebRequest:
    """An HTTP request. `headers` may hold secrets: they are sent to the origin of `url` only, never to a redirect.

    `follow`: whether redirects are followed; otherwise a redirect is the response.
    """

    url: str
    method: Literal["GET", "HEAD", "POST"] = "GET"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = b""
    follow: bool = True


@dataclass(frozen=True, slots=True)
class WebReply:
    """An HTTP response. `url` is the final address after redirects; names of `headers` are in lower case."""

    status: int
    url: str
    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict, compare=False)


class Fetcher(Protocol):
    """An HTTP client that connects only to addresses that the egress policy allows (core/access/egress.py)."""

    async def fetch(self, request: WebRequest, *, seconds: float, most: int, types: Collection[str]) -> WebReply:
        """The response, within `seconds`, of at most `most` bytes, with one of these media types.

        Raises `EgressBlocked` before it connects to a forbidden address, redirects included, and `FetchFailed`.
        """
