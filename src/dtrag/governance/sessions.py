"""Sessions of the web page: a key that was entered once becomes a cookie that scripts cannot read."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from dtrag.core.access.api_key import Key
from dtrag.core.access.session import Session, digest_of_token, is_token, new_token
from dtrag.core.retention import TidyTimer
from dtrag.errors import Forbidden, Unauthorized
from dtrag.governance.api_keys import Keys
from dtrag.ports import SessionStore

MOST_SESSIONS = 100
"""Sessions of one key; another sign-in ends the oldest one."""
USED_EVERY = timedelta(minutes=1)
"""The last use of a session is written at most this often."""
ENDED = "You are signed out: the session has ended, or its key is not valid any more. Sign in again with your key."
PUBLIC_KEY = "This key is for the pages of another site and only asks its agent. Sign in with a key of your own."

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session with its key and its token, which is not stored."""

    key: Key
    session: Session
    token: str = field(repr=False)


class Sessions:
    """The sessions of one app."""

    def __init__(
        self,
        store: SessionStore,
        keys: Keys,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ):
        self._store = store
        self._keys = keys
        self._now = now
        self._tidy_timer = TidyTimer(now, monotonic)

    async def sign_in(
        self, secret: str, replaced: str | None = None, *, require: Callable[[Key], None] | None = None
    ) -> SignedIn:
        """A new session for the key with this secret; the session with the token `replaced` ends.

        Raises `Unauthorized` for a key that is not valid, `Forbidden` for a public one, and what `require` raises for
        the key. No session is created or ended then.
        """
        key = await self._keys.recognise(secret)
        if key.agent_id is not None:
            raise Forbidden(PUBLIC_KEY)
        if require is not None:
            require(key)
        now, token = self._now(), new_token()
        session = Session(digest_of_token(token), key.prefix, now, now)
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
        if key is None:
            raise Unauthorized(ENDED)
        if abs(now - session.used_at) >= USED_EVERY:  # abs: a clock that was set back does not stop it
            await self._store.use(session.digest, now, now - USED_EVERY)
            session = replace(session, used_at=now)
        return SignedIn(key, session, token)

    async def sign_out(self, token: str) -> bool:
        """End the session with this token; False when there is none."""
        return is_token(token) and await self._store.delete(digest_of_token(token))
