"""The connections of a service: how many there may be, and how long a client may keep one without using it.

Beyond the limit the connection that has been idle longest is closed for a new one. When every one is busy, the new
client is told so: 503 with `Retry-After`, except that `/livez` is always answered. What a client does not finish in
time is ended: the head of a request, a body that an answer did not wait for, and an answer that it does not read.
A stream of events has no limit as long as its client reads it.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import secrets
import time
from dataclasses import dataclass
from typing import Protocol

from starlette.types import Receive, Scope, Send

from dtrag.delivery.api.errors import error_response

_LOG = logging.getLogger(__name__)

MOST_DESCRIPTORS = 65_536
"""The limit of descriptors is raised to this at most: a million would only make tables larger."""
RESERVED_DESCRIPTORS = 128
"""Descriptors for everything but connections of clients: database, files, parser, models."""
REFUSED_AT_ONCE = 64
"""Connections beyond the limit that are being told so. Further clients wait in the queue of the socket."""
LEAST_IDLE_S = 0.5
"""A connection that is younger may have a request on its way: it is not closed for another one."""
LONGEST_RETRY_S = 5
ALWAYS_ANSWERED = "/livez"
"""The route that says that the process answers: whatever else there is to do."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """`most` connections at once; times in seconds, rates in bytes a second.

    A connection may stay `idle` after an answer. The head of a request has to come within `head`. What has to be sent
    or read has `grace` and the time that its bytes take at `rate`.
    """

    most: int = 2_000
    idle: float = 60.0
    head: float = 10.0
    grace: float = 20.0
    rate: int = 1_024

    def patience(self, size: int) -> float:
        """How long the transfer of so many bytes may take."""
        return self.grace + size / self.rate


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open descriptors as far as the system allows; returns the limit that holds then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            return soft  # macOS has a lower limit than the one it names
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def affordable(most: int, descriptors: int) -> int:
    """How many of `most` connections so many descriptors allow."""
    if descriptors == resource.RLIM_INFINITY:
        return most
    return max(1, min(most, descriptors - RESERVED_DESCRIPTORS - REFUSED_AT_ONCE))


class Connection(Protocol):
    """What the registry needs to know of a connection."""

    def idle_since(self) -> float | None:
        """Since when it has been waiting for a request (`time.monotonic`); None while there is one."""

    def enforce(self, now: float, limits: ConnectionLimits) -> None:
        """End it if its client has used up a time."""

    def close_idle(self) -> None:
        """Close it in order."""


class Connections:
    """The connections of one service; used on its event loop only."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._active: set[Connection] = set()
        self._refused: set[Connection] = set()
        self._opening = 0
        self._none_idle_until = 0.0

    def may_accept(self) -> bool:
        """Whether one more may be taken from the socket: to be served, or to be told that there are too many."""
        there = len(self._active) + len(self._refused) + self._opening
        return there < self.limits.most + REFUSED_AT_ONCE

    def opening(self, change: int) -> None:
        """One more or less is between the socket and its first event."""
        self._opening += change

    def admit(self, connection: Connection) -> bool:
        """Take a new connection in. False: it is one too many, and is to be refused."""
        if len(self._active) < self.limits.most or self._close_an_idle_one():
            self._active.add(connection)
            return True
        _LOG.warning("connections are refused: %d are busy (DTRAG_CONNECTIONS_AT_ONCE)", len(self._active))
        self._refused.add(connection)
        return False

    def leave(self, connection: Connection) -> None:
        """A connection has ended."""
        self._active.discard(connection)
        self._refused.discard(connection)

    def __len__(self) -> int:
        return len(self._active)

    async def watch(self, every: float = 0.5) -> None:
        """End those whose clients have used up a time, until cancelled."""
        while True:
            await asyncio.sleep(every)
            now = time.monotonic()
            for connection in [*self._active, *self._refused]:
                connection.enforce(now, self.limits)

    def _close_an_idle_one(self) -> bool:
        now = time.monotonic()
        if now < self._none_idle_until:
            return False
        idle = [(since, connection) for connection in self._active if (since := connection.idle_since()) is not None]
        since, oldest = min(idle, key=lambda pair: pair[0], default=(now, None))
        if oldest is None or now - since < LEAST_IDLE_S:
            self._none_idle_until = now + LEAST_IDLE_S / 4
            return False
        self._active.discard(oldest)
        oldest.close_idle()
        return True


async def too_many_connections(scope: Scope, receive: Receive, send: Send) -> None:
    """The ASGI application of connections that are refused."""
    wait_s = 1 + secrets.randbelow(LONGEST_RETRY_S)
    detail = f"The service has as many connections as it can take. Try again in {wait_s} seconds."
    headers = {"Retry-After": str(wait_s), "Connection": "close"}
    await error_response(503, detail, "Overloaded", headers=headers)(scope, receive, send)
