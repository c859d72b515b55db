"""`/sign-in`: with an identity provider (OpenID Connect), for people who have no key.

The browser keeps the attempt in a cookie while it is at the provider; one that comes back without it is refused.
"""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, Field
from starlette.requests import cookie_parser

from dtrag.delivery.api.authentication import set_cookie, token_of
from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.delivery.api.permissions import CALLBACK, PROVIDER, PROVIDERS, SIGN_OUT
from dtrag.delivery.api.routing import JsonRoute, failures
from dtrag.errors import NotFound, ProviderUnavailable, SignInRefused, TooManyRequests
from dtrag.governance.sign_in import KEPT_OUT, NOT_ALLOWED, SignIn, SignInAttempt

router = APIRouter(route_class=JsonRoute, tags=["session"])

ATTEMPT = "dtrag_sign_in"
"""The cookie of an attempt. `Lax`, because the provider sends the browser back from another site."""
ATTEMPT_S = 600
_FIELDS = ("provider", "state", "nonce", "verifier")
OUTCOME = "sign-in"
"""The parameter that tells the page why a sign-in failed: refused, no-access, unavailable or busy."""


class ProviderShape(BaseModel):
    """An identity provider that people sign in with."""

    name: str = Field(description="Sign in at GET /sign-in/{name}.")
    title: str = Field(description="What people call it.")


class ProviderList(BaseModel):
    """The identity providers, in the order of the file."""

    providers: list[ProviderShape] = Field(description="[]: people sign in with a key.")


@router.get(PROVIDERS, responses=failures(503))
async def providers(request: Request) -> ProviderList:
    """The identity providers that people can sign in with."""
    sign_in = app_of(request).sign_in
    listed = [] if sign_in is None else sign_in.file.providers.values()
    return ProviderList(providers=[ProviderShape(name=each.name, title=each.title) for each in listed])


@router.get(PROVIDER, status_code=303, responses=failures(404, 422, 503), response_class=RedirectResponse)
async def begin(request: Request, provider: str) -> Response:
    """Send the browser to the provider, where the person signs in."""
    try:
        attempt, address = await _sign_in(request).begin(provider)
    except ProviderUnavailable:
        return _to_page(request, "unavailable")
    response = RedirectResponse(address, 303)
    content = json.dumps([getattr(attempt, name) for name in _FIELDS])
    _keep(request, response, content.encode().hex(), ATTEMPT_S)
    return response


@router.get(CALLBACK, status_code=303, responses=failures(404, 422, 503), response_class=RedirectResponse)
async def complete(request: Request, provider: str) -> Response:
    """Where the provider sends the browser back: a session for the person, and on to the page.

    The page learns from the parameter `sign-in` of its address when there is none: refused, no-access, unavailable,
    busy.
    """
    service, app, sign_in = service_of(request), app_of(request), _sign_in(request)
    try:
        attempt = _attempt(request, provider)
        admitted = await sign_in.admit(attempt, request.query_params)
        await service.limits.require_allowance(admitted.key)
        signed_in = await app.sessions.open(
            admitted.key, admitted.token, token_of(request.headers), sealed=admitted.sealed
        )
    except SignInRefused as refused:
        try:
            await service.limits.count_wrong_key(request.scope)
        except TooManyRequests:
            return _to_page(request, "busy")
        return _to_page(request, "no-access" if refused.fields["reason"] in {NOT_ALLOWED, KEPT_OUT} else "refused")
    except ProviderUnavailable:
        return _to_page(request, "unavailable")
    except TooManyRequests:
        return _to_page(request, "busy")
    request.state.caller = signed_in.key.caller()
    response = _to_page(request)
    set_cookie(response, signed_in.token, secure=_is_https(sign_in))
    return response


@router.get(SIGN_OUT, status_code=303, responses=failures(404, 422, 503), response_class=RedirectResponse)
async def leave(request: Request, provider: str) -> Response:
    """Send the browser to the place where it signs out of the provider, too; the session here ends by itself."""
    return RedirectResponse(await _sign_in(request).sign_out_address(provider), 303)


def _sign_in(request: Request) -> SignIn:
    sign_in = app_of(request).sign_in
    if sign_in is None:
        raise NotFound("This service has no identity provider. Sign in with a key.")
    return sign_in


def _is_https(sign_in: SignIn) -> bool:
    return sign_in.file.origin.startswith("https:")


def _attempt(request: Request, provider: str) -> SignInAttempt:
    """The attempt that this browser keeps, if the answer belongs to it. Raises `SignInRefused`."""
    try:
        fields: Any = json.loads(bytes.fromhex(cookie_parser(request.headers.get("cookie", "")).get(ATTEMPT, "")))
        attempt = SignInAttempt(**dict(zip(_FIELDS, map(str, fields), strict=True)))
    except (ValueError, TypeError) as error:
        raise SignInRefused(reason="it took too long, or was begun in another browser.") from error
    answered = request.query_params.get("state", "")
    if attempt.provider != provider or not attempt.is_answered_by(answered):
        raise SignInRefused(reason="the answer belongs to another sign-in.")
    return attempt


def _to_page(request: Request, outcome: str = "") -> Response:
    """To the page, which forgets the attempt; always to the same place, whatever the request says."""
    response = RedirectResponse(f"/?{OUTCOME}={outcome}" if outcome else "/", 303)
    _keep(request, response, "", 0)
    return response


def _keep(request: Request, response: Response, value: str, seconds: int) -> None:
    response.set_cookie(
        ATTEMPT,
        value,
        max_age=seconds,
        path=PROVIDERS,
        secure=_is_https(_sign_in(request)),
        httponly=True,
        samesite="lax",
    )
