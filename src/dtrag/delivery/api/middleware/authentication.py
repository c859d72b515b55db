"""Authentication: every request needs a recognised key. Pure ASGI, before routes and bodies.

While no key exists, only clients on this machine have access, to the whole tree.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import time
from collections.abc import Callable, Mapping

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dtrag.core.access.api_key import LOCAL, Key
from dtrag.core.access.confinement import confined
from dtrag.core.rate_limit import Allowance, RateLimit
from dtrag.delivery.api.errors import error_response
from dtrag.delivery.api.middleware.forwarding import Address, parse_address
from dtrag.errors import DatabaseUnavailable, DtragError, TooManyRequests, Unauthorized
from dtrag.governance.api_keys import Keys

OPEN = frozenset({"/", "/livez", "/readyz"})
"""Routes without a key: the landing page, and those for supervisors."""
SHORT = frozenset({"/health"})
"""Routes that answer briefly without a key."""
FAILURES_PER_MINUTE = 30
"""Allowed wrong keys from one address: more than typing errors, few enough to slow down guessing."""
CHALLENGE = {"WWW-Authenticate": 'Basic realm="dtrag", charset="UTF-8"'}
"""A browser then prompts for name and password; the key is the password."""
NOT_LOCAL = (
    "This service has no key yet, so it answers only clients on its own machine. Create a key there with: "
    "dtrag keys create"
)


class Authentication:
    """Sets `request.state.caller`, or responds with 401 or 429."""

    def __init__(self, app: ASGIApp, keys: Callable[[], Keys], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._keys = keys
        self._monotonic = monotonic
        self._requests = RateLimit()
        self._failures = RateLimit()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http" or scope["path"] in OPEN:
            await self._app(scope, receive, send)
            return
        try:
            key = await self._recognised(scope)
        except DtragError as error:
            if _may_be_short(scope, error):
                await self._app(scope, receive, send)  # without a caller
                return
            await _refusal(error)(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        if key is None:
            state["caller"] = LOCAL
            with confined(LOCAL.access):
                await self._app(scope, receive, send)
            return
        caller = state["caller"] = key.caller()
        allowance = self._requests.take(key.key_id, key.rate, self._monotonic())
        headers = _rate_headers(allowance)
        if allowance.wait_s:
            refusal = TooManyRequests(rate=allowance.limit, seconds=allowance.wait_s)
            await _refusal(refusal, headers)(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(headers)
            await send(message)

        with confined(caller.access):
            await self._app(scope, receive, send_with_headers)

    async def _recognised(self, scope: Scope) -> Key | None:
        """The key of the request; None for clients on this machine while no key exists. Raises `DtragError`."""
        keys = self._keys()
        sent = secret_of(Headers(scope=scope))
        if not await keys.needed():
            if not is_local(scope):
                raise Unauthorized(NOT_LOCAL)
            return None
        if sent is None:
            raise Unauthorized
        try:
            return await keys.recognise(sent)
        except Unauthorized:
            failed = self._failures.take(network_of(scope), FAILURES_PER_MINUTE, self._monotonic())
            if failed.wait_s:
                raise TooManyRequests(
                    f"Too many wrong keys from your address. Wait {failed.wait_s} seconds before the next.",
                    seconds=failed.wait_s,
                ) from None
            raise


def secret_of(headers: Headers) -> str | None:
    """The key in the request: bearer token, `X-API-Key` or Basic password; "" for an invalid header."""
    kind, _, value = headers.get("authorization", "").strip().partition(" ")
    if kind.lower() == "bearer":
        return value.strip()
    if kind.lower() == "basic":
        try:
            return base64.b64decode(value.strip(), validate=True).decode("utf-8").partition(":")[2]
        except (binascii.Error, UnicodeDecodeError, ValueError):
            return ""
    if kind:
        return ""
    header = headers.get("x-api-key")
    return header.strip() if header is not None else None


def is_local(scope: Scope) -> bool:
    """Whether the client is on this machine; false for unknown clients and for requests through a local proxy."""
    address = _address(scope)
    return address is not None and address.is_loopback and not scope.get("state", {}).get("forwarded")


def network_of(scope: Scope) -> str:
    """The client's address; of IPv6 the first 64 bits, as clients usually own the whole network."""
    address = _address(scope)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address.packed[:8] + bytes(8), 64)))
    return str(address)


def _address(scope: Scope) -> Address | None:
    client = scope.get("client")
    return parse_address(client[0]) if client else None


def _may_be_short(scope: Scope, error: DtragError) -> bool:
    """Whether the route gives its brief answer to a caller who could not be recognised for this reason.

    A wrong key is refused. Without the database keys cannot be checked, and `/health` has to report that.
    """
    if scope["path"] not in SHORT:
        return False
    return isinstance(error, DatabaseUnavailable) or (
        isinstance(error, Unauthorized) and secret_of(Headers(scope=scope)) is None
    )


def _rate_headers(allowance: Allowance) -> dict[str, str]:
    return {
        "RateLimit-Limit": str(allowance.limit),
        "RateLimit-Remaining": str(allowance.remaining),
        "RateLimit-Reset": str(allowance.full_in_s),
    }


def _refusal(error: DtragError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    sent = dict(headers or {})
    if isinstance(error, Unauthorized):
        sent.update(CHALLENGE)
    if isinstance(error, TooManyRequests):
        sent.setdefault("Retry-After", str(error.fields["seconds"]))
    return error_response(error.http_status, str(error), type(error).__name__, headers=sent)
