"""PostgreSQL advisory locks: every number once, all in the key space of single 64-bit keys.

The locks of documents and segments are in the same key space; their keys are taken from random identifiers
(`uuid_key`). The lock of a work of regulations has such a key, too; it is taken after that of a document.

Order for those who take several: TAXONOMY, WRITERS, MERGE, IDENTITY.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from enum import IntEnum, unique
from typing import Any

from psycopg import AsyncConnection

from dtrag.adapters.postgres.queries import queries


@unique
class Lock(IntEnum):
    """What each lock protects."""

    SCHEMA = 7_203_114_000
    """Creation of the roles, the extension and the schema."""
    MIGRATIONS = 7_203_114_001
    """The schema while migrations run."""
    AUDIT = 7_203_114_002
    """The end of the audit log: one process at a time appends."""
    TAXONOMY = 7_203_114_003
    """The category trees: one change at a time."""
    MERGE = 7_203_114_004
    """The set of counted segments: one merge at a time."""
    WRITERS = 7_203_114_005
    """Batches of documents. Shared: a writer, from the choice of a document's category until its segment is counted;
    taken before any document is locked. Exclusive: an activation, which removes categories, and
    `index_settings.forget`, which removes all segments."""
    IDENTITY = 7_203_114_006
    """What the index was built with (analyzer, spaces of vectors), and the own entries of the lexicon."""
    STRICT_INDEX = 7_203_114_007
    """The creation of the index of mode strict: one process creates it."""
    REVIEW = 7_203_114_008
    """The waiting answers of the review queue: one is added at a time."""
    VECTORS = 7_203_114_009
    """Making the vectors of passages: one process at a time. Held by a connection while it works."""
    VECTOR_SERVICE = 7_203_114_010
    """Shared by the services, which make the vectors that other processes leave to them."""


async def lock(connection: AsyncConnection[Any], key: int) -> None:
    """Take the lock exclusively until the transaction ends; waits for it."""
    await connection.execute(queries("locks")["transaction"], {"lock": key})


async def lock_shared(connection: AsyncConnection[Any], name: Lock) -> None:
    """Take the lock together with other sharers until the transaction ends; waits for an exclusive holder."""
    await connection.execute(queries("locks")["transaction_shared"], {"lock": name})


async def try_lock(connection: AsyncConnection[Any], key: int) -> bool:
    """Take the lock exclusively until the transaction ends if it is free; whether it was."""
    cursor = await connection.execute(queries("locks")["try_transaction"], {"lock": key})
    row = await cursor.fetchone()
    return bool(row["free"] if isinstance(row, dict) else row and row[0])


async def try_locks(connection: AsyncConnection[Any], keys: Sequence[int]) -> set[int]:
    """Take those of the locks exclusively until the transaction ends that are free; returns them."""
    cursor = await connection.execute(queries("locks")["try_each"], {"locks": list(keys)})
    return {row["lock"] for row in await cursor.fetchall()}


def uuid_key(identifier: uuid.UUID) -> int:
    """The key of the lock of a document or segment."""
    return int.from_bytes(identifier.bytes[:8], "big", signed=True)
