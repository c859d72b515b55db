"""Keys in the database: `KeyStore` over the table api_keys. Only the owner's role can read it."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Mapping

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from dtrag.adapters.postgres.database import Database
from dtrag.adapters.postgres.queries import queries
from dtrag.core.access.api_key import Key
from dtrag.core.access.scope import Grant


class PostgresKeys:
    """The keys of one database."""

    def __init__(self, database: Database):
        self._database = database
        self._sql = queries("keys")

    async def add(self, key: Key) -> bool:
        """Store a new key; False when an unrevoked key has its name."""
        values = {
            "key_id": key.key_id,
            "name": key.name,
            "prefix": key.prefix,
            "digest": key.digest,
            "role": key.role,
            "scope": None if key.grant is None else Jsonb(key.grant.as_json()),
            "rate": key.rate,
            "created_at": key.created_at,
            "expires_at": key.expires_at,
            "agent_id": key.agent_id,
            "origins": Jsonb(list(key.origins)),
        }
        return bool(await self._fetch("insert_key", values))

    async def of_prefix(self, prefix: str) -> Key | None:
        """The key that the secret's prefix leads to, or None; revoked and expired ones, too."""
        rows = await self._fetch("key_of_prefix", {"prefix": prefix})
        return _key(rows[0]) if rows else None

    async def every(self) -> list[Key]:
        """All keys that there are and were, the newest first."""
        return [_key(row) for row in await self._fetch("keys", {})]

    async def any(self) -> bool:
        """Whether there is a key, or ever was one."""
        return bool((await self._fetch("any_key", {}))[0]["found"])

    async def revoke(self, name: str, now: datetime.datetime) -> Key | None:
        """Revoke the key of that name; None when no unrevoked key has it."""
        rows = await self._fetch("revoke_key", {"name": name, "now": now})
        return _key(rows[0]) if rows else None

    async def used(self, key_id: uuid.UUID, now: datetime.datetime, before: datetime.datetime) -> None:
        """Remember when the key was used, unless that is known of a time after `before`."""
        async with self._database.connection("owner") as connection:
            await connection.execute(self._sql["use_key"], {"key_id": key_id, "now": now, "before": before})

    async def _fetch(self, name: str, values: Mapping[str, object]) -> list[DictRow]:
        async with self._database.connection("owner") as connection:
            return await (await connection.execute(self._sql[name], values)).fetchall()


def _key(row: DictRow) -> Key:
    return Key(
        row["key_id"],
        row["name"],
        row["prefix"],
        bytes(row["digest"]),
        row["role"],
        None if row["scope"] is None else Grant.from_json(row["scope"]),
        row["rate"],
        row["created_at"],
        row["expires_at"],
        row["revoked_at"],
        row["last_used_at"],
        row["agent_id"],
        tuple(row["origins"]),
    )
