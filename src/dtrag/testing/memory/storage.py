"""Where the in-memory stores keep their data: always reachable, never full."""

from __future__ import annotations


class MemoryStorage:
    """Implements `dtrag.ports.Storage`."""

    async def ping(self) -> None:
        """It always answers."""

    def require_space(self, adding: int = 0) -> None:
        """There is always space."""
