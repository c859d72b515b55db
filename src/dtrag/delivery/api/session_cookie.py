"""The session cookie of the web page, and the headers that come with it."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import Response
from starlette.types import Scope

from dtrag.core.access.session import LONGEST

COOKIE = "dtrag_session"
CSRF_HEADER = "x-csrf-token"
PAGE_HEADER, PAGE = "x-requested-with", "dtrag-page"
"""Requests of the page carry `X-Requested-With: dtrag-page`: a 401 must not open the browser's password prompt."""
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that need no CSRF token: they change nothing."""


def token_of(headers: Headers) -> str | None:
    """The session token in the request's cookie; None without one."""
    return cookie_parser(headers.get("cookie", "")).get(COOKIE)


def from_page(headers: Headers) -> bool:
    """Whether the request comes from the page: it says so, or has the cookie."""
    return headers.get(PAGE_HEADER, "").lower() == PAGE or token_of(headers) is not None


def set_cookie(response: Response, token: str, scope: Scope) -> None:
    """Give the browser the token: for this host alone, unreadable to scripts, and never sent along from other sites.

    The service ends idle sessions earlier than the browser deletes the cookie.
    """
    response.set_cookie(
        COOKIE,
        token,
        max_age=int(LONGEST.total_seconds()),
        path="/",
        secure=_is_https(scope),
        httponly=True,
        samesite="strict",
    )


def delete_cookie(response: Response, scope: Scope) -> None:
    """Make the browser forget the token."""
    response.delete_cookie(COOKIE, path="/", secure=_is_https(scope), httponly=True, samesite="strict")


def _is_https(scope: Scope) -> bool:
    """Whether the browser uses HTTPS: by the scheme (of a trusted proxy, too), or by the origin of its page."""
    origin = Headers(scope=scope).get("origin", "")
    return scope.get("scheme") == "https" or urlsplit(origin).scheme == "https"
