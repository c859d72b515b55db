"""The client and the scheme of requests that came through a trusted proxy.

Any client can send `X-Forwarded-For` and `X-Forwarded-Proto`. They are trusted only from the addresses in
DTRAG_TRUSTED_PROXIES; otherwise the client is the peer. A request with such a header never counts as local. Pure ASGI.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from dtrag.delivery.api.clients import Address, parse_address
from dtrag.errors import InvalidInput

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
