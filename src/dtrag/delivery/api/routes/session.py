"""`/session`: sign in on the web page with a key, see who is signed in, and sign out."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from dtrag.core.access.api_key import LOCAL, Caller, Role
from dtrag.core.access.session import csrf_of
from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.delivery.api.middleware.authentication import delete_cookie, set_cookie, token_of
from dtrag.delivery.api.middleware.origins import is_own
from dtrag.delivery.api.permissions import READ, caller_of
from dtrag.delivery.api.routing import JsonRoute, StrictBody, failures
from dtrag.errors import Forbidden, Unauthorized
from dtrag.governance.sessions import SignedIn

router = APIRouter(route_class=JsonRoute, tags=["session"])


class SignInBody(StrictBody):
    """A key to sign in with."""

    key: str = Field(min_length=1, max_length=200, description="The key, dtrag_….", repr=False)


class SessionShape(BaseModel):
    """Who is calling, and with which rights."""

    kind: Literal["local", "key", "session"] = Field(
        description="How the caller was recognised: local (no key exists), key (in a header), or session (the cookie)."
    )
    name: str = Field(description="Name of the key; `local` while no key exists.")
    role: Role = Field(description="reader, editor or admin.")
    scope: list[str] | None = Field(description="Branches that the key may see; null for the whole tree.")
    csrf: str | None = Field(
        description="Token for the header X-CSRF-Token; null without a session (key in a header, or no keys)."
    )
    expires_at: str | None = Field(description="When the session ends if it is not used; null without a session.")


@router.post("/session", responses=failures(400, 401, 403, 413, 415, 422, 429, 503))
async def sign_in(request: Request, response: Response, body: SignInBody) -> SessionShape:
    """Sign in with a key: later requests of this browser are those of the key.

    The session is an http-only cookie. It ends with the key, after 12 hours without a request, and after 7 days.
    Requests with the cookie and another method than GET need the header `X-CSRF-Token`.
    """
    service = service_of(request)
    if not is_own(request.headers, service.public_origins):
        raise Forbidden("Pages of other origins may not sign in here. Open the page of the service itself.")
    try:
        signed_in = await app_of(request).sessions.sign_in(
            body.key.strip(), token_of(request.headers), require=service.limits.require_allowance
        )
    except Unauthorized:
        service.limits.count_wrong_key(request.scope)
        raise
    caller = request.state.caller = signed_in.key.caller()
    set_cookie(response, signed_in.token, request.scope)
    return _shape(caller, signed_in)


@router.get("/session", responses=failures(401, 429, 503), dependencies=READ)
async def show(request: Request) -> SessionShape:
    """Who is calling: the signed-in key, the key of the request, or the local administrator while no key exists."""
    signed_in: SignedIn | None = getattr(request.state, "signed_in", None)
    return _shape(caller_of(request), signed_in)


@router.delete("/session", status_code=204, responses=failures(401, 403, 429, 503), dependencies=READ)
async def sign_out(request: Request) -> Response:
    """Sign out: the session of the cookie ends, for all windows of this browser, also beside a key in a header.

    It does not count against the rate of the key.
    """
    token = token_of(request.headers)
    if token is not None:
        await app_of(request).sessions.sign_out(token)
    response = Response(status_code=204)
    delete_cookie(response, request.scope)
    return response


def _shape(caller: Caller, signed_in: SignedIn | None) -> SessionShape:
    paths = sorted({str(anchor.path) for grant in caller.access.grants for anchor in grant.anchors})
    return SessionShape(
        kind="session" if signed_in else "local" if caller is LOCAL else "key",
        name=caller.name,
        role=caller.role,
        scope=paths if caller.access.grants else None,
        csrf=csrf_of(signed_in.token) if signed_in else None,
        expires_at=signed_in.session.expires_at.isoformat() if signed_in else None,
    )
