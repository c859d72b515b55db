"""Sessions of the web page: what a browser holds instead of a key.

The browser keeps a random token in a cookie that scripts cannot read; of it only the digest is stored. Requests that
change something also carry a CSRF token, which is derived from the session token and therefore needs no storage.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta

IDLE = timedelta(hours=12)
"""A session ends after this time without a request."""
LONGEST = timedelta(days=7)
"""A session ends after this time, however often it is used."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_CSRF = b"dtrag csrf"


@dataclass(frozen=True, slots=True)
class Session:
    """A stored session. It belongs to the key with `key_prefix` and ends with it at the latest."""

    digest: bytes = field(repr=False)
    key_prefix: str
    created_at: datetime
    used_at: datetime

    @property
    def expires_at(self) -> datetime:
        """When it ends unless it is used before."""
        return min(self.used_at + IDLE, self.created_at + LONGEST)


def new_token() -> str:
    """256 random bits."""
    return secrets.token_urlsafe(32)


def is_token(text: str) -> bool:
    """Whether the string has the form of a token."""
    return _TOKEN.fullmatch(text) is not None


def digest_of_token(token: str) -> bytes:
    """What is stored of a token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


def csrf_of(token: str) -> str:
    """The CSRF token of a session. It says nothing about the session token."""
    return hmac.new(token.encode("utf-8", "replace"), _CSRF, hashlib.sha256).hexdigest()


def is_csrf_of(token: str, sent: str) -> bool:
    """Whether `sent` is the CSRF token of the session."""
    return hmac.compare_digest(csrf_of(token).encode(), sent.encode("utf-8", "replace"))
