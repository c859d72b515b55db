"""CORS: which pages of other origins may call the service from a browser.

Only those in the settings, and for questions to a public agent those of its keys.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dtrag.delivery.api.errors import error_response
from dtrag.delivery.api.origins import PageOrigins
from dtrag.governance.api_keys import Keys

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
