"""Asks servers of the web: each connection goes to an address that was judged, and every answer has its limits.

A client library would look the name up a second time when it connects, and then a server of names can answer
differently (DNS rebinding). So this one opens its own sockets, and h11 speaks the protocol.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from urllib.parse import urljoin

from dtrag.adapters.web.exchange import Answer, exchange
from dtrag.core.access.egress import Allowed, Target, checked, target
from dtrag.errors import FetchFailed
from dtrag.ports import WebReply, WebRequest

REDIRECTS = 3
CONNECT_SECONDS = 3.0
"""For one address; the next one is tried then, while there is time."""
MOST_ADDRESSES = 4
_MOVED = frozenset({301, 302, 303, 307, 308})
_KEEPS_METHOD = frozenset({307, 308})
_HARMLESS = frozenset({"accept", "accept-language"})
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, as the machine looks them up. Raises `OSError`."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[4][0]) for address in found]


class WebFetcher:
    """Implements `dtrag.ports.Fetcher`. `allowed`: hosts and ports that may be asked although they are not public."""

    def __init__(self, allowed: Allowed = frozenset(), resolve: Resolve = resolve) -> None:
        self._allowed = allowed
        self._resolve = resolve

    async def fetch(self, request: WebRequest, *, seconds: float, most: int, types: Collection[str]) -> WebReply:
        """The answer. Raises `EgressBlocked` before a connection to what may not be asked, and `FetchFailed`."""
        wanted = target(request.url, self._allowed)
        try:
            async with asyncio.timeout(seconds):
                return await self._follow(request, wanted, most, frozenset(types))
        except TimeoutError as error:
            raise FetchFailed(host=wanted.host, reason=f"it took longer than {seconds:g} s.") from error

    async def _follow(self, request: WebRequest, wanted: Target, most: int, types: frozenset[str]) -> WebReply:
        for _ in range(REDIRECTS + 1):
            answer = await self._ask(request, wanted, most, types)
            location = answer.headers.get("location")
            if answer.status not in _MOVED or not location:
                return WebReply(answer.status, request.url, answer.media_type, answer.body)
            request, wanted = self._redirected(request, wanted, answer.status, location)
        raise FetchFailed(host=wanted.host, reason=f"it redirects more than {REDIRECTS} times.")

    def _redirected(self, request: WebRequest, wanted: Target, status: int, location: str) -> tuple[WebRequest, Target]:
        """The next request. Secrets and bodies stay with the origin that they were meant for."""
        moved = replace(request, url=urljoin(request.url, location))
        following = target(moved.url, self._allowed)
        if status not in _KEEPS_METHOD:
            moved = replace(moved, method="GET", body=b"", headers=_without_content(moved.headers))
        if following.origin != wanted.origin:
            if moved.method != "GET":
                raise FetchFailed(host=wanted.host, reason="it redirects what was sent to another server.")
            kept = {name: value for name, value in moved.headers.items() if name.lower() in _HARMLESS}
            moved = replace(moved, headers=kept)
        return moved, following

    async def _ask(self, request: WebRequest, wanted: Target, most: int, types: frozenset[str]) -> Answer:
        """One request to the first address that can be connected to."""
        try:
            addresses = checked(wanted, await self._resolve(wanted.host, wanted.port))
        except OSError as error:
            raise FetchFailed(host=wanted.host, reason="its name is not known.") from error
        reader, writer = await _connected(wanted, addresses[:MOST_ADDRESSES])
        try:
            return await exchange(reader, writer, request, wanted, most=most, types=types)
        except OSError as error:
            raise FetchFailed(host=wanted.host, reason="the connection broke.") from error
        finally:
            writer.transport.abort()  # nothing is left to say, and a server that does not listen is not waited for


async def _connected(wanted: Target, addresses: Sequence[str]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to one of these very addresses; the certificate has to be the name's. Raises `FetchFailed`."""
    context = ssl.create_default_context() if wanted.scheme == "https" else None
    reason = "it does not take connections."
    for address in addresses:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await asyncio.open_connection(
                    address, wanted.port, ssl=context, server_hostname=wanted.host if context else None
                )
        except ssl.SSLError:
            reason = "its certificate is not valid."
        except (OSError, TimeoutError):
            continue
    raise FetchFailed(host=wanted.host, reason=reason)


def _without_content(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if not name.lower().startswith("content-")}
