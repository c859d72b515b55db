"""An HTTP client whose connections are few and whose replies end: no server can fill our memory."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

MAX_BODY = 8 * 2**20
"""Bytes of one reply. A streamed token takes some 300 bytes, so that this is room for more than 20,000 of them."""
CONNECTIONS, KEPT_OPEN = 128, 32


_opened: ContextVar[list[Any] | None] = ContextVar("dtrag_llm_responses", default=None)


@asynccontextmanager
async def closing_responses() -> AsyncIterator[None]:
    """Whatever response comes inside is closed at the end, with its connection unless it was read whole.

    Libraries leave that to their generators, of which one that is given up between two pieces lives until the garbage
    collector comes round.
    """
    opened: list[Any] = []
    token = _opened.set(opened)
    try:
        yield
    finally:
        _opened.reset(token)
        for response in opened:
            await response.aclose()


class TooLarge(Exception):
    """A reply beyond the limit, or one whose size cannot be told before it is unpacked."""


def bounded_client(*, local: bool) -> Any:
    """The kind of client that the installed `openai` takes. A server on this machine is reached without a proxy."""
    import openai

    library = _library(openai.DefaultAsyncHttpxClient)
    bounded_stream = _bounded_stream(library)

    async def bound(response: Any) -> None:
        opened = _opened.get()
        if opened is not None:
            opened.append(response)
        if response.headers.get("content-encoding", "identity") != "identity":
            raise TooLarge("the reply came compressed, which was not asked for.")
        response.stream = bounded_stream(response.stream)

    return openai.DefaultAsyncHttpxClient(
        timeout=None,  # every call has a limit of its own
        trust_env=not local,
        follow_redirects=False,
        headers={"Accept-Encoding": "identity"},
        limits=library.Limits(max_connections=CONNECTIONS, max_keepalive_connections=KEPT_OPEN),
        event_hooks={"response": [bound]},
    )


def _library(client: type[Any]) -> Any:
    """httpx or its successor: the library of the client class, which depends on the version of `openai`."""
    base = next(base for base in client.__mro__ if base.__name__ == "AsyncClient")
    return sys.modules[base.__module__.partition(".")[0]]


def _bounded_stream(library: Any) -> type[Any]:
    class BoundedStream(library.AsyncByteStream):  # type: ignore[misc]
        """The body of a reply, which raises `TooLarge` where it becomes too long."""

        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            total = 0
            async for part in self._stream:
                total += len(part)
                if total > MAX_BODY:
                    raise TooLarge(f"the reply was larger than {MAX_BODY // 2**20} MiB.")
                yield part

        async def aclose(self) -> None:
            await self._stream.aclose()

    return BoundedStream
