"""The client of a request: its address, and the limits of its requests and of its wrong keys."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.types import Scope

from dtrag.core.access.api_key import Key
from dtrag.core.rate_limit import Allowance, RateLimit
from dtrag.errors import TooManyRequests

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
FAILURES_PER_MINUTE = 30
"""Allowed wrong keys from one address: more than typing errors, few enough to slow down guessing."""


def parse_address(text: str | None) -> Address | None:
    """An IP address with or without a port; IPv4 inside IPv6 becomes IPv4. None for anything else."""
    if not text:
        return None
    host = text.strip()
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def client_address(scope: Scope) -> Address | None:
    """The address of the client; None when it is unknown."""
    client = scope.get("client")
    return parse_address(client[0]) if client else None


def is_local(scope: Scope) -> bool:
    """Whether the client is on this machine; false for unknown clients and for requests through a local proxy."""
    address = client_address(scope)
    return address is not None and address.is_loopback and not scope.get("state", {}).get("forwarded")


def network_of(scope: Scope) -> str:
    """The client's address; of IPv6 the first 64 bits, as clients usually own the whole network."""
    address = client_address(scope)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address.packed[:8] + bytes(8), 64)))
    return str(address)


@dataclass(slots=True)
class RequestLimits:
    """The limits of one service; `monotonic` counts seconds."""

    monotonic: Callable[[], float] = time.monotonic
    _requests: RateLimit = field(default_factory=RateLimit)
    _failures: RateLimit = field(default_factory=RateLimit)

    def count_request(self, key: Key) -> Allowance:
        """Count a request of the key against its own rate."""
        return self._requests.take(key.key_id, key.rate, self.monotonic())

    def count_wrong_key(self, scope: Scope) -> None:
        """Count a wrong key against the client's address. Raises `TooManyRequests`."""
        failed = self._failures.take(network_of(scope), FAILURES_PER_MINUTE, self.monotonic())
        if failed.wait_s:
            raise TooManyRequests(
                f"Too many wrong keys from your address. Wait {failed.wait_s} seconds before the next.",
                seconds=failed.wait_s,
            )

    def require_allowance(self, key: Key) -> None:
        """Count a request of the key. Raises `TooManyRequests` beyond its rate."""
        allowance = self.count_request(key)
        if allowance.wait_s:
            raise TooManyRequests(rate=allowance.limit, seconds=allowance.wait_s)
