"""A language model's server for tests: real HTTP on loopback, the OpenAI chat protocol, and everything that goes wrong.

    with ModelServer("Twenty-six days. [1]") as server:
        settings = databases.settings(llm="openai:test", llm_base_url=server.url)

What it does can be changed between requests: `server.fault = "hang"`. It runs in a thread of its own.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Literal, get_args

from tests.toy import ToyEmbedder

Fault = Literal[
    "500", "400", "401", "429", "hang", "hang-mid", "reset", "bad-json", "cut", "no-done", "flood", "one-line",
    "bad-utf8", "empty-choices", "unknown-tool", "empty-text", "length", "html", "error-event", "no-usage", "close",
    "trickle",
]  # fmt: skip
"""500, 400, 401, 429 (with Retry-After), html: statuses, and the page of a proxy. hang: never an answer; hang-mid: half
of one; trickle: white space for ever. reset: TCP reset in the middle; close: at once, without an answer. bad-json,
bad-utf8, empty-choices, unknown-tool, empty-text, error-event: 200 with such contents. cut: ends in the middle as if
all were well; no-done: whole, but without `[DONE]`. flood: 50 MB in small pieces; one-line: 50 MB without an end of
line. length: stopped by the limit of tokens. no-usage: no word about tokens."""
FAULTS: tuple[Fault, ...] = get_args(Fault)
HARMLESS: tuple[Fault, ...] = ("no-done", "no-usage")
"""Those that leave the answer whole."""
FLOOD = 50_000_000
_BROKEN_EVENTS: dict[Fault | None, bytes] = {
    "bad-json": b'{"choices": [{"delta": {"con',
    "bad-utf8": b'{"choices": [{"index": 0, "delta": {"content": "\xff\xfe\xc3("}}]}',
    "error-event": b'{"error": {"message": "the model ran out of memory"}}',
}

Messages = list[dict[str, Any]]


def echo(messages: Messages) -> str:
    """The last message, answered."""
    return f"You said: {messages[-1]['content']}"


class ModelServer:
    """A server that answers each request with `reply` (a text, or a function of the messages) after `delay` seconds.

    `fault` is what goes wrong: with every request, or a sequence for one request each (None: nothing), after which
    nothing does, or a function of the request's body. `retry_after` goes with 429, `words` stand in the error of 400,
    401 and 500, `content_encoding` in the header of that name. `pause` seconds lie between the pieces of a stream.
    `requests` holds the bodies, `headers` what came with them (names in lower case).
    """

    def __init__(
        self,
        reply: str | Callable[[Messages], str] = echo,
        *,
        delay: float = 0.0,
        fault: Fault | Sequence[Fault | None] | Callable[[dict[str, Any]], Fault | None] | None = None,
        retry_after: str = "1",
        pause: float = 0.0,
    ) -> None:
        self.reply = reply
        self.delay = delay
        self.fault = fault
        self.retry_after = retry_after
        self.pause = pause
        self.words = ""
        self.content_encoding = ""
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.open_connections = self.most_connections = 0
        self.running = self.most_running = 0
        self.bytes_sent = self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="model-server", daemon=True)
        self._ready = threading.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The base of the protocol, for DTRAG_LLM_BASE_URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> ModelServer:
        self._thread.start()
        assert self._ready.wait(10), "the model server did not start"
        return self

    def __exit__(self, *exception: object) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)

    def wait_until_idle(self, seconds: float = 2.0) -> bool:
        """Whether nobody is connected within so many seconds."""
        deadline = time.monotonic() + seconds
        while self.open_connections and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.open_connections == 0

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        listener = socket.create_server(("127.0.0.1", 0), backlog=1_024)
        self.port = listener.getsockname()[1]
        server = self._loop.run_until_complete(asyncio.start_server(self._accept, sock=listener, limit=2**22))
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in self._tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = self._loop.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open_connections += 1
        self.most_connections = max(self.most_connections, self.open_connections)
        try:
            while (request := await _request(reader)) is not None:
                path, headers, body = request
                if not await self._answer(_Sender(self, reader, writer), path, headers, body):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, _Gone):
            pass
        finally:
            self.open_connections -= 1
            writer.transport.abort()

    async def _answer(self, sender: _Sender, path: str, headers: dict[str, str], body: bytes) -> bool:
        """Whether the connection may be used again."""
        if path == "/v1/models":
            await sender.whole(200, {"object": "list", "data": [{"id": "test", "object": "model"}]})
            return True
        if path == "/v1/embeddings":
            asked = json.loads(body)
            self.requests.append(asked)
            self.headers.append(headers)
            if (fault := self._next_fault(asked)) in {"500", "400", "401"}:
                await sender.whole(int(str(fault)), {"error": {"message": self.words or f"fault {fault}"}})
            else:
                await sender.whole(200, _embeddings(asked))
            return True
        if path != "/v1/chat/completions":
            await sender.whole(404, {"error": {"message": f"no such path: {path}"}})
            return True
        asked = json.loads(body)
        self.requests.append(asked)
        self.headers.append(headers)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            if self.delay:
                await sender.sleep(self.delay)
            return await sender.completion(asked, self._next_fault(asked))
        finally:
            self.running -= 1

    def _next_fault(self, asked: dict[str, Any]) -> Fault | None:
        if self.fault is None or isinstance(self.fault, str):
            return self.fault
        if callable(self.fault):
            return self.fault(asked)
        number = len(self.requests) - 1
        return self.fault[number] if number < len(self.fault) else None

    def text_for(self, messages: Messages) -> str:
        """What the model says to the messages."""
        return self.reply if isinstance(self.reply, str) else self.reply(messages)


class _Gone(Exception):
    """Whoever asked has left."""


async def _request(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes] | None:
    """Path, headers and body of the next request, or None at the end of the connection."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.IncompleteReadError:
        return None
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return head[0].split()[1], headers, body


class _Sender:
    """Sends one answer over a connection."""

    def __init__(self, server: ModelServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.server, self._reader, self._writer = server, reader, writer

    async def sleep(self, seconds: float) -> None:
        """Wait, unless the other side leaves: then `_Gone`."""
        try:
            left = await asyncio.wait_for(self._reader.read(1), seconds)
        except TimeoutError:
            return
        assert not left, "a request came before the answer to the last"
        raise _Gone

    async def write(self, data: bytes) -> None:
        self.server.bytes_sent += len(data)
        self._writer.write(data)
        await self._writer.drain()

    async def whole(self, status: int, body: dict[str, Any] | bytes, more: str = "", kind: str = "json") -> None:
        data = body if isinstance(body, bytes) else _json(body)
        await self._head(status, f"Content-Length: {len(data)}\r\n{more}", kind)
        await self.write(data)

    async def _head(self, status: int, more: str, kind: str) -> None:
        if self.server.content_encoding:
            more += f"Content-Encoding: {self.server.content_encoding}\r\n"
        content = {"json": "application/json", "sse": "text/event-stream", "html": "text/html"}[kind]
        await self.write(f"HTTP/1.1 {status} Status\r\nContent-Type: {content}\r\n{more}\r\n".encode())

    async def completion(self, asked: dict[str, Any], fault: Fault | None) -> bool:
        """Answer, or fail in the way that is asked for; whether the connection may be used again."""
        if fault in {"500", "400", "401"}:
            words = self.server.words or f"fault {fault}"
            await self.whole(int(fault), {"error": {"message": words, "type": "server_error"}})
            return True
        if fault == "429":
            retry = f"Retry-After: {self.server.retry_after}\r\n" if self.server.retry_after else ""
            await self.whole(429, {"error": {"message": "slow down"}}, retry)
            return True
        if fault == "html":
            await self.whole(200, b"<html><body>Sign in to the network</body></html>", kind="html")
            return True
        if fault == "close":
            return False
        if fault == "hang":
            await self.sleep(3_600)
        if asked.get("stream"):
            return await self._stream(asked, fault)
        return await self._plain(asked, fault)

    async def _plain(self, asked: dict[str, Any], fault: Fault | None) -> bool:
        data = _json(self._completion(asked, fault))
        if fault == "bad-json":
            data = data[: len(data) // 2]
        if fault == "bad-utf8":
            data = data.replace(b'"content": "', b'"content": "\xff\xfe', 1)
        if fault in {"flood", "one-line"}:
            data = data.replace(b'"content": "', b'"content": "' + b"flood " * (FLOOD // 6), 1)
        if fault in {"hang-mid", "reset", "cut", "no-done", "trickle"}:
            await self._head(200, f"Content-Length: {len(data) if fault != 'trickle' else FLOOD}\r\n", "json")
            await self.write(b" " if fault == "trickle" else data if fault == "no-done" else data[: len(data) // 2])
            return await self._break_off(fault, b" ")
        await self.whole(200, data)
        return True

    async def _break_off(self, fault: Fault, filler: bytes) -> bool:
        if fault == "hang-mid":
            await self.sleep(3_600)
        while fault == "trickle":
            await self.write(filler)
            await self.sleep(0.05)
        if fault == "reset":  # what lingers for no time is not closed, but reset
            raw = self._writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._writer.transport.abort()
        return False

    def _completion(self, asked: dict[str, Any], fault: Fault | None) -> dict[str, Any]:
        text = self.server.text_for(asked["messages"])
        message: dict[str, Any] = {"role": "assistant", "content": "" if fault == "empty-text" else text}
        finish = "length" if fault == "length" else "stop"
        if fault == "unknown-tool":
            message, finish = {"role": "assistant", "content": None, "tool_calls": [_tool_call()]}, "tool_calls"
        choices = [{"index": 0, "message": message, "finish_reason": finish}]
        made: dict[str, Any] = {"id": "chat-1", "object": "chat.completion", "created": 1, "model": asked["model"]}
        made["choices"] = [] if fault == "empty-choices" else choices
        if fault == "error-event":
            return {"error": {"message": "the model ran out of memory"}}
        return made if fault == "no-usage" else made | {"usage": usage_of(asked["messages"], text)}

    async def _stream(self, asked: dict[str, Any], fault: Fault | None) -> bool:
        await self._head(200, "Transfer-Encoding: chunked\r\n", "sse")
        async for event in self._events(asked, fault):
            await self._chunk(event)
            if self.server.pause:
                await self.sleep(self.server.pause)
        if fault in {"hang-mid", "reset", "trickle"}:
            return await self._break_off(fault, b"1\r\n\n\r\n")
        await self.write(b"0\r\n\r\n")
        return True

    async def _chunk(self, data: bytes) -> None:
        await self.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def _events(self, asked: dict[str, Any], fault: Fault | None) -> AsyncIterator[bytes]:
        text = self.server.text_for(asked["messages"])
        pieces = [text[start : start + 12] for start in range(0, len(text), 12)]
        if fault == "one-line":
            yield b'data: {"choices": [{"index": 0, "delta": {"content": "'
            for _ in range(FLOOD // 60_000):
                yield b"flood " * 10_000
        if fault == "flood":
            event = _event(asked, {"content": "flood " * 100})
            for _ in range(FLOOD // len(event)):
                yield event
        if fault in {"hang-mid", "reset", "cut", "bad-json", "bad-utf8", "trickle", "error-event"}:
            pieces = pieces[: max(1, len(pieces) // 2)]
        if fault not in {"empty-choices", "unknown-tool", "empty-text"}:
            for piece in pieces:
                yield _event(asked, {"role": "assistant", "content": piece})
        if fault in {"hang-mid", "reset", "cut", "trickle"}:
            return
        for event in self._end(asked, fault, text):
            yield event

    def _end(self, asked: dict[str, Any], fault: Fault | None, text: str) -> Iterator[bytes]:
        if fault in _BROKEN_EVENTS:
            yield b"data: " + _BROKEN_EVENTS[fault] + b"\n\n"
        if fault == "empty-choices":
            yield _event(asked, None)
        if fault == "unknown-tool":
            yield _event(asked, {"role": "assistant", "content": None, "tool_calls": [{"index": 0} | _tool_call()]})
        yield _event(asked, {}, {"length": "length", "unknown-tool": "tool_calls"}.get(fault or "", "stop"))
        if (asked.get("stream_options") or {}).get("include_usage") and fault != "no-usage":
            yield _event(asked, None, usage=usage_of(asked["messages"], text))
        if fault != "no-done":
            yield b"data: [DONE]\n\n"


def _json(value: object) -> bytes:
    """As most servers write it: letters as they are, unless they are none."""
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


def _tool_call() -> dict[str, Any]:
    return {"id": "call-1", "type": "function", "function": {"name": "format_disk", "arguments": '{"path": "/"}'}}


def _event(asked: dict[str, Any], delta: dict[str, Any] | None, finish: str | None = None, **more: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    event = {"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": asked["model"]}
    return b"data: " + _json(event | {"choices": choices} | more) + b"\n\n"


def usage_of(messages: Messages, text: str) -> dict[str, int]:
    """What this server says that an answer took: a token for each word."""
    asked = sum(len(str(message["content"]).split()) for message in messages)
    said = len(text.split())
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


def _embeddings(asked: dict[str, Any]) -> dict[str, Any]:
    """Vectors of hashed words, the last text first; a server that knows that money back is a refund."""
    embedder = ToyEmbedder(dim=1536)
    vectors = embedder.embed_documents([text.replace("money back", "refunds paid") for text in asked["input"]])
    rows = [{"object": "embedding", "index": n, "embedding": [3 * float(x) for x in v]} for n, v in enumerate(vectors)]
    return {
        "object": "list",
        "model": asked["model"],
        "data": rows[::-1],
        "usage": {"prompt_tokens": 1, "total_tokens": 1},
    }
