"""API keys in memory: `KeyStore`."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime

from dtrag.core.access.api_key import Key
from dtrag.testing.memory.state import MemoryState


class MemoryKeys:
    """The keys of one state."""

    def __init__(self, state: MemoryState):
        self._keys = state.keys
        self._agents = state.agents

    async def add(self, key: Key) -> bool:
        """Store a new key; False when an active key has its name."""
        if self._active(key.name) is not None or key.prefix in {other.prefix for other in self._keys.values()}:
            return False
        self._keys[key.key_id] = key
        return True

    async def of_prefix(self, prefix: str) -> Key | None:
        """The key with this prefix, or None; revoked and expired ones, too."""
        key = next((key for key in self._keys.values() if key.prefix == prefix), None)
        return self._with_agent(key) if key is not None else None

    async def every(self) -> list[Key]:
        """All keys, revoked ones included, the newest first."""
        keys = sorted(self._keys.values(), key=lambda key: (-key.created_at.timestamp(), key.key_id))
        return [self._with_agent(key) for key in keys]

    async def any(self) -> bool:
        """Whether there is a key, or ever was one."""
        return bool(self._keys)

    async def revoke(self, name: str, now: datetime) -> Key | None:
        """Revoke the active key of that name; None without one."""
        key = self._active(name)
        if key is None:
            return None
        self._keys[key.key_id] = revoked = replace(key, revoked_at=now)
        return revoked

    async def used(self, key_id: uuid.UUID, now: datetime, before: datetime) -> None:
        """Remember when the key was used, unless a use after `before` is known."""
        key = self._keys.get(key_id)
        if key is not None and (key.last_used_at is None or key.last_used_at <= before):
            self._keys[key_id] = replace(key, last_used_at=now)

    def _with_agent(self, key: Key) -> Key:
        """A public key has the branches that its agent has now, and ends with its agent."""
        if key.agent_id is None:
            return key
        agent = self._agents.get(key.agent_id)
        if agent is None:
            return replace(key, revoked_at=key.revoked_at or key.created_at)
        return replace(key, grant=agent.grant)

    def _active(self, name: str) -> Key | None:
        return next((key for key in self._keys.values() if key.name == name and key.revoked_at is None), None)
