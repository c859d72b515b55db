"""Fetches from web servers (a taxonomy service): requests with redirects, behind the egress policy, with limits.

Secrets and bodies of a request go to the origin that it names, and to no other.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urljoin, urlsplit

from dtrag.adapters.web.guarded_transport import Resolve, resolve
from dtrag.core.access.egress import PORTS, Allowed, Destination, allowed_hosts, target
from dtrag.core.access.visible_tree import MAX_BYTES, SentTree, read_sent_tree
from dtrag.errors import EgressBlocked, FetchFailed, InvalidInput, NotFound, TaxonomyServiceFailed
from dtrag.ports import Fetcher, WebReply, WebRequest
from dtrag.settings import Settings

if TYPE_CHECKING:
    import httpx2

    from dtrag.adapters.web.guarded_transport import GuardedTransport

REDIRECTS = 3
CONNECT_SECONDS = 3.0
"""For one address; then the next one is tried, while there is time."""
MOVED = frozenset({301, 302, 303, 307, 308})
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
            reply = await _exchange(transport, request, destination, most, types)
            location = reply.headers.get("location", "")
            if reply.status not in MOVED or not location or not request.follow:
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
) -> WebReply:
    """One response without following a redirect. Only a success has a body."""
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
    headers = {name.lower(): _header(response, name) for name in response.headers}
    return WebReply(response.status_code, request.url, content_type, body, headers)


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


Refusal = Callable[[str], Exception]
"""Makes the error to raise from the reason, a sentence whose subject is the server's response."""


def bound(response: Any, max_bytes: int | None, refusal: Refusal) -> None:
    """Have the body raise `refusal(reason)` where it exceeds `max_bytes`. A compressed response is refused at once.

    None is for a stream without an end whose client limits each of its parts. `response` is one of httpx or of httpx2:
    which of them a client library uses depends on its version.
    """
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise refusal("its response is compressed, although the request excluded that.")
    if max_bytes is None:
        return
    library = sys.modules[type(response).__module__.partition(".")[0]]
    response.stream = _bounded_stream(library.AsyncByteStream)(response.stream, max_bytes, refusal)


@functools.cache
def _bounded_stream(byte_stream: type[Any]) -> type[Any]:
    class BoundedStream(byte_stream):  # type: ignore[misc]
        """The body of a response, of at most so many bytes."""

        def __init__(self, stream: Any, max_bytes: int, refusal: Refusal) -> None:
            self._stream = stream
            self._max_bytes = max_bytes
            self._refusal = refusal

        async def __aiter__(self) -> AsyncIterator[bytes]:
            total = 0
            async for piece in self._stream:
                total += len(piece)
                if total > self._max_bytes:
                    raise self._refusal(f"its response is longer than {_size(self._max_bytes)}.")
                yield piece

        async def aclose(self) -> None:
            await self._stream.aclose()

    return BoundedStream


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count % 2**20 == 0 else f"{count:,} bytes"


SECONDS = 1.0
"""For the whole exchange, looking up the name included (AC-ORCH)."""


class TaxonomyService:
    """The service at `base`, which is asked without any key of the caller's."""

    def __init__(self, base: str, fetcher: Fetcher) -> None:
        self._base = base
        self._fetcher = fetcher

    @classmethod
    def of(cls, settings: Settings) -> TaxonomyService | None:
        """None when the setting is not set. Raises `InvalidInput` for what is not an address of a service."""
        base = (settings.taxonomy_base or "").strip().rstrip("/")
        if not base:
            return None
        try:
            parts = urlsplit(base)
            if parts.query or parts.fragment:
                raise ValueError
            # The administrator's own address, so it may be a private one; redirects to other private ones are refused.
            allowed = allowed_hosts(f"{parts.hostname}:{parts.port or PORTS[parts.scheme]}")
            target(base, allowed)
        except (ValueError, KeyError) as error:  # InvalidInput and EgressBlocked are ValueErrors
            raise InvalidInput(
                "TAXONOMY_BASE must be the address of a service, such as http://127.0.0.1:8000, without user name, "
                "query and fragment."
            ) from error
        return cls(base, WebFetcher(allowed))

    async def tree(self, version: str) -> SentTree:
        """The tree of a version (a number, or `active`). Raises `NotFound` and `TaxonomyServiceFailed`."""
        request = WebRequest(f"{self._base}/api/taxonomy/tree/{quote(version, safe='')}")
        try:
            reply = await self._fetcher.fetch(
                request, seconds=SECONDS, most=MAX_BYTES, types=frozenset({"application/json"})
            )
        except (FetchFailed, EgressBlocked) as error:
            raise TaxonomyServiceFailed(reason=error.fields["reason"]) from error
        if reply.status == 404:
            raise NotFound("The service of the category tree has none of this version.")
        if reply.status != 200:
            raise TaxonomyServiceFailed(reason=f"it answered {reply.status}.")
        try:
            return await asyncio.to_thread(read_sent_tree, reply.body)  # a large one takes a tenth of a second
        except InvalidInput as error:
            raise TaxonomyServiceFailed(reason=str(error)) from error
