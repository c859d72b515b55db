"""Bodies and responses of `/keys`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from dtrag.core.access.api_key import Role, State
from dtrag.delivery.api.schemas.base import StrictBody
from dtrag.governance.api_keys import MAX_NAME, MAX_ORIGINS, MAX_PATHS, MAX_RATE


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


class KeyShape(BaseModel):
    """A key without its secret."""

    name: str = Field(description="Its name.")
    prefix: str = Field(description="How its secret begins.")
    role: Role = Field(description="public, reader, editor or admin.")
    scope: list[str] | None = Field(description="Branches that it may see; null for the whole tree.")
    rate_per_minute: int = Field(description="Requests per minute.")
    state: State = Field(description="valid, expired or revoked.")
    created_at: str = Field(description="When it was created, ISO 8601 in UTC.")
    expires_at: str | None = Field(description="When it expires; null for never.")
    revoked_at: str | None = Field(description="When it was revoked.")
    last_used_at: str | None = Field(description="When it was last used, to the minute.")
    agent_id: str | None = Field(description="The only agent that a public key may ask; null for other keys.")
    origins: list[str] = Field(description="Origins of the pages on which a public key may be used; [] for any client.")


class KeyList(BaseModel):
    """All keys, the newest first."""

    keys: list[KeyShape] = Field(description="The keys.")


class CreatedKeyShape(KeyShape):
    """A new key with its secret."""

    secret: str = Field(description="The secret. It is not stored and cannot be shown again.", repr=False)
    unresolved: list[str] = Field(description="Branches of its scope that do not exist yet; they grant nothing.")
