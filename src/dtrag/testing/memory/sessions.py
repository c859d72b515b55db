"""Sessions of the web page in memory: `SessionStore`."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from dtrag.core.access.session import Session
from dtrag.testing.memory.state import MemoryState


class MemorySessions:
    """The sessions of one state."""

    def __init__(self, state: MemoryState):
        self._sessions = state.sessions
        self._keys = state.keys

    async def add(self, session: Session, most: int) -> None:
        """See `SessionStore`."""
        if session.key_prefix not in {key.prefix for key in self._keys.values()}:
            return
        self._sessions.setdefault(session.digest, session)
        of_key = [stored for stored in self._sessions.values() if stored.key_prefix == session.key_prefix]
        of_key.sort(key=lambda stored: (stored.created_at, stored.digest), reverse=True)
        for stored in of_key[most:]:
            del self._sessions[stored.digest]

    async def get(self, digest: bytes) -> Session | None:
        """See `SessionStore`."""
        return self._sessions.get(digest)

    async def use(self, digest: bytes, now: datetime, before: datetime) -> None:
        """See `SessionStore`."""
        session = self._sessions.get(digest)
        if session is not None and session.used_at <= before:
            self._sessions[digest] = replace(session, used_at=now)

    async def delete(self, digest: bytes) -> bool:
        """See `SessionStore`."""
        return self._sessions.pop(digest, None) is not None

    async def forget(self, now: datetime) -> int:
        """See `SessionStore`."""
        ended = [session.digest for session in self._sessions.values() if session.expires_at < now]
        for digest in ended:
            del self._sessions[digest]
        return len(ended)
