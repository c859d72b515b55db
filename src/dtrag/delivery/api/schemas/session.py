"""Schemas of the session of the web page."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from dtrag.core.access.api_key import Role
from dtrag.delivery.api.schemas.base import StrictBody


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
