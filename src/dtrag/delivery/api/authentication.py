"""Authentication: every request needs a recognised key, or the session of one. Pure ASGI, before routes and bodies.

Where some branches are public, a caller without a key is `public`. Elsewhere, while no key exists, only clients on this
machine have access, to the whole tree; pages of other origins do not. The owner of the data folder, who uses its
socket, needs no key.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dtrag.core.access.api_key import LOCAL, LONGEST, PUBLIC_ID, Key, is_csrf_of
from dtrag.core.access.confinement import confined
from dtrag.core.rate_limit import Allowance
from dtrag.delivery.api.clients import RequestLimits, is_local
from dtrag.delivery.api.errors import detail_of, error_response
from dtrag.delivery.api.origins import PageOrigins
from dtrag.delivery.api.permissions import is_open
from dtrag.delivery.api.request_tasks import within
from dtrag.errors import DatabaseUnavailable, DtragError, Forbidden, StaleSession, TooManyRequests, Unauthorized
from dtrag.governance.api_keys import Keys, Sessions, SignedIn
from dtrag.governance.public_access import PublicAccess

COOKIE = "dtrag_session"
"""The cookie of the web page, with the token of its session."""
CSRF_HEADER = "x-csrf-token"
PAGE_HEADER, PAGE = "x-requested-with", "dtrag-page"
"""Requests of the page carry `X-Requested-With: dtrag-page`: a 401 must not open the browser's password prompt."""
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that need no CSRF token: they change nothing."""
SHORT = frozenset({"/health"})
"""Routes that answer briefly without a key."""
SHORT_PATIENCE_S = 2.0
"""Seconds in which the database must recognise the caller of such a route."""
CHALLENGE = {"WWW-Authenticate": 'Basic realm="dtrag", charset="UTF-8"'}
"""A browser then prompts for name and password; the key is the password."""
PAGE_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="dtrag"'}
"""For requests of the web page, which has a sign-in of its own: the browser prompts for nothing."""
PUBLIC_PAGE = (
    "Pages of other origins may not ask here without a key. An administrator can list theirs in CORS_ALLOWED_ORIGINS."
)
WRONG_PAGE = "This key may not be used on a page of this origin. Use the key that was created for it."
WHO = ("GET", "/session")
UNLIMITED = frozenset({("DELETE", "/session")})
"""Requests that do not count against the rate of the key: everybody can sign out at any time."""
NOT_LOCAL = (
    "This service has no key yet, so it answers only clients on its own machine. Create a key there with: "
    "dtrag keys create"
)
OTHER_PAGE = (
    "While this service has no key, pages of other origins may not use it, and those listed in CORS_ALLOWED_ORIGINS "
    "may only ask and search. Open the page of the service itself, or create a key with: dtrag keys create"
)


class Authentication:
    """Sets `request.state.caller`, or responds with 401 or 429."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: Callable[[], Keys],
        sessions: Callable[[], Sessions],
        limits: RequestLimits,
        origins: PageOrigins,
        public: Callable[[], PublicAccess | None],
    ) -> None:
        self._app = app
        self._public = public
        self._keys = keys
        self._sessions = sessions
        self._limits = limits
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if is_open(scope["method"], scope["path"]):
            await self._app(scope, receive, send)
            return
        try:
            key, allowance = await self._admitted_in_time(scope)
        except DtragError as error:
            if _may_be_short(scope, error):
                if isinstance(error, DatabaseUnavailable):
                    scope.setdefault("state", {})["database_problem"] = error
                await self._app(scope, receive, send)  # without a caller
                return
            await _refusal(scope, error)(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        caller = state["caller"] = LOCAL if key is None else key.caller()
        if allowance is None:
            with confined(caller.access):
                await self._app(scope, receive, send)
            return
        headers = _rate_headers(allowance)
        if allowance.wait_s:
            refusal = TooManyRequests(rate=allowance.limit, seconds=allowance.wait_s)
            await _refusal(scope, refusal, headers)(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(headers)
            await send(message)

        with confined(caller.access):
            await self._app(scope, receive, send_with_headers)

    async def _admitted_in_time(self, scope: Scope) -> tuple[Key | None, Allowance | None]:
        if scope["path"] not in SHORT:
            return await self._admitted(scope)
        try:
            return await within(SHORT_PATIENCE_S, self._admitted(scope))
        except TimeoutError as error:
            raise DatabaseUnavailable(reason=f"it did not respond within {SHORT_PATIENCE_S:g} s.") from error

    async def _admitted(self, scope: Scope) -> tuple[Key | None, Allowance | None]:
        """The key of the request, and its allowance; None for what is not limited. Raises `DtragError`."""
        key = await self._recognised(scope)
        if key is None or (scope["method"], scope["path"]) in UNLIMITED:
            return key, None
        if key.key_id == PUBLIC_ID and (public := self._public()) is not None:
            return key, await self._limits.count_public(scope, public.per_address, public.in_all)
        return key, await self._limits.count_request(key)

    async def _recognised(self, scope: Scope) -> Key | None:
        """The key of the request, and what stands for one; None for the owner of the data folder, and for clients on
        this machine while no key exists and nothing is public. Raises `DtragError`."""
        keys, headers, public = self._keys(), Headers(scope=scope), self._public()
        sent, token = secret_of(headers), token_of(headers)
        if scope.get("state", {}).get("from_owner"):  # with a key, such as `dtrag mcp`: its rights instead
            return None if sent is None else await keys.recognise(sent)
        if public is not None and sent is None and token is None:
            if scope["method"] not in SAFE and not self._origins.admits(headers, public.key):
                raise Forbidden(PUBLIC_PAGE)
            return public.key
        if public is None and not await keys.needed(sent):
            if not is_local(scope):
                raise Unauthorized(NOT_LOCAL)
            if not self._origins.may_act_locally(scope):
                raise Forbidden(OTHER_PAGE)
            return None
        if sent is None and token is not None:
            try:
                signed_in = await self._signed_in(scope, token)
            except Unauthorized:  # the page asks who is calling, and goes on without the session that has ended
                if public is None or (scope["method"], scope["path"]) != WHO:
                    raise
                return public.key
            scope.setdefault("state", {})["signed_in"] = signed_in
            return signed_in.key
        if sent is None:
            raise Unauthorized
        try:
            key = await keys.recognise(sent)
        except Unauthorized:
            await self._limits.count_wrong_key(scope)
            raise
        if scope["method"] not in SAFE and not self._origins.admits(headers, key):
            raise Forbidden(WRONG_PAGE)
        return key

    async def _signed_in(self, scope: Scope, token: str) -> SignedIn:
        """The session of the token. Raises `Unauthorized`, and `StaleSession` for a change without its CSRF token."""
        signed_in = await self._sessions().recognise(token)
        csrf = Headers(scope=scope).get(CSRF_HEADER, "")
        if scope["method"] not in SAFE and not is_csrf_of(token, csrf):
            raise StaleSession
        return signed_in


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


def _refusal(scope: Scope, error: DtragError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    sent = dict(headers or {})
    if isinstance(error, Unauthorized):
        sent.update(PAGE_CHALLENGE if from_page(Headers(scope=scope)) else CHALLENGE)
    if isinstance(error, TooManyRequests):
        sent.setdefault("Retry-After", str(error.fields["seconds"]))
    return error_response(error.http_status, detail_of(error), type(error).__name__, headers=sent)


def token_of(headers: Headers) -> str | None:
    """The session token in the request's cookie; None without one."""
    return cookie_parser(headers.get("cookie", "")).get(COOKIE)


def from_page(headers: Headers) -> bool:
    """Whether the request comes from the page: it says so, or has the cookie."""
    return headers.get(PAGE_HEADER, "").lower() == PAGE or token_of(headers) is not None


def set_cookie(response: Response, token: str, *, secure: bool) -> None:
    """Give the browser the token: for this host alone, unreadable to scripts, and never sent along from other sites.

    The service ends idle sessions earlier than the browser deletes the cookie.
    """
    response.set_cookie(
        COOKIE,
        token,
        max_age=int(LONGEST.total_seconds()),
        path="/",
        secure=secure,
        httponly=True,
        samesite="strict",
    )


def delete_cookie(response: Response, scope: Scope) -> None:
    """Make the browser forget the token."""
    response.delete_cookie(COOKIE, path="/", secure=is_https(scope), httponly=True, samesite="strict")


def is_https(scope: Scope) -> bool:
    """Whether the browser uses HTTPS: by the scheme (of a trusted proxy, too), or by the origin of its page."""
    origin = Headers(scope=scope).get("origin", "")
    return scope.get("scheme") == "https" or urlsplit(origin).scheme == "https"
