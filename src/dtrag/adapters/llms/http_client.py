"""An HTTP client for language models, with limits on its connections and on the size of responses; why calls fail."""

from __future__ import annotations

import email.utils
import random
import re
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from dtrag.adapters.web.fetch import bound

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


ATTEMPTS = 5
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 8.0
WORTH_IT_S = 0.1
"""The first pause is random up to this, each further one up to twice the one before (full jitter).
Less time than `WORTH_IT_S` behind it is not enough for another attempt."""
_LONGEST_WORDS = 160
_PASSING = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
_CONNECTION = frozenset({"APIConnectionError", "TransportError", "ConnectionError", "gaierror"})
_KEYS = re.compile(r"\b(?:sk|pk|rk|gsk|xai|AIza)[-_]?[\w*.-]{6,}")


class Unusable(Exception):
    """A reply without an answer. The message is the reason."""


@dataclass(frozen=True, slots=True)
class Failure:
    """`reason` is a sentence without any key. `retry_after` in seconds, where the server sent it."""

    reason: str
    passing: bool
    status: int | None = None
    retry_after: float | None = None


def explain(error: Exception, key: str) -> Failure:
    """The failure behind an error. Its reason never holds `key`, even if the server quotes it."""
    if isinstance(error, Unusable):
        return Failure(str(error), passing=False)
    chain = tuple(_chain(error))
    if any(isinstance(cause, ResponseRefused) for cause in chain):
        return Failure(str(next(cause for cause in chain if isinstance(cause, ResponseRefused))), passing=False)
    for cause in chain:
        status = _status(cause)
        if status is not None:
            reason = f"its server replied with {status} ({_words(cause, key)})."
            return Failure(reason, status in _PASSING, status, _retry_after(cause))
    for cause in chain:
        if any(base.__name__ in _CONNECTION for base in type(cause).__mro__):
            return Failure(
                f"its server could not be reached or closed the connection ({type(cause).__name__}).", passing=True
            )
    if type(error).__name__ == "APIError":
        return Failure(f"its server reported an error ({_words(error, key)}).", passing=False)
    return Failure(f"the reply does not follow the protocol ({type(error).__name__}).", passing=False)


def pause(failure: Failure, attempt: int, seconds_left: float) -> float | None:
    """Seconds to wait before attempt number `attempt` + 1; None when there is to be none."""
    if not failure.passing or attempt >= ATTEMPTS:
        return None
    wait = random.uniform(0, min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (attempt - 1)))  # nosec  # noqa: S311 - no secret
    if failure.retry_after is not None:
        wait = failure.retry_after + min(wait, 0.25)
    return wait if wait < seconds_left - WORTH_IT_S else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came from, the outermost first; at most ten."""
    seen: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in seen and len(seen) < 10:
        seen.append(following)
        yield following
        following = following.__cause__ or following.__context__


def _status(error: BaseException) -> int | None:
    for name in ("status_code", "code"):
        status = getattr(error, name, None)
        if isinstance(status, int) and 400 <= status <= 599:
            return status
    return None


def _words(error: BaseException, key: str) -> str:
    """The beginning of the server's own message, on one line."""
    body = getattr(error, "body", None)
    told: Any = body.get("message") if isinstance(body, dict) else None
    text = " ".join(str(told or getattr(error, "message", None) or error).split())
    text = _KEYS.sub("***", text.replace(key, "***") if key else text)
    text = "".join(character for character in text if character.isprintable())
    return text[:_LONGEST_WORDS].rstrip(".") or "no reason given"


def _retry_after(error: BaseException) -> float | None:
    """Seconds, from `Retry-After` as a number or as a date; never negative."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    value = headers.get("retry-after") if headers is not None else None
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return None
    return max(0.0, seconds) if seconds == seconds else None  # noqa: PLR0124 - not a number is not equal to itself
