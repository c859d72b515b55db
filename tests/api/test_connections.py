"""Connections: capped, with deadlines for what a client does not send or read, and kept for clients that use them."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvicorn
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from dtrag.delivery.api.connections import (
    LEAST_IDLE_S,
    REFUSED_AT_ONCE,
    RESERVED_DESCRIPTORS,
    ConnectionLimits,
    Connections,
    affordable,
)
from dtrag.delivery.api.http_server import HttpServer
from dtrag.delivery.api.request_guard import BodyLimit, Pacing
from dtrag.delivery.listening import listen

GET = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"
SHORT = ConnectionLimits(idle=30, head=0.5, grace=0.5, rate=1 << 20)
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def reply(send: Send, body: bytes, *, more: bool = False) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """/busy answers when its client leaves, /events says something every .2 s, /large sends 64 MiB."""
    if scope["path"] == "/busy":
        while (await receive())["type"] != "http.disconnect":
            pass
    elif scope["path"] == "/events":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        for number in range(8):
            await asyncio.sleep(0.2)
            await send({"type": "http.response.body", "body": b": %d\n\n" % number, "more_body": True})
        await send({"type": "http.response.body", "body": b"data: end\n\n"})
    elif scope["path"] == "/large":
        await reply(send, b"x" * (64 << 20))
    elif scope["path"] == "/body":
        received = 0
        while (message := await receive()).get("more_body"):
            received += len(message["body"])
        await reply(send, b"%d" % (received + len(message["body"])))
    else:
        await reply(send, b"ok")


@dataclass
class Server:
    """A server in this process, and those who have connected to it."""

    port: int
    connections: Connections
    clients: list[asyncio.StreamWriter] = field(default_factory=list)

    async def connect(self, sent: bytes = b"") -> Streams:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.clients.append(writer)
        writer.write(sent)
        return reader, writer

    async def until(self, connected: int) -> None:
        """Returns when it has so many connections."""
        async with asyncio.timeout(10):
            while len(self.connections) != connected:  # noqa: ASYNC110 - it has no event for this
                await asyncio.sleep(0.01)


@asynccontextmanager
async def serving(limits: ConnectionLimits, app: Any = application) -> AsyncIterator[Server]:
    listener = listen("127.0.0.1", 0)
    connections = Connections(limits)
    config = uvicorn.Config(app, lifespan="off", log_config=None, ws="none", timeout_keep_alive=30)
    server = HttpServer(config, connections, lambda: None)
    running = asyncio.create_task(server.serve([listener]))
    served = Server(listener.getsockname()[1], connections)
    try:
        yield served
    finally:
        for writer in served.clients:
            writer.close()
        server.should_exit = server.force_exit = True
        await running
        listener.close()


async def ended(streams: Streams, seconds: float) -> bytes:
    """What still came before the server hung up."""
    async with asyncio.timeout(seconds):
        try:
            return await streams[0].read()
        except ConnectionResetError:
            return b""


async def head_of(streams: Streams) -> bytes:
    async with asyncio.timeout(10):
        return await streams[0].readuntil(b"\r\n\r\n")


async def test_the_longest_idle_connection_is_closed() -> None:
    async with serving(ConnectionLimits(most=3)) as server:
        used = await server.connect(GET % b"/")
        await head_of(used)
        idle = [await server.connect() for _ in range(2)]
        await server.until(3)
        await asyncio.sleep(LEAST_IDLE_S * 1.2)
        newest = await server.connect(GET % b"/")
        assert (await head_of(newest)).startswith(b"HTTP/1.1 200")
        assert await ended(used, 5) == b"ok"
        assert len(server.connections) == 3
        assert not idle[0][0].at_eof()


async def test_a_request_that_was_not_read_yet_is_answered() -> None:
    """The event loop was busy while it came: its connection only looks idle."""
    async with serving(ConnectionLimits(most=1, head=LEAST_IDLE_S)) as server:
        first = await server.connect()
        await server.until(1)
        os.write(first[1].get_extra_info("socket").fileno(), GET % b"/")
        time.sleep(LEAST_IDLE_S * 1.2)  # noqa: ASYNC251 - this is the busy event loop
        (waiting,) = server.connections._active
        waiting.enforce(time.monotonic(), server.connections.limits)
        assert not server.connections._close_an_idle_one()
        assert (await head_of(first)).startswith(b"HTTP/1.1 200")


async def test_a_connection_that_is_closed_before_its_first_request_gets_503() -> None:
    async with serving(ConnectionLimits(most=1)) as server:
        silent = await server.connect()
        await server.until(1)
        await asyncio.sleep(LEAST_IDLE_S * 1.2)
        assert (await head_of(await server.connect(GET % b"/"))).startswith(b"HTTP/1.1 200")
        refused = (await ended(silent, 5)).lower()
        assert refused.startswith(b"http/1.1 503")
        assert b"retry-after: " in refused


async def test_beyond_the_limit_clients_get_503_and_liveness_is_answered() -> None:
    async with serving(ConnectionLimits(most=3)) as server:
        busy = [await server.connect(GET % b"/busy") for _ in range(3)]
        await server.until(3)
        for _ in range(REFUSED_AT_ONCE + 5):  # each gives back its place
            refused = (await ended(await server.connect(GET % b"/search"), 5)).lower()
            assert refused.startswith(b"http/1.1 503")
            assert b"retry-after: " in refused
            assert b"connection: close" in refused
            assert b'"type":"overloaded"' in refused
        assert (await ended(await server.connect(GET % b"/livez"), 5)).endswith(b"ok")
        assert await ended(await server.connect(), 3 * 2) == b""  # says nothing: not kept for long
        busy[0][1].close()
        await server.until(2)
        assert (await head_of(await server.connect(GET % b"/"))).startswith(b"HTTP/1.1 200")


async def test_missing_headers_end_the_connection() -> None:
    async with serving(SHORT) as server:
        silent, half = await server.connect(), await server.connect(b"GET / HTTP/1.1\r\nHost: loc")
        again = await server.connect(GET % b"/")
        assert (await head_of(again)).startswith(b"HTTP/1.1 200")
        again[1].write(b"GET /slow")
        answer = await ended(half, 3 * 2)
        assert answer.startswith(b"HTTP/1.1 408")
        assert b'"type": "RequestTimeout"' in answer
        assert await ended(silent, 3 * 2) == b""
        assert b"HTTP/1.1 408" in await ended(again, 3 * 2)
        assert len(server.connections) == 0


async def test_an_active_connection_stays_open() -> None:
    async with serving(SHORT) as server:
        kept = await server.connect()
        for _ in range(2):
            kept[1].write(GET % b"/")
            assert (await head_of(kept)).startswith(b"HTTP/1.1 200")
            assert await kept[0].readexactly(2) == b"ok"
            await asyncio.sleep(2 * SHORT.head)


async def test_a_stream_of_events_is_longer_than_every_deadline() -> None:
    limits = ConnectionLimits(idle=0.2, head=0.2, grace=0.2, rate=1 << 20)
    async with serving(limits) as server:
        stream = await server.connect(GET % b"/events")
        async with asyncio.timeout(10):
            assert (await stream[0].readuntil(b"data: end\n\n")).count(b": ") >= 8


async def test_an_answer_that_is_not_read_ends_the_connection() -> None:
    async with serving(ConnectionLimits(head=1, grace=1, rate=1 << 30)) as server:
        receiving = socket.socket()
        receiving.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        receiving.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(receiving, ("127.0.0.1", server.port))
        await loop.sock_sendall(receiving, GET % b"/large")
        await server.until(1)
        await server.until(0)
        receiving.close()


async def test_an_unread_body_has_a_deadline() -> None:
    async with serving(SHORT) as server:
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
        slow = await server.connect(head)
        assert (await head_of(slow)).startswith(b"HTTP/1.1 200")
        started = time.monotonic()
        while len(server.connections):
            assert time.monotonic() - started < 3 * 2
            slow[1].write(b"x")
            await asyncio.sleep(0.1)


async def test_bodies_need_a_minimum_rate() -> None:
    async def routes(scope: Scope, receive: Receive, send: Send) -> None:
        limited = BodyLimit(application, lambda _: 1 << 20, ConnectionLimits(grace=0.5, rate=1_000))
        try:
            await limited(scope, receive, send)
        except HTTPException as error:  # what the framework does around the routes
            assert error.status_code == 408
            await reply(send, b"408")

    head = b"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    async with serving(ConnectionLimits(), routes) as server:
        quick = await server.connect(head % 2_000 + b"x" * 1_000)
        await asyncio.sleep(0.8)  # 1,000 bytes are worth a second more
        quick[1].write(b"x" * 1_000)
        await head_of(quick)
        assert await quick[0].readexactly(4) == b"2000"
        slow = await server.connect(head % 2_000)
        for _ in range(5):
            slow[1].write(b"x")
            await asyncio.sleep(0.2)
        await head_of(slow)
        assert await slow[0].readexactly(3) == b"408"


async def test_accepting_pauses_while_there_are_no_descriptors(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = 3

    class Exhausted(socket.socket):
        def accept(self) -> Any:
            nonlocal failures
            failures -= 1
            if failures >= 0:
                raise OSError(errno.EMFILE, "Too many open files")
            return super().accept()

    monkeypatch.setattr("dtrag.delivery.api.http_server.EXHAUSTED_S", 0.05)
    monkeypatch.setattr(socket, "socket", Exhausted)
    async with serving(ConnectionLimits()) as server:
        assert (await head_of(await server.connect(GET % b"/"))).startswith(b"HTTP/1.1 200")
    assert [entry.message for entry in caplog.records].count("no connection can be accepted: Too many open files") == 3


def test_connections_leave_descriptors_for_the_rest() -> None:
    assert affordable(2_000, 65_536) == 2_000
    assert affordable(2_000, 1_024) == 1_024 - RESERVED_DESCRIPTORS - REFUSED_AT_ONCE
    assert affordable(2_000, 100) == 1


async def test_requests_begin_in_order_and_liveness_at_once() -> None:
    begun: list[str] = []
    gate = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        begun.append(scope["path"])
        await gate.wait()

    pacing = Pacing(app)

    def request(path: str) -> Awaitable[None]:
        return asyncio.ensure_future(pacing({"type": "http", "path": path}, None, None))  # type: ignore[arg-type]

    many = [request(f"/{number}") for number in range(300)]
    cancelled = many.pop(150)
    live = request("/livez")
    for _ in range(3):
        await asyncio.sleep(0)
    assert "/livez" in begun
    assert len(begun) < 10
    cancelled.cancel()  # type: ignore[attr-defined]
    async with asyncio.timeout(10):
        while len(begun) < 300:  # noqa: ASYNC110 - passes of the loop are what is tested
            await asyncio.sleep(0)
    begun.remove("/livez")
    assert begun == [f"/{number}" for number in range(300) if number != 150]
    gate.set()
    await asyncio.gather(live, *many)
