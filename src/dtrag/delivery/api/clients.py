"""The client of a request: its address, also behind a trusted proxy, and limits of its requests and wrong keys.

Any client can send `X-Forwarded-For` and `X-Forwarded-Proto`. They are trusted only from the addresses in
DTRAG_TRUSTED_PROXIES; otherwise the client is the peer. A request with such a header never counts as local.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from dtrag.core.access.api_key import Key
from dtrag.core.rate_limit import TABLE_BYTES, Allowance, RateLimit, SharedRateLimit
from dtrag.counts import Counts
from dtrag.errors import InvalidInput, TooManyRequests
from dtrag.ports import RateLimitStore

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


def rate_limit(counts: Counts, name: str) -> RateLimit:
    """A limit that all processes of the counts share under this name."""
    return RateLimit(counts.common(name, width=TABLE_BYTES // 8), lock=counts.lock, secret=counts.secret)


class RequestLimits:
    """The limits of all services of a database. `store` has their buckets; `monotonic` counts seconds, the same ones in
    all processes of these counts, which share what they have taken."""

    def __init__(
        self, counts: Counts, store: Callable[[], RateLimitStore], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        def limit(name: str) -> SharedRateLimit:
            table = counts.common(name, width=TABLE_BYTES // 8)
            return SharedRateLimit(name, lambda *bucket: store().take(*bucket), table, lock=counts.lock)

        self.monotonic = monotonic
        self._requests = limit("limit of requests")
        self._public = limit("limit of requests without a key")
        self._failures = limit("limit of wrong keys")

    async def count_request(self, key: Key) -> Allowance:
        """Count a request of the key against its own rate. Raises `DatabaseUnavailable`."""
        return await self._requests.take(key.key_id, key.rate, self.monotonic)

    async def count_public(self, scope: Scope, per_address: int, in_all: int) -> Allowance:
        """Count a request without a key against its address, then against all of them. Raises `DatabaseUnavailable`."""
        allowance = await self._public.take(network_of(scope), per_address, self.monotonic)
        if allowance.wait_s:
            return allowance
        together = await self._public.take("all", in_all, self.monotonic)
        return together if together.wait_s else allowance

    async def count_wrong_key(self, scope: Scope) -> None:
        """Count a wrong key against the client's address. Raises `TooManyRequests` and `DatabaseUnavailable`."""
        failed = await self._failures.take(network_of(scope), FAILURES_PER_MINUTE, self.monotonic)
        if failed.wait_s:
            raise TooManyRequests(
                f"Too many wrong keys from your address. Wait {failed.wait_s} seconds before the next.",
                seconds=failed.wait_s,
            )

    async def require_allowance(self, key: Key) -> None:
        """Count a request of the key. Raises `TooManyRequests` beyond its rate, and `DatabaseUnavailable`."""
        allowance = await self.count_request(key)
        if allowance.wait_s:
            raise TooManyRequests(rate=allowance.limit, seconds=allowance.wait_s)


Network = ipaddress.IPv4Network | ipaddress.IPv6Network

FORWARDING_HEADERS = (
    "x-forwarded-for",
    "forwarded",
    "x-real-ip",
    "x-forwarded-host",
    "x-forwarded-proto",
    "via",
)


def trusted_networks(text: str) -> tuple[Network, ...]:
    """The networks in a setting: addresses and networks, separated by commas. Raises `InvalidInput`."""
    networks = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        try:
            networks.append(ipaddress.ip_network(entry))
        except ValueError as error:
            raise InvalidInput(
                f"DTRAG_TRUSTED_PROXIES holds {entry[:60]!r}. Write addresses or networks of your proxies with commas, "
                "such as 127.0.0.1,10.0.0.0/28."
            ) from error
    return tuple(networks)


class Forwarding:
    """Replaces `scope["client"]` by the client named by a trusted proxy, and marks forwarded requests."""

    def __init__(self, app: ASGIApp, trusted: Sequence[Network] = ()) -> None:
        self._app = app
        self._trusted = trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if any(name in headers for name in FORWARDING_HEADERS):
                scope.setdefault("state", {})["forwarded"] = True
                client = self._client(scope, headers)
                if client is not None:
                    scope["client"] = (str(client), 0)
                    scope["scheme"] = _scheme(headers) or scope["scheme"]
        await self._app(scope, receive, send)

    def _client(self, scope: Scope, headers: Headers) -> Address | None:
        """The last address in `X-Forwarded-For` that is not a trusted proxy: each proxy appends its own peer."""
        peer = scope.get("client")
        if not self._is_trusted(parse_address(peer[0]) if peer else None):
            return None
        client = None
        for entry in reversed(",".join(headers.getlist("x-forwarded-for")).split(",")):
            address = parse_address(entry)
            if address is None:
                break  # entries left of an invalid one were not written by a trusted proxy
            client = address
            if not self._is_trusted(address):
                break
        return client

    def _is_trusted(self, address: Address | None) -> bool:
        return address is not None and any(
            address in network for network in self._trusted if network.version == address.version
        )


def _scheme(headers: Headers) -> str | None:
    """The scheme that the last proxy names; None if it names none."""
    scheme = ",".join(headers.getlist("x-forwarded-proto")).rpartition(",")[2].strip().lower()
    return scheme if scheme in {"http", "https"} else None
