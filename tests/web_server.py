"""A small web server on loopback that answers with the very bytes that a test gives it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Answering = Callable[["Asked", asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Asked:
    """A request: names of headers in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class WebServer:
    """`requests` are those that came; `connections` counts also those that asked nothing."""

    port: int = 0
    connections: int = 0
    requests: list[Asked] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def allowed(self) -> frozenset[tuple[str, int]]:
        """The exception by which the server may be asked."""
        return frozenset({("127.0.0.1", self.port)})


def answer(status: int = 200, body: bytes = b"{}", content_type: str = "application/json", **headers: str) -> bytes:
    """A whole HTTP answer; underscores in the names of headers stand for dashes."""
    lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}", f"Content-Type: {content_type}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def always(said: bytes) -> Answering:
    """Gives the same answer to everybody."""

    async def give(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(said)

    return give


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return Asked(method, path, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


@asynccontextmanager
async def web_server(answering: Answering, context: ssl.SSLContext | None = None) -> AsyncIterator[WebServer]:
    """The server, while it runs."""
    running = WebServer()
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        running.connections += 1
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            asked = await _read(reader)
            running.requests.append(asked)
            await answering(asked, writer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return  # the other side has heard enough, or the test is over
        finally:
            serving.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    running.port = server.sockets[0].getsockname()[1]
    try:
        yield running
    finally:
        server.close()
        for task in list(serving):
            task.cancel()
        await asyncio.sleep(0)
