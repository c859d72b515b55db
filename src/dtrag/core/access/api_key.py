"""A key as it is stored, and the secret that is not: how it is made, taken apart and recognised."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import re
import secrets
import string
import uuid
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from dtrag.core.access.scope import Access, Grant

PREFIX_LENGTH = 8
_PLAIN = string.ascii_letters + string.digits
_SECRET = re.compile(r"dtrag_([A-Za-z0-9]{8})_[A-Za-z0-9_-]{43}")
_NOBODY = hashlib.sha256(secrets.token_bytes(32)).digest()

State = Literal["valid", "expired", "revoked"]
Role = Literal["reader", "editor", "admin"]
Need = Literal["read", "write", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
_ALLOWED: dict[Role, frozenset[Need]] = {
    "reader": frozenset({"read"}),
    "editor": frozenset({"read", "write"}),
    "admin": frozenset({"read", "write", "admin"}),
}


@dataclass(frozen=True, slots=True)
class Key:
    """A key; `grant` is None for the whole tree, `rate` counts requests a minute. `digest` is all there is of it."""

    key_id: uuid.UUID
    name: str
    prefix: str
    digest: bytes = field(repr=False)
    role: Role
    grant: Grant | None
    rate: int
    created_at: datetime.datetime
    expires_at: datetime.datetime | None = None
    revoked_at: datetime.datetime | None = None
    last_used_at: datetime.datetime | None = None

    def state(self, now: datetime.datetime) -> State:
        """How it stands at that time."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "valid"

    def caller(self) -> Caller:
        """Whoever sends it. Only administrators of the whole tree are shown folders of this machine."""
        grants = () if self.grant is None else (self.grant,)
        access = Access(grants, server_paths=self.role == "admin" and not grants)
        return Caller(self.name, self.role, access, self.key_id)

    def as_dict(self, now: datetime.datetime) -> dict[str, Any]:
        """What may be shown of it; `scope` is None for the whole tree."""
        return {
            "name": self.name,
            "prefix": f"dtrag_{self.prefix}",
            "role": self.role,
            "scope": None if self.grant is None else [str(anchor.path) for anchor in self.grant.anchors],
            "rate_per_minute": self.rate,
            "state": self.state(now),
            "created_at": self.created_at.isoformat(),
            "expires_at": self.expires_at.isoformat() if self.expires_at else None,
            "revoked_at": self.revoked_at.isoformat() if self.revoked_at else None,
            "last_used_at": self.last_used_at.isoformat() if self.last_used_at else None,
        }


def new_secret() -> str:
    """`dtrag_<8 characters to look it up by>_<256 random bits>`."""
    prefix = "".join(secrets.choice(_PLAIN) for _ in range(PREFIX_LENGTH))
    return f"dtrag_{prefix}_{secrets.token_urlsafe(32)}"


def prefix_of(secret: str) -> str | None:
    """What to look the key up by; None for what cannot be a secret of ours."""
    found = _SECRET.fullmatch(secret)
    return found[1] if found else None


def digest_of(secret: str) -> bytes:
    """SHA-256. A slow hash protects secrets that people choose; 256 random bits cannot be tried out."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def opens(secret: str, key: Key | None) -> bool:
    """Whether it is the secret of the key. An unknown key takes the same steps and the same time."""
    same = hmac.compare_digest(digest_of(secret), key.digest if key is not None else _NOBODY)
    return same and key is not None


@dataclass(frozen=True, slots=True)
class Caller:
    """One caller. `name` is that of the key, or `local` where no keys are needed; `key_id` is None then."""

    name: str
    role: Role
    access: Access
    key_id: uuid.UUID | None = None

    @property
    def owner(self) -> str:
        """Whose conversations and traces are the caller's: the id of the key, "" where no keys are needed."""
        return str(self.key_id) if self.key_id is not None else ""

    def may(self, need: Need) -> bool:
        """Whether the role allows it."""
        return need in _ALLOWED[self.role]


LOCAL = Caller("local", "admin", Access())
"""Whoever uses the machine itself: the command line, and the service while no key is configured."""
