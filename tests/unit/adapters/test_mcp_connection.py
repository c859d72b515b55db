"""The connection to an MCP server, with servers of the SDK in this process and with ones that speak bad HTTP."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import pytest
from mcp.client._memory import InMemoryTransport
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged

from dtrag.adapters.mcp import connection
from dtrag.adapters.mcp.client import McpServer, servers
from dtrag.adapters.mcp.config import ServerConfig
from dtrag.adapters.web.guarded_transport import Resolve, resolve
from dtrag.core.access.egress import allowed_hosts
from dtrag.core.tool_approval import fingerprint
from dtrag.errors import EgressBlocked, ToolChanged, ToolServerFailed

SCHEMA = {"type": "object"}
CONFIG = ServerConfig(name="near", command=("(in this process)",), start_seconds=20.0, answer_seconds=10.0)
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Near:
    """A server in this process. `said` is what its tool returns, `pages` how its tools are told."""

    def __init__(self, *pages: list[str]) -> None:
        self.pages = list(pages) or [["find"]]
        self.said: types.CallToolResult | None = None
        self.slow = False
        self.lists = 0
        self.connections = 0
        self.bus = InMemorySubscriptionBus()

    async def on_list(self, context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        self.lists += 1
        if self.slow:
            await asyncio.sleep(60)
        number = int(params.cursor) if params and params.cursor else 0
        more = str(number + 1) if number + 1 < len(self.pages) else None
        tools = [types.Tool(name=name, input_schema=SCHEMA) for name in self.pages[number]]
        return types.ListToolsResult(tools=tools, next_cursor=more)

    async def on_call(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name == "announce":
            await self.bus.publish(ToolsListChanged())
        return self.said or types.CallToolResult(content=[types.TextContent(type="text", text="found")])

    def server(self, config: ServerConfig = CONFIG) -> McpServer:
        hears = ListenHandler(self.bus)
        made = Server("near", on_list_tools=self.on_list, on_call_tool=self.on_call, on_subscriptions_listen=hears)

        def link(config: ServerConfig, health: Any) -> Any:
            self.connections += 1
            return InMemoryTransport(made)

        return McpServer(config, link)


@asynccontextmanager
async def opened(server: McpServer) -> AsyncIterator[tuple[McpServer, bytes]]:
    """The server, and the fingerprint of its first tool; closed at the end."""
    try:
        yield server, fingerprint((await server.tools())[0])
    finally:
        await server.close()


async def test_all_pages_are_read_and_no_name_counts_twice() -> None:
    near = Near(["find", "read"], ["write", "find"])
    server = near.server()
    assert [tool.name for tool in await server.tools()] == ["find", "read", "write"]
    await server.close()
    assert near.connections == 1


async def test_endless_pages_are_not_followed_for_ever() -> None:
    near = Near(*[[f"tool{number}"] for number in range(1_000)])
    server = near.server()
    assert len(await server.tools()) == connection.PAGES
    await server.close()


async def test_too_many_tools_are_refused() -> None:
    server = Near([f"tool{number}" for number in range(connection.MOST_TOOLS + 1)]).server()
    with pytest.raises(ToolServerFailed, match=r"201 tools; name at most 200 of them"):
        await server.tools()
    await server.close()


async def test_results_of_a_tool() -> None:
    near = Near()
    linked = types.ResourceLink(type="resource_link", name="a", uri="file:///a")
    text = types.TextResourceContents(uri="file:///b", text="inside")
    blob = types.BlobResourceContents(uri="file:///c", blob="aGFsbG8=")
    inside = [types.EmbeddedResource(type="resource", resource=inner) for inner in (text, blob)]
    async with opened(near.server()) as (server, mark):
        assert await server.call("find", {}, mark) == "found"
        near.said = types.CallToolResult(content=[linked, *inside])
        assert await server.call("find", {}, mark) == "(file:///a)\ninside\n(file:///c)"
        near.said = types.CallToolResult(content=[], structured_content={"rows": [1, 2]})
        assert await server.call("find", {}, mark) == {"rows": [1, 2]}


async def test_an_announced_change_is_read() -> None:
    near = Near(["find", "announce"])
    async with opened(near.server()) as (server, mark):
        await server.call("find", {}, mark)
        assert near.lists == 1
        near.pages = [["other", "announce"]]
        marks = {tool.name: fingerprint(tool) for tool in await server.tools()}
        near.pages = [["announce"]]
        await server.call("announce", {}, marks["announce"])
        await asyncio.sleep(0.1)
        with pytest.raises(ToolChanged):
            await server.call("other", {}, marks["other"])
        assert near.lists == 3


async def test_a_missing_list_is_requested_on_a_new_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    near = Near()
    async with opened(near.server()) as (server, mark):
        monkeypatch.setattr(connection, "LIST_SECONDS", 0.1)
        near.slow = True
        with pytest.raises(ToolServerFailed, match=r"did not answer within 0\.1 seconds"):
            await server.tools()
        assert near.connections == 2
        near.slow = False
        assert await server.call("find", {}, mark) == "found"
        assert near.connections == 3


async def test_a_closed_server_is_not_opened_again() -> None:
    server = Near().server()
    await server.tools()
    await server.close()
    with pytest.raises(ToolServerFailed, match="closed"):
        await server.tools()
    await server.close()


async def test_closing_while_it_starts() -> None:
    @asynccontextmanager
    async def never(config: ServerConfig, health: Any) -> AsyncIterator[Any]:
        await asyncio.sleep(60)
        yield None

    server = McpServer(CONFIG, never)
    asking = asyncio.create_task(server.tools())
    await asyncio.sleep(0.05)
    await server.close()
    with pytest.raises(ToolServerFailed, match="closed"):
        await asking


@asynccontextmanager
async def web(
    answer: Answer, start_seconds: float = 20.0, resolve: Resolve = resolve
) -> AsyncIterator[tuple[McpServer, int]]:
    """A client of a server on the loopback address that answers every connection by `answer`; its port."""

    async def asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        try:
            await answer(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.transport.abort()

    listening = await asyncio.start_server(asked, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    config = ServerConfig(
        name="far", url=f"http://127.0.0.1:{port}/mcp", start_seconds=start_seconds, answer_seconds=2.0
    )
    [client] = servers([config], allowed_hosts(f"127.0.0.1:{port}"), resolve)
    try:
        yield client, port
    finally:
        await client.close()
        listening.close()
        await listening.wait_closed()


def canned(head: str, body: bytes = b"") -> Answer:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = f"HTTP/1.1 {head}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(lines.encode() + body)
        await writer.drain()

    return answer


def endless(kind: str, piece: bytes) -> Answer:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode())
        while True:
            writer.write(piece)
            await writer.drain()

    return answer


@pytest.mark.parametrize(
    "answer",
    [
        canned("200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip", gzip.compress(b"0" * 10_000_000)),
        canned("200 OK\r\nContent-Type: application/json", b"{"),
        canned("200 OK\r\nContent-Type: text/html", b"<html>"),
        canned("500 Oops"),
        canned("404 Not Found"),
        canned("202 Accepted"),
        canned("307 Moved\r\nLocation: http://169.254.169.254/latest"),
        canned("200 OK\r\nContent-Type: text/event-stream", b"data: \xff\xfe\n\n"),
        endless("application/json", b" " * 65_536),
        endless("text/event-stream", b"x" * 65_536),
    ],
    ids=["packed", "cut", "html", "500", "404", "202", "redirect", "utf-8", "endless", "endless-event"],
)
async def test_bad_http_is_a_failure_of_that_server(answer: Answer) -> None:
    async with web(answer) as (client, _):
        async with asyncio.timeout(30):
            with pytest.raises(ToolServerFailed, match="'far' cannot be used: "):
                await client.tools()
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("mcp-")]


async def test_an_answer_to_another_request_is_not_the_answer() -> None:
    """It is passed over, as the protocol has it, and the true answer is waited for as long as a start may take."""
    other = canned("200 OK\r\nContent-Type: application/json", b'{"jsonrpc": "2.0", "id": 7, "result": {}}')
    async with web(other, start_seconds=0.5) as (client, _):
        with pytest.raises(ToolServerFailed, match=r"'far' cannot be used: it did not start within 0\.5 seconds"):
            await client.tools()
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("mcp-")]


async def test_names_are_judged_when_they_are_connected_to() -> None:
    addresses = ["93.184.216.34", "127.0.0.1"]

    async def resolve(host: str, port: int) -> list[str]:
        return [addresses.pop()]

    async def unknown(host: str, port: int) -> list[str]:
        raise OSError("no such name")

    config = ServerConfig(name="far", url="http://tools.example.org/mcp")
    [client] = servers([config], frozenset(), resolve)
    with pytest.raises(EgressBlocked):
        await client.tools()
    await client.close()
    [client] = servers([config], frozenset(), unknown)
    with pytest.raises(ToolServerFailed, match="'far' cannot be used: its name cannot be resolved"):
        await client.tools()
    await client.close()


async def test_the_next_address_is_tried() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.9", "127.0.0.1"]  # the first one does not listen

    async with web(canned("404 Not Found"), resolve=resolve) as (client, _):
        with pytest.raises(ToolServerFailed) as caught:
            await client.tools()
    assert "does not accept connections" not in str(caught.value)


async def test_a_header_that_would_split_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAR_KEY", "x\r\nHost: evil")
    config = ServerConfig(name="far", url="http://tools.example.org/mcp", headers=(("X-Key", "FAR_KEY"),))
    [client] = servers([config], frozenset())
    with pytest.raises(ToolServerFailed, match="'FAR_KEY' holds characters that a header cannot have") as caught:
        await client.tools()
    assert "evil" not in str(caught.value)
    await client.close()
