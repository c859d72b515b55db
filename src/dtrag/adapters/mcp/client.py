"""MCP servers as `ToolServer`: connected on first use, reconnected after a failure. A new connection lists its tools
before one of them is called."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from dtrag.adapters.mcp.config import ServerConfig
from dtrag.adapters.mcp.connection import ConnectionState, Link, McpConnection
from dtrag.adapters.mcp.stdio_transport import MESSAGE_BYTES, program
from dtrag.adapters.web.fetch import bound, guarded_transport
from dtrag.adapters.web.guarded_transport import Resolve, resolve
from dtrag.core.access.egress import Allowed
from dtrag.core.tool_approval import OfferedTool, fingerprint, problem
from dtrag.errors import ToolChanged, ToolFailed, ToolServerFailed
from dtrag.settings import passed_on

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams
    from mcp_types import CallToolResult

MESSAGE = 500
"""Characters of a tool's own error that are reported."""


def servers(configs: Sequence[ServerConfig], allowed: Allowed, resolve: Resolve = resolve) -> list[McpServer]:
    """The servers of the list, not connected yet. `allowed`: hosts and ports that need not be public."""
    http = partial(http_streams, allowed=allowed, resolve=resolve)
    return [McpServer(config, program if config.command else http) for config in configs]


class McpServer:
    """One server."""

    def __init__(self, config: ServerConfig, link: Link) -> None:
        self._config = config
        self._link = link
        self._current: McpConnection | None = None
        self._leaving: set[McpConnection] = set()
        self._closed = False

    @property
    def name(self) -> str:
        """Unique among the servers."""
        return self._config.name

    @property
    def where(self) -> str:
        """The command or address, for display. Arguments are not shown: they often hold secrets."""
        return self._config.command[0] if self._config.command else self._config.url.partition("?")[0]

    @property
    def answer_seconds(self) -> float:
        """Longest time of one call."""
        return self._config.answer_seconds

    async def tools(self) -> list[OfferedTool]:
        """The tools that the server lists now. Raises `ToolServerFailed`."""
        if self._current is not None:
            self._current.listed = None
        async with self._connected() as connection:
            return list((await connection.tools()).values())

    async def call(self, tool: str, arguments: Mapping[str, Any], expected: bytes) -> Any:
        """What the tool returns, if the server still offers it with the expected fingerprint.

        Texts come back as one text, structured results as they are; of images and sounds only the type is returned.
        Raises `ToolChanged`, `ToolFailed`, `ToolServerFailed`.
        """
        async with self._connected() as connection:
            offered = (await connection.tools()).get(tool)
            if offered is None or problem(offered) or fingerprint(offered) != expected:
                raise ToolChanged(tool=f"{self.name}.{tool}")
            result = await connection.call(tool, dict(arguments))
        text = _texts(result)
        if result.is_error:
            raise ToolFailed(tool=f"{self.name}.{tool}", reason=text[:MESSAGE] or "it gives no reason.")
        return result.structured_content if result.structured_content is not None else text

    async def close(self) -> None:
        """End the connection, and the process if there is one."""
        self._closed = True
        ending = list(self._leaving)
        if self._current is not None:
            ending.append(self._current)
        await asyncio.gather(*(connection.ended() for connection in ending))
        self._current = None
        self._leaving.clear()

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[McpConnection]:
        """A connection that has listed its tools: the present one if it still answers, else a new one."""
        for attempt in range(2):
            connection, old = self._connection()
            connection.users += 1
            try:
                try:
                    await connection.tools()
                except ToolServerFailed:
                    self._leave(connection)
                    if not old or attempt:
                        raise
                    continue
                try:
                    yield connection
                except ToolServerFailed:
                    if connection.broken:
                        self._leave(connection)
                    raise
                return
            finally:
                connection.users -= 1
                self._let_go()

    def _connection(self) -> tuple[McpConnection, bool]:
        """The connection to be used, and whether it was there before."""
        if self._closed:
            raise ToolServerFailed(name=self.name, reason="the connection was closed.")
        if self._current is not None and not self._current.broken:
            return self._current, True
        if self._current is not None:
            self._leave(self._current)
        self._current = McpConnection(self._config, self._link)
        return self._current, False

    def _leave(self, connection: McpConnection) -> None:
        """Give the connection to no further caller; it ends when its present users are done."""
        self._leaving.add(connection)
        if self._current is connection:
            self._current = None

    def _let_go(self) -> None:
        for connection in self._leaving:
            if not connection.users:
                connection.end()
        self._leaving = {connection for connection in self._leaving if connection.users or not connection.gone}


def _texts(result: CallToolResult) -> str:
    """All texts of the result, one below the other."""
    return "\n".join(_text(part) for part in result.content)


def _text(part: Any) -> str:
    if part.type == "text":
        return str(part.text)
    if part.type == "resource":
        text = getattr(part.resource, "text", None)
        return str(text) if text is not None else f"({part.resource.uri})"
    if part.type == "resource_link":
        return f"({part.uri})"
    return f"({part.type})"


@asynccontextmanager
async def http_streams(
    config: ServerConfig, health: ConnectionState, allowed: Allowed, resolve: Resolve = resolve
) -> AsyncIterator[TransportStreams]:
    """The streams of a new session with the server. Raises `ToolServerFailed`."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    def refusal(reason: str) -> httpx2.StreamError:
        health.failed(reason)
        return httpx2.StreamError(reason)

    async def limit(response: httpx2.Response) -> None:
        # A stream of events has no end; the limit of the client applies to each event.
        events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        bound(response, None if events else MESSAGE_BYTES, refusal)

    client = httpx2.AsyncClient(
        transport=await asyncio.to_thread(guarded_transport, allowed, keep_alive=True, resolve=resolve),
        headers={**_headers(config), "accept-encoding": "identity"},
        timeout=httpx2.Timeout(config.answer_seconds, connect=config.start_seconds),
        trust_env=False,
        event_hooks={"response": [limit]},
    )
    async with (
        client,
        streamable_http_client(config.url, http_client=client, max_sse_event_size=MESSAGE_BYTES) as streams,
    ):
        yield streams


def _headers(config: ServerConfig) -> dict[str, str]:
    values = passed_on([variable for _, variable in config.headers])
    for header, variable in config.headers:
        if variable not in values:
            reason = f"the variable {variable!r} with the value of its header {header!r} is not set."
            raise ToolServerFailed(name=config.name, reason=reason)
        if not values[variable].isascii() or not values[variable].isprintable():
            reason = f"the variable {variable!r} holds characters that a header cannot have."
            raise ToolServerFailed(name=config.name, reason=reason)
    return {header: values[variable] for header, variable in config.headers}
