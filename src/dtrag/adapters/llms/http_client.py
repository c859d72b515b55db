"""An HTTP client whose connections are few and whose replies end: no server can fill our memory."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

from dtrag.adapters.web.bounded_body import bound

MAX_BODY = 8 * 2**20
"""Bytes of one reply. A streamed token takes some 300 bytes, so that this is space for more than 20,000 of them."""
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


class ResponseRefused(Exception):
    """A response beyond the limit, or a compressed one, whose size is unknown. The message is the reason."""


def bounded_client(*, local: bool) -> Any:
    """The kind of client that the installed `openai` takes. A server on this machine is reached without a proxy."""
    import openai

    library = _library(openai.DefaultAsyncHttpxClient)

    async def limit(response: Any) -> None:
        opened = _opened.get()
        if opened is not None:
            opened.append(response)
        bound(response, MAX_BODY, ResponseRefused)

    return openai.DefaultAsyncHttpxClient(
        timeout=None,  # every call has a limit of its own
        trust_env=not local,
        follow_redirects=False,
        headers={"Accept-Encoding": "identity"},
        limits=library.Limits(max_connections=CONNECTIONS, max_keepalive_connections=KEPT_OPEN),
        event_hooks={"response": [limit]},
    )


def _library(client: type[Any]) -> Any:
    """httpx or its successor: the library of the client class, which depends on the version of `openai`."""
    base = next(base for base in client.__mro__ if base.__name__ == "AsyncClient")
    return sys.modules[base.__module__.partition(".")[0]]
