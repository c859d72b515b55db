"""Fetches from web servers: one request and its redirects, each behind the egress policy, with limits on the response.

Secrets and bodies of a request go to the origin that it names, and to no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from dtrag.adapters.web.bounded_body import bound
from dtrag.adapters.web.resolving import Resolve, resolve
from dtrag.core.access.egress import Allowed, Destination, target
from dtrag.errors import FetchFailed
from dtrag.ports import WebReply, WebRequest

if TYPE_CHECKING:
    import httpx2

    from dtrag.adapters.web.guarded_transport import GuardedTransport

REDIRECTS = 3
CONNECT_SECONDS = 3.0
"""For one address; then the next one is tried, while there is time."""
_MOVED = frozenset({301, 302, 303, 307, 308})
_KEEPS_METHOD = frozenset({307, 308})
_HARMLESS = frozenset({"accept", "accept-language"})
_FIXED_HEADERS = {"User-Agent": "dtrag", "Accept-Encoding": "identity", "Connection": "close"}
"""Without compression, so that the limit on the body holds for what is read."""


def guarded_transport(allowed: Allowed, *, keep_alive: bool = False, resolve: Resolve = resolve) -> GuardedTransport:
    """See `GuardedTransport`. Blocking at first, for a tenth of a second or two: imports httpx2, loads certificates."""
    from dtrag.adapters.web.guarded_transport import GuardedTransport

    return GuardedTransport(allowed, keep_alive=keep_alive, resolve=resolve)


class WebFetcher:
    """Implements `dtrag.ports.Fetcher`. `allowed`: hosts and ports that may be requested although not public."""

    def __init__(self, allowed: Allowed = frozenset(), resolve: Resolve = resolve) -> None:
        self._allowed = allowed
        self._resolve = resolve

    async def fetch(self, request: WebRequest, *, seconds: float, most: int, types: Collection[str]) -> WebReply:
        """The response. Raises `EgressBlocked` before a connection that the policy forbids, and `FetchFailed`."""
        destination = target(request.url, self._allowed)
        transport = await asyncio.to_thread(guarded_transport, self._allowed, resolve=self._resolve)
        try:
            async with asyncio.timeout(seconds), transport:
                return await self._follow(transport, request, destination, most, frozenset(types))
        except TimeoutError as error:
            raise FetchFailed(host=destination.host, reason=f"it took longer than {seconds:g} s.") from error

    async def _follow(
        self,
        transport: GuardedTransport,
        request: WebRequest,
        destination: Destination,
        most: int,
        types: frozenset[str],
    ) -> WebReply:
        for _ in range(REDIRECTS + 1):
            reply, location = await _exchange(transport, request, destination, most, types)
            if reply.status not in _MOVED or not location:
                return reply
            request, destination = self._redirected(request, destination, reply.status, location)
        raise FetchFailed(host=destination.host, reason=f"it redirects more than {REDIRECTS} times.")

    def _redirected(
        self, request: WebRequest, destination: Destination, status: int, location: str
    ) -> tuple[WebRequest, Destination]:
        """The next request and where it goes."""
        moved = replace(request, url=urljoin(request.url, location))
        following = target(moved.url, self._allowed)
        if status not in _KEEPS_METHOD:
            moved = replace(moved, method="GET", body=b"", headers=_without_content(moved.headers))
        if following.origin != destination.origin:
            if moved.method != "GET":
                raise FetchFailed(host=destination.host, reason="it redirects a request with a body to another server.")
            harmless = {name: value for name, value in moved.headers.items() if name.lower() in _HARMLESS}
            moved = replace(moved, headers=harmless)
        return moved, following


async def _exchange(
    transport: GuardedTransport, request: WebRequest, destination: Destination, most: int, types: frozenset[str]
) -> tuple[WebReply, str]:
    """One response without following a redirect, and its Location header. Only that of a success has a body."""
    import httpx2

    try:
        response = await transport.handle_async_request(_http_request(request, destination, types))
        try:
            content_type = _header(response, "content-type").partition(";")[0].strip().lower()
            body = b""
            if response.is_success:
                bound(response, most, lambda reason: FetchFailed(host=destination.host, reason=reason))
                if types and content_type not in types:
                    reason = f"its response is of the type {content_type[:60]!r}."
                    raise FetchFailed(host=destination.host, reason=reason)
                body = b"".join([piece async for piece in response.stream])  # type: ignore[union-attr]
        finally:
            await response.aclose()
    except httpx2.ProtocolError as error:
        raise FetchFailed(host=destination.host, reason="its response is not valid HTTP.") from error
    except httpx2.TransportError as error:
        raise FetchFailed(host=destination.host, reason="the connection broke.") from error
    return WebReply(response.status_code, request.url, content_type, body), _header(response, "location")


def _http_request(request: WebRequest, destination: Destination, types: frozenset[str]) -> httpx2.Request:
    import httpx2

    return httpx2.Request(
        request.method,
        f"{destination.scheme}://{destination.authority}{destination.path}",
        headers={"Accept": ", ".join(sorted(types)), **request.headers, **_FIXED_HEADERS},
        content=request.body or None,
        extensions={"timeout": httpx2.Timeout(None, connect=CONNECT_SECONDS).as_dict()},
    )


def _header(response: httpx2.Response, name: str) -> str:
    """The first header of that name, or ''."""
    return next(iter(response.headers.get_list(name)), "")


def _without_content(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if not name.lower().startswith("content-")}
