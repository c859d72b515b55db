"""API keys and their secrets, the callers that they identify, and sessions of the web page.

A session is what a browser holds instead of a key: a random token in a cookie that scripts cannot read; of it only the
digest is stored. Requests that change something also carry a CSRF token, which is derived from the session token and
therefore needs no storage.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import re
import secrets
import string
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal, get_args
from urllib.parse import urlsplit

from dtrag.core.access.scope import Access, Grant
from dtrag.core.response import Moment, response
from dtrag.core.source_rights import shown

PREFIX_LENGTH = 8
_PLAIN = string.ascii_letters + string.digits
_SECRET = re.compile(r"dtrag_([A-Za-z0-9]{8})_[A-Za-z0-9_-]{43}")
_NO_KEY = hashlib.sha256(secrets.token_bytes(32)).digest()

State = Literal["valid", "expired", "revoked"]
Role = Literal["public", "reader", "editor", "admin"]
Need = Literal["ask", "browse", "read", "originals", "write", "admin"]
"""ask: an agent; browse: search, ask and read documents; read: and what belongs to a key, such as conversations;
originals: pages of the files that documents were read from."""
ROLES: tuple[Role, ...] = get_args(Role)
_ALLOWED: Mapping[Role, frozenset[Need]] = {
    "reader": frozenset({"ask", "browse", "read"}),
    "editor": frozenset({"ask", "browse", "read", "write"}),
    "admin": frozenset({"ask", "browse", "read", "write", "admin"}),
}
PUBLIC_ID = uuid.UUID("00000000-0000-8000-8000-000000000001")
"""Stands for the id of a key where callers without one are counted or recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyView:
    """A key without its secret."""

    __pydantic_config__ = response("KeyShape")

    name: str
    """Its name."""
    prefix: str
    """How its secret begins."""
    role: Role
    """public, reader, editor or admin."""
    scope: list[str] | None
    """Branches that it may see; null for the whole tree."""
    rate_per_minute: int
    """Requests per minute."""
    state: State
    """valid, expired or revoked."""
    created_at: Moment
    """When it was created, ISO 8601 in UTC."""
    expires_at: Moment | None
    """When it expires; null for never."""
    revoked_at: Moment | None
    """When it was revoked."""
    last_used_at: Moment | None
    """When it was last used, to the minute."""
    agent_id: str | None
    """The only agent that a public key may ask; null for other keys."""
    origins: tuple[str, ...]
    """Origins of the pages on which a public key may be used; [] for any client."""
    principals: tuple[str, ...]
    """Users of sources as whom its caller reads, such as posix/kim."""
    originals: bool
    """Whether it may see pages of original files; administrators of the whole tree see them in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKeyView(KeyView):
    """A new key with its secret."""

    __pydantic_config__ = response("CreatedKeyShape")

    secret: str = field(repr=False)
    """The secret. It is not stored and cannot be shown again."""
    unresolved: tuple[str, ...]
    """Branches of its scope that do not exist yet; they grant nothing."""

    @classmethod
    def of(cls, key: KeyView, secret: str, unresolved: tuple[str, ...]) -> NewKeyView:
        """The view of a key with its secret."""
        shown = {declared.name: getattr(key, declared.name) for declared in fields(key)}
        return cls(**shown, secret=secret, unresolved=unresolved)


@dataclass(frozen=True, slots=True)
class Key:
    """A stored key. `grant` None: the whole tree; `rate` in requests per minute; `digest` is that of the secret.

    A key with the role `public` may only ask the agent `agent_id`, whose branches are its grant, and from a browser
    only on pages of `origins`. `principals` are the users of sources as whom its caller reads. `originals`: it may see
    pages of original files.
    """

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
    agent_id: uuid.UUID | None = None
    origins: tuple[str, ...] = ()
    principals: tuple[str, ...] = ()
    originals: bool = False

    def state(self, now: datetime.datetime) -> State:
        """Its state at that time."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "valid"

    def caller(self) -> Caller:
        """The caller that sends it. Only administrators with the whole tree see folders of the server."""
        grants = () if self.grant is None else (self.grant,)
        all_of_it = self.role == "admin" and not grants
        access = Access(grants, server_paths=all_of_it, principals=None if all_of_it else self.principals)
        return Caller(self.name, self.role, access, self.key_id, self.agent_id, self.originals or all_of_it)

    def view(self, now: datetime.datetime) -> KeyView:
        """The key without its digest."""
        return KeyView(
            name=self.name,
            prefix=f"dtrag_{self.prefix}",
            role=self.role,
            scope=None if self.grant is None else [str(anchor.path) for anchor in self.grant.anchors],
            rate_per_minute=self.rate,
            state=self.state(now),
            created_at=self.created_at,
            expires_at=self.expires_at,
            revoked_at=self.revoked_at,
            last_used_at=self.last_used_at,
            agent_id=str(self.agent_id) if self.agent_id else None,
            origins=self.origins,
            principals=tuple(map(shown, self.principals)),
            originals=self.originals,
        )


def new_secret() -> str:
    """`dtrag_<8 characters for the look-up>_<256 random bits>`."""
    prefix = "".join(secrets.choice(_PLAIN) for _ in range(PREFIX_LENGTH))
    return f"dtrag_{prefix}_{secrets.token_urlsafe(32)}"


def prefix_of(secret: str) -> str | None:
    """The prefix for the look-up; None when the string does not have the form of a secret."""
    match = _SECRET.fullmatch(secret)
    return match[1] if match else None


def digest_of(secret: str) -> bytes:
    """SHA-256. Slow hashes protect guessable passwords; 256 random bits cannot be guessed."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def opens(secret: str, key: Key | None) -> bool:
    """Whether it is the secret of the key. Takes the same time for an unknown key (None)."""
    same = hmac.compare_digest(digest_of(secret), key.digest if key is not None else _NO_KEY)
    return same and key is not None


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller. `name` is that of the key, or `local` when no keys are configured; then `key_id` is None.

    `agent_id` is the only agent that a public key may ask. Without one, a caller with the role `public` has no key.
    """

    name: str
    role: Role
    access: Access
    key_id: uuid.UUID | None = None
    agent_id: uuid.UUID | None = None
    originals: bool = False

    @property
    def owner(self) -> str:
        """Owner of the caller's conversations and traces: the id of the key, "" without keys."""
        return str(self.key_id) if self.key_id is not None else ""

    def at(self, as_of: datetime.date | None) -> Caller:
        """The same caller reading regulations as of a day; None changes nothing."""
        return replace(self, access=self.access.at(as_of))

    @property
    def keyless(self) -> bool:
        """Whether it is one of the callers without a key to whom some branches are public."""
        return self.key_id == PUBLIC_ID

    def may(self, need: Need) -> bool:
        """Whether the role permits it; of originals, whether the key does."""
        if self.role == "public":
            return need == ("browse" if self.agent_id is None else "ask")
        if need == "originals":
            return self.originals
        return need in _ALLOWED[self.role]


LOCAL = Caller("local", "admin", Access(principals=None), originals=True)
"""The command line, and every client of the service while no key is configured."""


def is_origin(text: str) -> bool:
    """Whether it is an origin as browsers send it: scheme, host and port, nothing else."""
    try:
        parts = urlsplit(text)
        whole = f"{parts.scheme}://{parts.netloc}"
        named = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    clean = parts.username is None and "*" not in text and text.isascii() and not set(text) & set(" \\\"'<>")
    return named and clean and parts.scheme in {"http", "https"} and text.lower() == whole.lower()


IDLE = datetime.timedelta(hours=12)
"""A session ends after this time without a request."""
LONGEST = datetime.timedelta(days=7)
"""A session ends after this time, however often it is used."""
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_CSRF = b"dtrag csrf"
_SEALING = b"dtrag provider tokens"


@dataclass(frozen=True, slots=True)
class Session:
    """A stored session. It belongs to the key with `key_prefix` and ends with it at the latest.

    Of a person who signed in with an identity provider it has when that confirmed them last, and, encrypted with the
    token of the session, what it is asked with.
    """

    digest: bytes = field(repr=False)
    key_prefix: str
    created_at: datetime.datetime
    used_at: datetime.datetime
    checked_at: datetime.datetime | None = None
    sealed: bytes | None = field(default=None, repr=False)

    @property
    def expires_at(self) -> datetime.datetime:
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


def sealing_key_of(token: str) -> bytes:
    """32 bytes with which what a session keeps is encrypted: only a request with the token can read it."""
    return hmac.new(token.encode("utf-8", "replace"), _SEALING, hashlib.sha256).digest()


def csrf_of(token: str) -> str:
    """The CSRF token of a session. It says nothing about the session token."""
    return hmac.new(token.encode("utf-8", "replace"), _CSRF, hashlib.sha256).hexdigest()


def is_csrf_of(token: str, sent: str) -> bool:
    """Whether `sent` is the CSRF token of the session."""
    return hmac.compare_digest(csrf_of(token).encode(), sent.encode("utf-8", "replace"))
