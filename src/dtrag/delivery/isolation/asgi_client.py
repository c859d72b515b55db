"""Sends requests to the ASGI application of the service without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from fastapi import FastAPI
from starlette.types import Message, Scope


@dataclass(frozen=True, slots=True)
class AsgiResponse:
    """Status, headers and body of a response."""

    status: int
    headers: Mapping[str, str]
    text: str


async def send_request(
    api: FastAPI, method: str, path: str, body: bytes, *, secret: str, content_type: str = "application/json"
) -> AsgiResponse:
    """Send one request with a key. The client disconnects when the response is complete."""
    name, _, query = path.partition("?")
    headers = {
        "host": "localhost",
        "authorization": f"Bearer {secret}",
        "content-type": content_type,
        "content-length": str(len(body)),
    }
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(name),
        "raw_path": name.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
    }
    status, answered, parts = 0, {}, []
    unread, complete = True, asyncio.Event()

    async def receive() -> Message:
        nonlocal unread
        if unread:
            unread = False
            return {"type": "http.request", "body": body, "more_body": False}
        await complete.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        nonlocal status, answered
        if message["type"] == "http.response.start":
            status = message["status"]
            answered = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in message["headers"]}
            return
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            complete.set()

    await api(scope, receive, send)
    return AsgiResponse(status, answered, b"".join(parts).decode("utf-8", "replace"))
