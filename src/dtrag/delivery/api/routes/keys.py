"""`/keys`: API keys, for administrators of the whole tree; `/session`: sign in on the web page with a key, and out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from dtrag.core.access.api_key import LOCAL, Caller, KeyView, NewKeyView, Role, csrf_of
from dtrag.delivery.api.audited import add_subjects
from dtrag.delivery.api.authentication import delete_cookie, is_https, set_cookie, token_of
from dtrag.delivery.api.dependencies import app_of, service_of
from dtrag.delivery.api.origins import is_own
from dtrag.delivery.api.permissions import ADMIN_WHOLE_TREE, BROWSE, READ, caller_of
from dtrag.delivery.api.routing import JsonRoute, StrictBody, Time, failures
from dtrag.errors import Forbidden, Unauthorized
from dtrag.governance.api_keys import MAX_NAME, MAX_ORIGINS, MAX_PATHS, MAX_PRINCIPALS, MAX_RATE, SignedIn

router = APIRouter(route_class=JsonRoute, tags=["keys"], dependencies=ADMIN_WHOLE_TREE)


class NewKey(StrictBody):
    """A key to create."""

    name: str = Field(min_length=1, max_length=MAX_NAME, description="Unique among valid keys.", examples=["HR desk"])
    role: Role = Field("reader", description="reader, editor (also writes), admin, or public.")
    scope: list[str | list[str]] | None = Field(
        None, min_length=1, max_length=MAX_PATHS, description="Branches that it may see; without it the whole tree."
    )
    expires_at: Time | None = Field(None, description="When it expires; never if absent.")
    rate_per_minute: int | None = Field(
        None, ge=1, le=MAX_RATE, description="Requests per minute; without it DTRAG_RATE_PER_MINUTE."
    )
    agent_id: str | None = Field(
        None, max_length=100, description="For the role public: the only agent that the key may ask."
    )
    origins: list[str] = Field(
        [],
        max_length=MAX_ORIGINS,
        description="For the role public: origins of the pages on which it may be used; any client if empty.",
        examples=[["https://www.example.org"]],
    )
    principals: list[str] = Field(
        [],
        max_length=MAX_PRINCIPALS,
        description="Users of sources as whom its caller reads: site and name.",
        examples=[["posix/kim"]],
    )
    originals: bool = Field(False, description="Whether it may see pages of original files.")


class KeyList(BaseModel):
    """All keys, the newest first."""

    keys: list[KeyView] = Field(description="The keys.")


@router.get("/keys", responses=failures(403, 503))
async def keys(request: Request) -> KeyList:
    """All keys, the newest first; revoked and expired ones stay in the list. Secrets are not stored."""
    now = datetime.now(UTC)
    return KeyList(keys=[key.view(now) for key in await app_of(request).keys.every()])


@router.post("/keys", status_code=201, responses=failures(400, 403, 404, 409, 413, 415, 422, 503, 507))
async def create(request: Request, body: NewKey) -> NewKeyView:
    """Create a key. Its secret is in this response only.

    The first key ends the access of programs on the same machine without a key; create it with the role admin.
    """
    app, caller = app_of(request), caller_of(request)
    created = await app.keys.create(
        body.name,
        body.scope,
        body.role,
        expires=body.expires_at,
        rate=body.rate_per_minute,
        agent=await app.agents.get(body.agent_id, caller=caller) if body.agent_id is not None else None,
        origins=body.origins,
        principals=body.principals,
        originals=body.originals,
        by=caller,
    )
    add_subjects(request, [str(created.key.key_id)])
    return NewKeyView.of(created.key.view(datetime.now(UTC)), created.secret, created.unresolved)


@router.delete("/keys/{name:path}", responses=failures(403, 404, 422, 503))
async def revoke(request: Request, name: str) -> KeyView:
    """Revoke the valid key with this name, with all its sessions."""
    revoked = await app_of(request).keys.revoke(name, by=caller_of(request))
    add_subjects(request, [str(revoked.key_id)])
    return revoked.view(datetime.now(UTC))


session_router = APIRouter(route_class=JsonRoute, tags=["session"])


class SignInBody(StrictBody):
    """A key to sign in with."""

    key: str = Field(min_length=1, max_length=200, description="The key, dtrag_….", repr=False)


class SessionShape(BaseModel):
    """Who is calling, and with which rights."""

    kind: Literal["local", "key", "session", "public"] = Field(
        description="How the caller was recognised: local (no key exists), key (in a header), session (the cookie), or "
        "public (no key, where some branches are public)."
    )
    name: str = Field(description="Name of the key; `local` while no key exists; `public` without one.")
    role: Role = Field(description="reader, editor, admin, or public.")
    scope: list[str] | None = Field(description="Branches that the key may see; null for the whole tree.")
    csrf: str | None = Field(
        description="Token for the header X-CSRF-Token; null without a session (key in a header, or no keys)."
    )
    expires_at: str | None = Field(description="When the session ends if it is not used; null without a session.")
    public: bool = Field(description="Whether some branches may be read without a key.")
    provider: str | None = Field(
        description="The identity provider of the session; GET /sign-in/{provider}/sign-out leaves it, too."
    )
    regulations: bool = Field(description="Whether a document that you may see is a regulation.")


@session_router.post("/session", responses=failures(400, 401, 403, 413, 415, 422, 429, 503))
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
        await service.limits.count_wrong_key(request.scope)
        raise
    caller = request.state.caller = signed_in.key.caller()
    set_cookie(response, signed_in.token, secure=is_https(request.scope))
    return await _session(request, caller, signed_in)


@session_router.get("/session", responses=failures(401, 429, 503), dependencies=BROWSE)
async def current_session(request: Request, response: Response) -> SessionShape:
    """Who is calling: the signed-in key, the key of the request, the local administrator while no key exists, or the
    public. The cookie of a session that has ended is deleted when the caller goes on without one."""
    signed_in: SignedIn | None = getattr(request.state, "signed_in", None)
    caller = caller_of(request)
    if caller.keyless and token_of(request.headers) is not None:
        delete_cookie(response, request.scope)
    return await _session(request, caller, signed_in)


@session_router.delete("/session", status_code=204, responses=failures(401, 403, 429, 503), dependencies=READ)
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


async def _session(request: Request, caller: Caller, signed_in: SignedIn | None) -> SessionShape:
    paths = sorted({str(anchor.path) for grant in caller.access.grants for anchor in grant.anchors})
    app, provider = app_of(request), None
    if signed_in and signed_in.session.checked_at is not None and app.sign_in is not None:
        provider = await app.sign_in.provider_of(signed_in.key)
    return SessionShape(
        kind="session" if signed_in else "local" if caller is LOCAL else "public" if caller.keyless else "key",
        name=caller.name,
        role=caller.role,
        scope=paths if caller.access.grants else None,
        csrf=csrf_of(signed_in.token) if signed_in else None,
        expires_at=signed_in.session.expires_at.isoformat() if signed_in else None,
        public=app.public is not None,
        provider=provider,
        regulations=await app.regulations.exist(scope=caller.access),
    )
