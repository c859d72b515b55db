"""Origins of web pages: which are the service's own, and which others may call it from a browser (CORS).

Those are the ones in the settings, and for questions to a public agent those of its keys.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dtrag.core.access.api_key import Key, is_origin
from dtrag.core.text.patterns import explained
from dtrag.delivery.api.errors import error_response
from dtrag.errors import DtragError, InvalidInput
from dtrag.governance.api_keys import Keys

_LOG = logging.getLogger(__name__)
_ASK = re.compile(r"/agents/[^/]+/ask")
"""The only route for pages with an origin of a public key."""
_ASKING = explained(
    r"POST (/ask|/search(/batch|/neural)?|/chat/(run|stream)|/agents/[^/]+/(ask|search)|/regulations/search"
    r"|/v1/(chat/completions|responses))|GET /v1/models(/.+)?",
    finds="POST /search/batch",
    refuses="GET /search",
)
"""Methods and paths of questions and searches: all that listed pages may request while no key exists."""

CORS, PUBLIC = "CORS_ALLOWED_ORIGINS", "DTRAG_PUBLIC_ORIGINS"
"""The settings that list origins."""


def origins_of(text: str, setting: str = CORS) -> frozenset[str]:
    """The origins in a comma-separated list, none for `none`. Raises `InvalidInput` for wildcards and invalid ones."""
    if text.strip().lower() == "none":
        return frozenset()
    origins = set()
    for origin in filter(None, (part.strip() for part in text.split(","))):
        if not is_origin(origin):
            raise InvalidInput(
                f"{setting} holds {origin[:80]!r}, but must list origins in full, such as "
                "https://chat.example.org or http://localhost:3000; there are no wildcards."
            )
        origins.add(origin.lower())
    return frozenset(origins)


def authority_of(origin: str) -> str:
    """Host and port of an origin, in lower case; "" if invalid."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def is_own(headers: Headers, public: Collection[str]) -> bool:
    """Whether the request comes from a page of the service itself: its origin is the requested host, or in `public`.

    Programs send no `Origin`; browsers always do with other methods than GET.
    """
    origin = headers.get("origin")
    if origin is None:
        return True
    return authority_of(origin) == headers.get("host", "").lower() or origin.lower() in public


@dataclass(frozen=True, slots=True)
class PageOrigins:
    """Which pages may call the service from a browser.

    `public` are its own origins behind a proxy, `listed` those in CORS_ALLOWED_ORIGINS. Pages with an origin of a
    public key may only ask agents.
    """

    public: frozenset[str] = frozenset()
    listed: frozenset[str] = frozenset()

    def may_write(self, headers: Headers) -> bool:
        """Whether the request comes from no page, from an own one, or from a listed one."""
        return is_own(headers, self.public) or headers.get("origin", "").lower() in self.listed

    async def is_of_public_key(self, scope: Scope, keys: Callable[[], Keys]) -> bool:
        """Whether a page with an origin of a public key asks an agent. False while keys cannot be read."""
        origin = Headers(scope=scope).get("origin", "").lower()
        if not origin or not _ASK.fullmatch(scope["path"]):
            return False
        try:
            return origin in await keys().public_origins()
        except DtragError as error:
            _LOG.warning("the origins of public keys could not be read", exc_info=error)
            return False

    def may_act_locally(self, scope: Scope) -> bool:
        """Whether the request may be the local administrator's while no key exists: own pages and programs may.

        Listed pages may ask and search. Where browsers send no `Origin` (images, scripts, links), `Sec-Fetch-Site`
        tells that another page caused the request.
        """
        headers = Headers(scope=scope)
        if "origin" not in headers:
            return headers.get("sec-fetch-site", "none") in {"none", "same-origin"}
        asks = _ASKING.fullmatch(f"{scope['method']} {scope['path']}") is not None
        return is_own(headers, self.public) or (asks and headers["origin"].lower() in self.listed)

    def admits(self, headers: Headers, key: Key) -> bool:
        """Whether this key may be used on the page that the request comes from."""
        if key.agent_id is not None and key.origins:
            return headers.get("origin", "").lower() in key.origins
        return "origin" not in headers or self.may_write(headers)


METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
IDS = ("X-Correlation-ID", "X-Request-ID")
HEADERS = ("Accept", "Accept-Language", "Authorization", "Content-Type", "X-API-Key", *IDS)
"""Headers that pages may send. Keys go into Authorization or X-API-Key: cookies are never used."""
SHOWN = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After", *IDS)
"""Additional response headers that pages may read."""
MAX_AGE_S = 600


class Cors:
    """Answers preflights and adds CORS headers to responses for allowed origins; ignores all others."""

    def __init__(self, app: ASGIApp, origins: PageOrigins, keys: Callable[[], Keys]) -> None:
        self._app = app
        self._origins = origins
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        origin = headers.get("origin", "")
        listed = origin.lower() in self._origins.listed
        if not listed and not (origin and await self._origins.is_of_public_key(scope, self._keys)):
            await self._app(scope, receive, send)
            return
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            scope.setdefault("state", {})["preflight"] = True
            await _preflight(headers, origin)(scope, receive, send)
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                response_headers = MutableHeaders(scope=message)
                response_headers["Access-Control-Allow-Origin"] = origin
                response_headers["Access-Control-Expose-Headers"] = ", ".join(SHOWN)
                response_headers["Cross-Origin-Resource-Policy"] = "cross-origin"
                response_headers.add_vary_header("Origin")
            await send(message)

        await self._app(scope, receive, marked)


def _preflight(headers: Headers, origin: str) -> Response:
    """The response to a preflight; a refusal names what is not allowed."""
    method = headers["access-control-request-method"]
    requested = (name.strip() for name in headers.get("access-control-request-headers", "").split(","))
    known = {name.lower() for name in HEADERS}
    allowed = {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
    if method not in METHODS:
        return error_response(400, "Pages may not use this method here", headers=allowed)
    if any(name and name.lower() not in known for name in requested):
        return error_response(400, f"Pages may send only these headers: {', '.join(HEADERS)}", headers=allowed)
    allowed |= {
        "Access-Control-Allow-Methods": ", ".join(METHODS),
        "Access-Control-Allow-Headers": ", ".join(HEADERS),
        "Access-Control-Max-Age": str(MAX_AGE_S),
    }
    return Response(status_code=204, headers=allowed)
