"""Limits of connections: their number, and the time that a client may leave one unused.

Beyond the limit the connection that has been idle longest is closed for a new one. If all are busy, the new client gets
a 503 with `Retry-After`; only `/livez` is always answered. Slow clients are disconnected: while sending the head of a
request, a body for which the response did not wait, or while reading a response. An event stream has no limit as long
as its client reads it.
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

from dtrag.counts import CURRENT, Counts, Row
from dtrag.delivery.api.errors import error_response

_LOG = logging.getLogger(__name__)

MOST_DESCRIPTORS = 65_536
"""Maximum to which the limit of descriptors is raised: more would only enlarge tables."""
RESERVED_DESCRIPTORS = 128
"""Descriptors reserved for everything but client connections: database, files, parser, models."""
REFUSED_AT_ONCE = 64
"""Connections beyond the limit that get a 503. Further clients wait in the queue of the socket."""
LEAST_IDLE_S = 0.5
"""A younger connection may have a request on its way: it is not closed for another one."""
LONGEST_RETRY_S = 5
ALWAYS_ANSWERED = "/livez"
"""The liveness route, answered under any load."""
CLIENTS, OWNER = "clients", "owner"
"""The sockets."""
ACCEPTING, OPEN = 0, 1
"""The cells of `connection_counts`."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """`most` concurrent connections; times in seconds, rates in bytes per second.

    `idle`: maximum time between requests. `head`: maximum time for the head of a request. A body or a response may take
    `grace` and the time that its bytes take at `rate`.
    """

    most: int = 2_000
    idle: float = 60.0
    head: float = 10.0
    grace: float = 20.0
    rate: int = 1_024

    def patience(self, size: int) -> float:
        """Maximum seconds for the transfer of `size` bytes."""
        return self.grace + size / self.rate


def raise_descriptor_limit() -> int:
    """Raise the soft limit of open descriptors as far as the system allows; returns the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < target:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
        except (OSError, ValueError):
            return soft  # macOS enforces a lower limit than it reports
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def affordable(most: int, descriptors: int) -> int:
    """The number of connections, at most `most`, that `descriptors` allow."""
    if descriptors == resource.RLIM_INFINITY:
        return most
    return max(1, min(most, descriptors - RESERVED_DESCRIPTORS - REFUSED_AT_ONCE))


def connection_counts(counts: Counts, name: str) -> Row:
    """Of each process, whether it accepts connections of the socket with this name, and how many it has."""
    return counts.row(f"{CURRENT}connections", name, width=2)


class TrackedConnection(Protocol):
    """A connection as the registry uses it."""

    def idle_since(self) -> float | None:
        """Start of the wait for a request (`time.monotonic`); None during a request."""

    def enforce(self, now: float, limits: ConnectionLimits) -> None:
        """Close it if its client exceeded a time limit."""

    def has_unread(self) -> bool:
        """Whether its client has sent bytes that were not read yet: closing it would leave a request unanswered."""

    def close_idle(self) -> None:
        """Close it for another one; a client that has sent no request yet gets a 503."""


class Connections:
    """The connections of one service; used on its event loop only."""

    def __init__(self, limits: ConnectionLimits, counts: Counts | None = None, name: str = "") -> None:
        self.limits = limits
        self._counts = connection_counts(counts or Counts(), name)
        self._active: set[TrackedConnection] = set()
        self._refused: set[TrackedConnection] = set()
        self._opening = 0
        self._none_idle_until = 0.0

    def may_accept(self) -> bool:
        """Whether one more may be accepted from the socket: to be served, or to be refused with a 503."""
        return len(self._active) + len(self._refused) + self._opening < self.limits.most + REFUSED_AT_ONCE

    def opening(self, change: int) -> None:
        """Change the number of accepted connections without a protocol yet."""
        self._opening += change
        self._count()

    def accepts(self, does: bool) -> None:
        """Note whether connections of the socket are accepted at the moment, or are left to other processes."""
        self._counts.own[ACCEPTING] = does

    def others_have_fewer(self) -> bool:
        """Whether another process of the service accepts connections and has fewer."""
        own = self._counts.own[OPEN]
        return any(seat[ACCEPTING] and seat[OPEN] < own for seat in self._counts.seats)

    def _count(self) -> None:
        self._counts.own[OPEN] = len(self._active) + len(self._refused) + self._opening

    def admit(self, connection: TrackedConnection) -> bool:
        """Register a new connection. False: it exceeds the limit and has to be refused."""
        if len(self._active) < self.limits.most or self._close_an_idle_one():
            self._active.add(connection)
            self._count()
            return True
        _LOG.warning("connections are refused: %d are busy (DTRAG_CONNECTIONS_AT_ONCE)", len(self._active))
        self._refused.add(connection)
        self._count()
        return False

    def leave(self, connection: TrackedConnection) -> None:
        """Remove a closed connection."""
        self._active.discard(connection)
        self._refused.discard(connection)
        self._count()

    def __len__(self) -> int:
        return len(self._active)

    async def watch(self, every: float = 0.5) -> None:
        """Close connections whose clients exceed a time limit, until cancelled."""
        while True:
            await asyncio.sleep(every)
            now = time.monotonic()
            for connection in [*self._active, *self._refused]:
                connection.enforce(now, self.limits)

    def _close_an_idle_one(self) -> bool:
        now = time.monotonic()
        if now < self._none_idle_until:
            return False
        idle = [
            (since, connection)
            for connection in self._active
            if (since := connection.idle_since()) is not None and now - since >= LEAST_IDLE_S
        ]
        for _, oldest in sorted(idle, key=lambda pair: pair[0]):
            if not oldest.has_unread():
                self._active.discard(oldest)
                oldest.close_idle()
                return True
        self._none_idle_until = now + LEAST_IDLE_S / 4
        return False


def refusal() -> tuple[str, dict[str, str]]:
    """Detail and headers of the 503 of a refused connection."""
    wait_s = 1 + secrets.randbelow(LONGEST_RETRY_S)
    detail = f"The service has reached its limit of connections. Try again in {wait_s} seconds."
    return detail, {"Retry-After": str(wait_s), "Connection": "close"}


async def too_many_connections(scope: Scope, receive: Receive, send: Send) -> None:
    """The ASGI application of refused connections."""
    detail, headers = refusal()
    await error_response(503, detail, "Overloaded", headers=headers)(scope, receive, send)
