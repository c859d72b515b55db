"""Sessions of the web page in the database: `SessionStore` over the table sessions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.queries import queries
from dtrag.core.access.session import IDLE, LONGEST, Session


class PostgresSessions:
    """The sessions of one database."""

    def __init__(self, database: Database):
        self._database = database
        self._sql = queries("sessions")

    async def add(self, session: Session, most: int) -> None:
        """See `SessionStore`."""
        values = {
            "digest": session.digest,
            "key_prefix": session.key_prefix,
            "created_at": session.created_at,
            "used_at": session.used_at,
        }
        async with self._database.connection("owner") as connection:
            await connection.execute(self._sql["insert"], values)
            await connection.execute(self._sql["trim"], {"key_prefix": session.key_prefix, "most": most})

    async def get(self, digest: bytes) -> Session | None:
        """See `SessionStore`."""
        async with self._database.connection("owner") as connection:
            row = await (await connection.execute(self._sql["get"], {"digest": digest})).fetchone()
        if row is None:
            return None
        return Session(bytes(row["digest"]), row["key_prefix"], row["created_at"], row["used_at"])

    async def use(self, digest: bytes, now: datetime, before: datetime) -> None:
        """See `SessionStore`."""
        await self._execute("use", {"digest": digest, "now": now, "before": before})

    async def delete(self, digest: bytes) -> bool:
        """See `SessionStore`."""
        return await self._execute("delete", {"digest": digest}) > 0

    async def forget(self, now: datetime) -> int:
        """See `SessionStore`."""
        return await self._execute("forget", {"idle_since": now - IDLE, "longest_since": now - LONGEST})

    async def _execute(self, name: str, values: Mapping[str, object]) -> int:
        async with self._database.connection("owner") as connection:
            return (await connection.execute(self._sql[name], values)).rowcount
