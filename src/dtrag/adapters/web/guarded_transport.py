"""An HTTP transport behind the egress policy: resolve a host, judge its addresses, connect to exactly one of these.

A client that resolves the name once more when it connects can be given another address than the one that was judged
(DNS rebinding). Importing this module imports httpx2, which takes a tenth of a second: import it where it is used.
"""

from __future__ import annotations

import asyncio
import functools
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence

import httpx2

from dtrag.core.access.egress import Allowed, Destination, checked, target
from dtrag.errors import FetchFailed

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


async def resolve(host: str, port: int) -> Sequence[str]:
    """The IP addresses of a host. Raises `OSError`."""
    infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[4][0]) for address in infos]


MOST_ADDRESSES = 4
"""Addresses of one host that are tried, one after the other."""


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends each request to a judged address; uses no proxy and follows no redirect.

    `allowed`: hosts and ports that may be requested although they are not public. `keep_alive` is for clients of one
    origin: connections are pooled by address, and another host at this address must not share them.
    """

    def __init__(self, allowed: Allowed, *, keep_alive: bool = False, resolve: Resolve = resolve) -> None:
        limits = httpx2.Limits() if keep_alive else httpx2.Limits(max_keepalive_connections=0)
        self._inner = httpx2.AsyncHTTPTransport(verify=_tls(), trust_env=False, limits=limits)
        self._allowed = allowed
        self._resolve = resolve

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response. Raises `EgressBlocked` before any connection, `FetchFailed` without one, and httpx2's errors.

        The connect timeout of the request applies to each address.
        """
        destination = target(str(request.url), self._allowed)
        try:
            addresses = checked(destination, await self._resolve(destination.host, destination.port))
        except OSError as error:
            raise FetchFailed(host=destination.host, reason="its name cannot be resolved.") from error
        reason = "it does not accept connections."
        for address in addresses[:MOST_ADDRESSES]:
            try:
                return await self._inner.handle_async_request(_addressed(request, destination, address))
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                if _is_tls_error(error):
                    reason = "its certificate is not valid."
        raise FetchFailed(host=destination.host, reason=reason)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def _addressed(request: httpx2.Request, destination: Destination, address: str) -> httpx2.Request:
    """The request with an IP address in its URL; the Host header and the certificate stay those of the name.

    A new object: the client reads the URL of the first one.
    """
    url = httpx2.URL(
        scheme=destination.scheme, host=address, port=destination.port, raw_path=destination.path.encode("ascii")
    )
    headers = httpx2.Headers(request.headers)
    headers["Host"] = destination.authority
    extensions = {**request.extensions, "sni_hostname": destination.host}
    return httpx2.Request(request.method, url, headers=headers, stream=request.stream, extensions=extensions)


@functools.cache
def _tls() -> ssl.SSLContext:
    """Loading the certificates takes some 20 ms."""
    return httpx2.create_ssl_context()


def _is_tls_error(error: BaseException) -> bool:
    cause = error.__cause__ or error.__context__
    return isinstance(error, ssl.SSLError) or (cause is not None and _is_tls_error(cause))
