"""`/keys`: list, create and revoke API keys, for administrators of the whole tree."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import AfterValidator, BaseModel, Field

from dtrag.core.access.api_key import KeyView, NewKeyView, Role
from dtrag.delivery.api.dependencies import app_of
from dtrag.delivery.api.middleware.audit import add_subjects
from dtrag.delivery.api.permissions import ADMIN_WHOLE_TREE, caller_of
from dtrag.delivery.api.routing import JsonRoute, StrictBody, failures
from dtrag.governance.api_keys import MAX_NAME, MAX_ORIGINS, MAX_PATHS, MAX_RATE

router = APIRouter(route_class=JsonRoute, tags=["keys"])


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError("must be a time in the years 1 to 9999 in UTC") from None


Moment = Annotated[datetime, Field(strict=False), AfterValidator(_in_utc)]
"""A time in ISO 8601, UTC if it has no zone."""


class NewKey(StrictBody):
    """A key to create."""

    name: str = Field(min_length=1, max_length=MAX_NAME, description="Unique among valid keys.", examples=["HR desk"])
    role: Role = Field("reader", description="reader, editor (also writes), admin, or public.")
    scope: list[str | list[str]] | None = Field(
        None, min_length=1, max_length=MAX_PATHS, description="Branches that it may see; without it the whole tree."
    )
    expires_at: Moment | None = Field(None, description="When it expires; never if absent.")
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


class KeyList(BaseModel):
    """All keys, the newest first."""

    keys: list[KeyView] = Field(description="The keys.")


@router.get("/keys", responses=failures(403, 503), dependencies=ADMIN_WHOLE_TREE)
async def keys(request: Request) -> KeyList:
    """All keys, the newest first; revoked and expired ones stay in the list. Secrets are not stored."""
    now = datetime.now(UTC)
    return KeyList(keys=[key.view(now) for key in await app_of(request).keys.every()])


@router.post(
    "/keys",
    status_code=201,
    responses=failures(400, 403, 404, 409, 413, 415, 422, 503, 507),
    dependencies=ADMIN_WHOLE_TREE,
)
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
        by=caller,
    )
    add_subjects(request, [str(created.key.key_id)])
    return NewKeyView.of(created.key.view(datetime.now(UTC)), created.secret, created.unresolved)


@router.delete("/keys/{name:path}", responses=failures(403, 404, 422, 503), dependencies=ADMIN_WHOLE_TREE)
async def revoke(request: Request, name: str) -> KeyView:
    """Revoke the valid key with this name, with all its sessions."""
    revoked = await app_of(request).keys.revoke(name, by=caller_of(request))
    add_subjects(request, [str(revoked.key_id)])
    return revoked.view(datetime.now(UTC))
