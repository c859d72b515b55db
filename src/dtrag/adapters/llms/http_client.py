"""An HTTP client for language models, with limits on its connections and on the size of responses."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

from dtrag.adapters.web.bounded_body import bound

MAX_BODY = 8 * 2**20
"""Bytes of one reply. A streamed token takes some 300 bytes, so that more than 20,000 of them fit."""
CONNECTIONS, KEPT_OPEN = 128, 32


_opened: ContextVar[list[Any] | None] = ContextVar("dtrag_llm_responses", default=None)


@asynccontextmanager
async def closing_responses() -> AsyncIterator[None]:
    """Close the responses that arrive inside the block; also their connections, unless a response was read completely.

    Libraries leave that to their generators: one that is abandoned between two pieces lives until it is
    garbage-collected.
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
    """A client of the class that the installed `openai` accepts. A `local` server is reached without a proxy."""
    import openai

    library = _library(openai.DefaultAsyncHttpxClient)

    async def limit(response: Any) -> None:
        opened = _opened.get()
        if opened is not None:
            opened.append(response)
        bound(response, MAX_BODY, ResponseRefused)

    return openai.DefaultAsyncHttpxClient(
        timeout=None,  # every call has its own limit
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
