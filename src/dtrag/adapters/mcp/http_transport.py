"""An MCP server at an address: every connection passes the guard, and no answer is longer than allowed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from dtrag.adapters.mcp.config import ServerConfig
from dtrag.adapters.mcp.health import Health
from dtrag.adapters.mcp.stdio_transport import MESSAGE_BYTES
from dtrag.adapters.web.fetch import resolve
from dtrag.core.access.egress import Allowed, checked, target
from dtrag.errors import ToolServerFailed
from dtrag.settings import passed_on

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams

MOST_ADDRESSES = 4
TOO_LONG = f"it sent a message of more than {MESSAGE_BYTES >> 20} MiB."


@asynccontextmanager
async def address(config: ServerConfig, health: Health, allowed: Allowed) -> AsyncIterator[TransportStreams]:
    """The streams of a new session with the server. Raises `ToolServerFailed`."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    transport = guarded(config, health, allowed)
    # `identity`: an answer that is unpacked could be a thousand times what came over the wire.
    headers = {**_headers(config), "accept-encoding": "identity"}
    timeout = httpx2.Timeout(config.answer_seconds, connect=config.start_seconds)
    async with (
        httpx2.AsyncClient(transport=transport, headers=headers, timeout=timeout, trust_env=False) as client,
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
            reason = f"the variable {variable!r} holds what cannot stand in a header."
            raise ToolServerFailed(name=config.name, reason=reason)
    return {header: values[variable] for header, variable in config.headers}


def guarded(config: ServerConfig, health: Health, allowed: Allowed) -> httpx2.AsyncBaseTransport:
    """Connects to addresses that the guard has looked at, and to no others."""
    import httpx2

    class Limited(httpx2.AsyncByteStream):
        """A body that ends with an error where it becomes too long."""

        def __init__(self, inner: httpx2.AsyncByteStream) -> None:
            self._inner = inner

        async def __aiter__(self) -> AsyncIterator[bytes]:
            length = 0
            async for piece in self._inner:
                length += len(piece)
                if length > MESSAGE_BYTES:
                    health.failed(TOO_LONG)
                    raise httpx2.StreamError(TOO_LONG)
                yield piece

        async def aclose(self) -> None:
            await self._inner.aclose()

    class Guarded(httpx2.AsyncBaseTransport):
        """The usual transport behind the guard: the name is resolved once, and what was judged is connected to."""

        def __init__(self) -> None:
            self._inner = httpx2.AsyncHTTPTransport(trust_env=False)

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            wanted = target(str(request.url), allowed)
            try:
                addresses = checked(wanted, await resolve(wanted.host, wanted.port))
            except OSError as error:
                raise ToolServerFailed(name=config.name, reason=f"the name {wanted.host!r} is not known.") from error
            for last, address in enumerate(addresses[:MOST_ADDRESSES], 1 - len(addresses[:MOST_ADDRESSES])):
                try:
                    return self._limited(await self._inner.handle_async_request(_sent_to(address, request)))
                except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                    if not last:
                        reason = f"{wanted.authority} does not take connections."
                        raise ToolServerFailed(name=config.name, reason=reason) from error
            raise ToolServerFailed(name=config.name, reason=f"the name {wanted.host!r} has no address.")

        def _limited(self, response: httpx2.Response) -> httpx2.Response:
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise ToolServerFailed(name=config.name, reason="it packs its answers although it was told not to.")
            # A stream of events has no end; each of its events has a limit of its own.
            if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
                stream = response.stream
                assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - of an asynchronous transport
                response.stream = Limited(stream)
            return response

        async def aclose(self) -> None:
            await self._inner.aclose()

    return Guarded()


def _sent_to(address: str, request: httpx2.Request) -> httpx2.Request:
    """The request for that very address; its Host header and the certificate it asks for are of the name still.

    Another request, since redirects are compared with the URL of the first.
    """
    import httpx2

    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.host},
    )
