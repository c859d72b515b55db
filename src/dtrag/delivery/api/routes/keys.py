"""`/keys`: list, create and revoke API keys, for administrators of the whole tree."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import APIRouter, Request

from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.json_body import JsonRoute
from dtrag.delivery.api.middleware.audit import add_subjects
from dtrag.delivery.api.permissions import ADMIN_WHOLE_TREE, caller_of
from dtrag.delivery.api.schemas.errors import failures
from dtrag.delivery.api.schemas.keys import CreatedKeyShape, KeyList, KeyShape, NewKey

router = APIRouter(tags=["keys"])
posting = APIRouter(route_class=JsonRoute, tags=["keys"])


@router.get("/keys", responses=failures(403, 503), dependencies=ADMIN_WHOLE_TREE)
async def keys(request: Request) -> KeyList:
    """All keys, the newest first; revoked and expired ones stay in the list. Secrets are not stored."""
    now = datetime.now(UTC)
    return KeyList(keys=[KeyShape(**key.as_dict(now)) for key in await app_of(request).keys.every()])


@posting.post(
    "/keys",
    status_code=201,
    responses=failures(400, 403, 404, 409, 413, 415, 422, 503, 507),
    dependencies=ADMIN_WHOLE_TREE,
)
async def create(request: Request, body: NewKey) -> CreatedKeyShape:
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
        by=caller,
    )
    add_subjects(request, [str(created.key.key_id)])
    shown = created.key.as_dict(datetime.now(UTC))
    return CreatedKeyShape(**shown, secret=created.secret, unresolved=list(created.unresolved))


@router.delete("/keys/{name:path}", responses=failures(403, 404, 422, 503), dependencies=ADMIN_WHOLE_TREE)
async def revoke(request: Request, name: str) -> KeyShape:
    """Revoke the valid key with this name, with all its sessions."""
    revoked = await app_of(request).keys.revoke(name, by=caller_of(request))
    add_subjects(request, [str(revoked.key_id)])
    return KeyShape(**revoked.as_dict(datetime.now(UTC)))


router.include_router(posting)
