"""API keys of the HTTP service: creation, verification at every request, and revocation; sessions of the web page.

Keys are cached for `KNOWN_S`. A key that another service or a command revokes stops working within that time, on every
machine; one that this service revokes at once, in all its processes. A session replaces a key that was entered once by
a cookie that scripts cannot read.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from dtrag.batch_writer import TidyTimer
from dtrag.core.access.api_key import (
    LOCAL,
    ROLES,
    Caller,
    Key,
    Role,
    Session,
    digest_of,
    digest_of_token,
    is_origin,
    is_token,
    new_secret,
    new_token,
    opens,
    prefix_of,
)
from dtrag.core.access.scope import Grant
from dtrag.core.agent import Agent
from dtrag.core.source_rights import parse_user
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.counts import Counts
from dtrag.errors import Conflict, DtragError, Forbidden, InvalidInput, NotFound, Unauthorized
from dtrag.ports import Index, KeyStore, Recorder, SessionStore, unrecorded

KNOWN_S = 0.5
"""Life of a cached key, in seconds: of a key in use, two look-ups a second in each process."""
MOST_KNOWN = 1_024
USED_EVERY = datetime.timedelta(minutes=1)
"""The last use of a key or a session is written at most this often."""
MAX_NAME = 80
MAX_PATHS = 100
MAX_ORIGINS = 20
MAX_PRINCIPALS = 20
MAX_RATE = 1_000_000
LIST_OF_KEYS = "`dtrag keys list` shows the keys."

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CreatedKey:
    """A new key and its secret, which is not stored; `unresolved` are paths that do not exist yet."""

    key: Key
    secret: str = field(repr=False)
    unresolved: tuple[str, ...] = ()


class Keys:
    """The keys of one app."""

    def __init__(
        self,
        store: KeyStore,
        index: Index,
        *,
        rate: int,
        record: Recorder = unrecorded,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ):
        self._store = store
        self._index = index
        self._rate = rate
        self._record = record
        self._now = now
        self._monotonic = monotonic
        self._known: dict[str, tuple[Key | None, float]] = {}
        self._needed: tuple[bool, float] | None = None
        self._public_origins: tuple[frozenset[str], float] | None = None
        self._noted: dict[uuid.UUID, datetime.datetime] = {}
        self._writing: set[asyncio.Task[None]] = set()
        self.count_in(Counts())

    def count_in(self, counts: Counts) -> None:
        """Notice at once what the other processes of these counts change."""
        self._changes = counts.row("changes of keys")
        self._noticed = self._changes.total()

    async def create(
        self,
        name: str,
        scope: Sequence[str | Sequence[str]] | None = None,
        role: Role = "reader",
        *,
        expires: datetime.datetime | None = None,
        rate: int | None = None,
        agent: Agent | None = None,
        origins: Sequence[str] = (),
        principals: Sequence[str] = (),
        originals: bool = False,
        by: Caller = LOCAL,
    ) -> CreatedKey:
        """Create a key; `scope` are category paths, None for the whole tree. Raises `InvalidInput` and `Conflict`.

        An unknown path is accepted; it grants nothing until a category has it. A key with the role `public` is for the
        pages of other sites: it may only ask `agent`, from browsers only on pages of `origins`. `principals` are the
        users of sources as whom its caller reads, such as posix/kim. `originals`: it may see pages of original files.
        """
        now = self._now()
        taxonomy = (await self._index.snapshot()).taxonomy
        if (_role(role) == "public") != (agent is not None) or (agent is None and origins):
            raise InvalidInput("A key with the role public has an agent, and only such a key has an agent and origins.")
        if agent is not None and scope is not None:
            raise InvalidInput("A public key has the branches of its agent: give no scope.")
        if agent is not None and principals:
            raise InvalidInput("A public key is used by many people: it cannot read as a user of a source.")
        if agent is not None and originals:
            raise InvalidInput("A public key cannot see original files: give it no originals.")
        if len(principals) > MAX_PRINCIPALS:
            raise InvalidInput(f"A key reads as at most {MAX_PRINCIPALS} users of sources.")
        grant = _grant(scope, taxonomy) if agent is None else agent.grant
        secret = new_secret()
        key = Key(
            uuid.uuid4(),
            _name(name),
            prefix_of(secret) or "",
            digest_of(secret),
            _role(role),
            grant,
            _checked_rate(self._rate if rate is None else rate),
            now,
            _later(expires, now),
            agent_id=agent.agent_id if agent is not None else None,
            origins=_origins(origins),
            principals=tuple(dict.fromkeys(map(parse_user, principals))),
            originals=originals,
        )
        if not await self._store.add(key):
            raise Conflict(f"There is a key named {key.name!r} already. Choose another name, or revoke that one first.")
        self._changes.own[0] += 1
        await self._changed(by, "keys.create", key)
        unresolved = grant.unresolved(taxonomy) if grant is not None else []
        return CreatedKey(key, secret, tuple(str(path) for path in unresolved))

    async def every(self) -> list[Key]:
        """All keys, revoked and expired ones included, newest first."""
        return await self._store.every()

    async def revoke(self, name: str, *, by: Caller = LOCAL) -> Key:
        """Revoke a key; it stays in the list. Raises `NotFound` when there is no unrevoked key with that name."""
        key = await self._store.revoke(name, self._now())
        if key is None:
            raise NotFound(f"There is no key {name[:MAX_NAME]!r} that is valid. {LIST_OF_KEYS}")
        self._changes.own[0] += 1
        await self._changed(by, "keys.revoke", key)
        return key

    async def needed(self, sent: str | None = None) -> bool:
        """Whether callers need a key: once a key has been created, even if all are revoked.

        A key that a command has created is noticed within `KNOWN_S`, and at once by a request that sends it: the
        caller of a key must not have the access of a service without keys.
        """
        self._follow()
        now = self._monotonic()
        if sent is not None and (prefix := prefix_of(sent)) is not None and await self._look_up(prefix) is not None:
            return True
        if self._needed is None or (not self._needed[0] and now - self._needed[1] >= KNOWN_S):
            self._needed = (await self._store.any(), now)
        return self._needed[0]

    async def public_origins(self) -> frozenset[str]:
        """The origins of all valid public keys: a browser asks about an origin before it sends the key."""
        self._follow()
        now = self._monotonic()
        if self._public_origins is None or now - self._public_origins[1] >= KNOWN_S:
            valid = [key for key in await self._store.every() if key.state(self._now()) == "valid"]
            self._public_origins = (frozenset(origin for key in valid for origin in key.origins), now)
        return self._public_origins[0]

    async def recognise(self, secret: str) -> Key:
        """The valid key with this secret. Raises `Unauthorized`, with the same message for every reason."""
        prefix = prefix_of(secret)
        key = await self._look_up(prefix) if prefix is not None else None
        now = self._now()
        if not opens(secret, key) or key is None or key.state(now) != "valid":
            raise Unauthorized(REFUSED)
        self._note_use(key, now)
        return key

    async def valid(self, prefix: str) -> Key | None:
        """The valid key with this prefix, whose use is noted; None when it is unknown, expired or revoked.

        For callers that proved their right in another way than with the secret, such as a session.
        """
        key, now = await self._look_up(prefix), self._now()
        if key is None or key.state(now) != "valid":
            return None
        self._note_use(key, now)
        return key

    async def of_id(self, key_id: uuid.UUID) -> Key:
        """The valid key with this id, as it is now. Raises `Forbidden`."""
        key = await self._store.of_id(key_id)
        if key is None or key.state(self._now()) != "valid":
            raise Forbidden("The key that requested this is not valid any more, so it is not done.")
        return key

    async def stored(self, key_id: uuid.UUID) -> Key | None:
        """The key with this id, also when it is revoked or expired; None when there is none."""
        return await self._store.of_id(key_id)

    def forget(self) -> None:
        """Read keys again, in all processes: their rights were changed elsewhere."""
        self._changes.own[0] += 1

    async def close(self) -> None:
        """Wait until the times of last use are written."""
        await asyncio.gather(*self._writing, return_exceptions=True)

    def _follow(self) -> None:
        """Forget what was known before a key was created or revoked."""
        if self._noticed != (changes := self._changes.total()):
            self._noticed, self._needed, self._public_origins = changes, None, None
            self._known.clear()

    async def _look_up(self, prefix: str) -> Key | None:
        self._follow()
        now = self._monotonic()
        cached = self._known.get(prefix)
        if cached is not None and now - cached[1] < KNOWN_S:
            return cached[0]
        changes = self._noticed
        key = await self._store.of_prefix(prefix)
        if changes != self._changes.total():
            return await self._store.of_prefix(prefix)  # the first read may be from before the revocation
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        # Cached from the time before the read, so that a concurrent revocation applies in time.
        self._known[prefix] = (key, now)
        return key

    def _note_use(self, key: Key, now: datetime.datetime) -> None:
        """Write the time of use in the background: requests do not wait for it and do not fail with it."""
        before = now - USED_EVERY
        last = self._noted.get(key.key_id) or key.last_used_at
        if last is not None and abs(now - last) < USED_EVERY:  # abs: a clock that was set back does not stop it
            return
        self._noted[key.key_id] = now
        task = asyncio.create_task(self._write_use(key.key_id, now, before))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write_use(self, key_id: uuid.UUID, now: datetime.datetime, before: datetime.datetime) -> None:
        try:
            await self._store.used(key_id, now, before)
        except DtragError as error:
            _LOG.warning("the last use of a key could not be written", exc_info=error)

    async def _changed(self, by: Caller, action: str, key: Key) -> None:
        await self._record(
            by.name,
            action,
            scope=None if key.grant is None else key.grant.as_json(),
            subjects=[str(key.key_id)],
            decision="done",
            details={
                "name": key.name,
                "role": key.role,
                "rate": key.rate,
                "principals": list(key.principals),
                "originals": key.originals,
            },
        )


REFUSED = (
    "This key is invalid, expired or revoked. Check that it was copied completely; an administrator sees with "
    "`dtrag keys list` which ones are valid."
)


def _grant(scope: Sequence[str | Sequence[str]] | None, taxonomy: Taxonomy) -> Grant | None:
    if scope is None:
        return None
    if not 1 <= len(scope) <= MAX_PATHS:
        raise InvalidInput(f"A key's scope has 1 to {MAX_PATHS} category paths; None is the whole tree.")
    return Grant.of([CategoryPath.parse(path) for path in scope], taxonomy)


def _name(name: str) -> str:
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME or not name.isprintable() or name.strip() != name:
        raise InvalidInput(f"A key's name has 1 to {MAX_NAME} characters without control characters or outer blanks.")
    if name in {".", ".."}:
        raise InvalidInput("A key cannot be named . or .., because addresses such as /keys/.. mean another place.")
    return name


def _role(role: Role) -> Role:
    if role not in ROLES:
        raise InvalidInput(f"Unknown role {str(role)[:20]!r}. Roles: {', '.join(ROLES)}.")
    return role


def _origins(origins: Sequence[str]) -> tuple[str, ...]:
    if len(origins) > MAX_ORIGINS:
        raise InvalidInput(f"A key has at most {MAX_ORIGINS} origins.")
    for origin in origins:
        if not is_origin(origin):
            raise InvalidInput(
                f"{origin[:80]!r} is not an origin. Give scheme and host in full, such as https://www.example.org."
            )
    return tuple(dict.fromkeys(origin.lower() for origin in origins))


def _checked_rate(rate: int) -> int:
    if not 1 <= rate <= MAX_RATE:
        raise InvalidInput(f"The rate is a number of requests a minute from 1 to {MAX_RATE:,}.")
    return rate


def _later(expires: datetime.datetime | None, now: datetime.datetime) -> datetime.datetime | None:
    if expires is not None and expires <= now:
        raise InvalidInput("The expiry is in the past. Give a date in the future, or days such as 90d.")
    return expires


MOST_SESSIONS = 100
"""Sessions of one key; another sign-in ends the oldest one."""
ENDED = "You are signed out: the session has ended, or its key is not valid any more. Sign in again with your key."
PUBLIC_KEY = "This key is for the pages of another site and only asks its agent. Sign in with a key of your own."


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session with its key and its token, which is not stored."""

    key: Key
    session: Session
    token: str = field(repr=False)


class Sessions:
    """The sessions of one app. `confirmed` raises unless the identity provider of a session stands by it."""

    def __init__(
        self,
        store: SessionStore,
        keys: Keys,
        *,
        confirmed: Callable[[Session, Key, str], Awaitable[None]],
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ):
        self._store = store
        self._keys = keys
        self._confirmed = confirmed
        self._now = now
        self._tidy_timer = TidyTimer(now, monotonic)

    async def sign_in(
        self, secret: str, replaced: str | None = None, *, require: Callable[[Key], Awaitable[None]] | None = None
    ) -> SignedIn:
        """A new session for the key with this secret; the session with the token `replaced` ends.

        Raises `Unauthorized` for a key that is not valid, `Forbidden` for a public one, and what `require` raises for
        the key. No session is created or ended then.
        """
        key = await self._keys.recognise(secret)
        if key.agent_id is not None:
            raise Forbidden(PUBLIC_KEY)
        if require is not None:
            await require(key)
        return await self.open(key, new_token(), replaced)

    async def open(self, key: Key, token: str, replaced: str | None = None, *, sealed: bytes | None = None) -> SignedIn:
        """A new session with this token for the key; `sealed` is kept of an identity provider."""
        now = self._now()
        checked_at = None if sealed is None else now
        session = Session(digest_of_token(token), key.prefix, now, now, checked_at, sealed)
        if self._tidy_timer.due():
            _LOG.debug("%d ended sessions were deleted", await self._store.forget(now))
        await self._store.add(session, MOST_SESSIONS)
        if replaced is not None:
            await self.sign_out(replaced)
        return SignedIn(key, session, token)

    async def recognise(self, token: str) -> SignedIn:
        """The session with this token, and its key. Raises `Unauthorized` when either is not valid any more."""
        session = await self._store.get(digest_of_token(token)) if is_token(token) else None
        now = self._now()
        if session is None or session.expires_at <= now:
            raise Unauthorized(ENDED)
        key = await self._keys.valid(session.key_prefix)
        if key is not None and session.checked_at is not None:
            await self._confirmed(session, key, token)
            key = await self._keys.valid(session.key_prefix)  # its rights may have changed
        if key is None:
            raise Unauthorized(ENDED)
        if abs(now - session.used_at) >= USED_EVERY:  # abs: a clock that was set back does not stop it
            await self._store.use(session.digest, now, now - USED_EVERY)
            session = replace(session, used_at=now)
        return SignedIn(key, session, token)

    async def sign_out(self, token: str) -> bool:
        """End the session with this token; False when there is none."""
        return is_token(token) and await self._store.delete(digest_of_token(token))
