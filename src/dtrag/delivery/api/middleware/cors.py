"""Pages of other origins that may call the service from a browser: those that the settings name, and no others."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dtrag.delivery.api.errors import error_response
from dtrag.errors import InvalidInput

METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
IDS = ("X-Correlation-ID", "X-Request-ID")
HEADERS = ("Accept", "Accept-Language", "Authorization", "Content-Type", "X-API-Key", *IDS)
"""What pages may send. Keys go into Authorization or X-API-Key: cookies and stored passwords are never taken."""
SHOWN = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After", *IDS)
"""What pages may read of an answer, besides what every page may."""
MAX_AGE_S = 600


def origins_of(given: str) -> frozenset[str]:
    """The origins in a list with commas; none for `none`. Raises `InvalidInput` for wildcards and what is no origin."""
    if given.strip().lower() == "none":
        return frozenset()
    found = set()
    for origin in filter(None, (part.strip() for part in given.split(","))):
        if not _is_origin(origin):
            raise InvalidInput(
                f"CORS_ALLOWED_ORIGINS holds {origin[:80]!r}, but must list origins in full, such as "
                "https://chat.example.org or http://localhost:3000; there are no wildcards."
            )
        found.add(origin.lower())
    return frozenset(found)


def _is_origin(text: str) -> bool:
    try:
        parts = urlsplit(text)
        whole = f"{parts.scheme}://{parts.netloc}"
        named = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    clean = parts.username is None and "*" not in text and text.isascii() and not set(text) & set(" \\\"'<>")
    return named and clean and parts.scheme in {"http", "https"} and text.lower() == whole.lower()


class Cors:
    """Answers preflights, and marks answers for the pages of the origins; for every other page it does nothing."""

    def __init__(self, app: ASGIApp, origins: Collection[str]) -> None:
        self._app = app
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        origin = headers.get("origin", "")
        if origin.lower() not in self._origins:
            await self._app(scope, receive, send)
            return
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            scope.setdefault("state", {})["preflight"] = True
            await _preflight(headers, origin)(scope, receive, send)
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered = MutableHeaders(scope=message)
                answered["Access-Control-Allow-Origin"] = origin
                answered["Access-Control-Expose-Headers"] = ", ".join(SHOWN)
                answered.add_vary_header("Origin")
            await send(message)

        await self._app(scope, receive, marked)


def _preflight(headers: Headers, origin: str) -> Response:
    """What the page may send; a refusal names what it may not."""
    method = headers["access-control-request-method"]
    asked = (name.strip() for name in headers.get("access-control-request-headers", "").split(","))
    known = {name.lower() for name in HEADERS}
    allowed = {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
    if method not in METHODS:
        return error_response(400, "Pages may not use this method here", headers=allowed)
    if any(name and name.lower() not in known for name in asked):
        return error_response(400, f"Pages may send only these headers: {', '.join(HEADERS)}", headers=allowed)
    allowed |= {
        "Access-Control-Allow-Methods": ", ".join(METHODS),
        "Access-Control-Allow-Headers": ", ".join(HEADERS),
        "Access-Control-Max-Age": str(MAX_AGE_S),
    }
    return Response(status_code=204, headers=allowed)
