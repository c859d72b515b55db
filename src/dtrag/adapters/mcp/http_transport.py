"""The transport of an MCP server at a URL: behind the egress policy, with limits on its responses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from dtrag.adapters.mcp.config import ServerConfig
from dtrag.adapters.mcp.failure_reason import Health
from dtrag.adapters.mcp.stdio_transport import MESSAGE_BYTES
from dtrag.adapters.web.bounded_body import bound
from dtrag.adapters.web.fetch import guarded_transport
from dtrag.adapters.web.resolving import Resolve, resolve
from dtrag.core.access.egress import Allowed
from dtrag.errors import ToolServerFailed
from dtrag.settings import passed_on

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams


@asynccontextmanager
async def http_streams(
    config: ServerConfig, health: Health, allowed: Allowed, resolve: Resolve = resolve
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
