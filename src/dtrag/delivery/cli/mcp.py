"""`dtrag mcp`: an MCP server over standard input and output, for chat programs that start their servers.

It passes every request on to the route `/mcp` of the running service, or of one in this process, so that both ways have
the same tools, scopes, limits and audit lines.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast
from urllib.parse import quote

import typer

from dtrag.delivery.cli.context import Direct, invocation, run_async
from dtrag.errors import DtragError, MissingExtra

if TYPE_CHECKING:
    import httpx2
    from mcp import Client
    from mcp.server.lowlevel import Server

    from dtrag.settings import Settings

LONGEST_LINE = 1 << 26
"""Bytes of a message on standard input; the service accepts less."""


def mcp(
    context: typer.Context,
    *,
    agent: Annotated[
        str | None, typer.Option(metavar="ID", help="Serve this agent: its documents, its answers.", show_default=False)
    ] = None,
    direct: Direct = False,
) -> None:
    """Serve a chat program over standard input and output (Model Context Protocol).

    The program starts this command. With DTRAG_MCP_KEY it has the role and scope of that key.
    """
    run_async(_serve(invocation(context).settings(), agent, direct=direct))


async def _serve(settings: Settings, agent: str | None, *, direct: bool) -> None:
    """Answer requests until standard input ends."""
    try:
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client
        from mcp.server.stdio import stdio_server
    except ImportError as error:
        raise MissingExtra(feature="dtrag mcp", extra="mcp") from error
    import httpx2

    address = "http://localhost/mcp" + ("" if agent is None else f"/agents/{quote(agent, safe='')}")
    headers = {} if settings.mcp_key is None else {"Authorization": f"Bearer {settings.mcp_key}"}
    async with (
        _service(settings, direct=direct) as transport,
        httpx2.AsyncClient(transport=transport, headers=headers, timeout=None) as http,
    ):
        await _check(http, address)
        async with (
            Client(streamable_http_client(address, http_client=http)) as service,
            stdio_server(stdin=cast("Any", _lines())) as (incoming, outgoing),
        ):
            server = _forwarding(service)
            await server.run(incoming, outgoing, server.create_initialization_options())


@asynccontextmanager
async def _service(settings: Settings, *, direct: bool) -> AsyncIterator[httpx2.AsyncBaseTransport]:
    """The running service of the data folder, or one in this process."""
    import httpx2

    from dtrag.delivery.cli.reading import is_running
    from dtrag.delivery.local_socket import socket_address

    if not direct and is_running(settings):
        with socket_address(settings.data_dir) as path:
            yield httpx2.AsyncHTTPTransport(uds=path)
        return
    from dtrag.app import open_app
    from dtrag.delivery.api.app import serve_opened
    from dtrag.delivery.api.owner_socket import of_owner
    from dtrag.isolation.runs import IsolationRuns

    async with open_app(settings) as app:
        yield httpx2.ASGITransport(of_owner(serve_opened(app, settings, Path(), IsolationRuns())))


async def _check(http: httpx2.AsyncClient, address: str) -> None:
    """Raise the `DtragError` of the service for a wrong key, an unknown agent, and a missing part."""
    from dtrag.delivery.cli.reading import error_of

    headers = {"Accept": "application/json"}
    response = await http.post(address, json={"jsonrpc": "2.0", "id": 0, "method": "ping"}, headers=headers)
    if response.status_code != 200:
        raise error_of(response.json()) or DtragError(response.text)


def _forwarding(service: Client) -> Server:
    """A server that answers as the service does."""
    import mcp_types as types
    from mcp.server.lowlevel import Server

    info, offered = service.server_info, service.server_capabilities
    server = Server(
        info.name if info else "dtrag",
        version=info.version if info else "",
        title=info.title if info else None,
        instructions=service.instructions,
    )
    server.middleware.clear()  # that of the library would send what requests are about to OpenTelemetry
    forwarded: list[tuple[Any, type[types.RequestParams], Any]] = [
        (types.ListToolsRequest, types.PaginatedRequestParams, types.ListToolsResult),
        (types.CallToolRequest, types.CallToolRequestParams, types.CallToolResult),
    ]
    if offered.resources is not None:
        forwarded += [
            (types.ListResourcesRequest, types.PaginatedRequestParams, types.ListResourcesResult),
            (types.ListResourceTemplatesRequest, types.PaginatedRequestParams, types.ListResourceTemplatesResult),
            (types.ReadResourceRequest, types.ReadResourceRequestParams, types.ReadResourceResult),
        ]

    def handler(request: Any, result: Any) -> Callable[[Any, Any], Awaitable[Any]]:
        async def forward(context: object, params: Any) -> Any:
            own = params.model_copy(update={"meta": None})  # what it says is about the connection of the client
            return await service.session.send_request(request(params=own), result)

        return forward

    for request, params, result in forwarded:
        server.add_request_handler(request.model_fields["method"].default, params, handler(request, result))
    return server


async def _lines() -> AsyncIterator[str]:
    """The lines of standard input. Waiting for one can be cancelled, unlike a thread that reads it.

    A file, of which every line is there at once, is read in a thread: the event loop cannot wait for one.
    """
    import asyncio

    kind = os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or sys.stdin.isatty()):
        while line := await asyncio.to_thread(sys.stdin.buffer.readline):
            yield line.decode("utf-8", "replace")
        return
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin.buffer)
    while line := await reader.readline():
        yield line.decode("utf-8", "replace")
