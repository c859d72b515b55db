"""The SQL statements of `sql/*.sql`, each under a `-- name:` line, and the advisory locks that they take.

`:name` marks a parameter, which psycopg always sends apart from the text; `::type` casts are left alone. `{filters}`
is replaced by conditions of `sql/filters.sql`, never by a value; `{document_text}` by that of `sql/shared.sql`. Text
under a `-- fragment:` line is part of the statements of the same file that name it in braces.

Locks have every number once, in the key space of single 64-bit keys. The locks of documents and segments are in the
same key space; their keys are taken from random identifiers (`uuid_key`). The lock of a work of regulations has such a
key, too; it is taken after that of a document. Order for those who take several: TAXONOMY, WRITERS, MERGE, IDENTITY.
"""

from __future__ import annotations

import functools
import re
import uuid
from collections.abc import Iterable, Sequence
from enum import IntEnum, unique
from typing import Any, LiteralString

from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from dtrag.adapters.sql_files import statements
from dtrag.core.access.scope import Scope, SearchFilters


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
    CHANGES = 7_203_114_009
    """Changes of many documents: one at a time, as each takes a thousand locks; taken before every other."""


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
    """The key of the lock of a document or segment: of one that is being written, or whose file is."""
    return int.from_bytes(identifier.bytes[:8], "big", signed=True)


_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")


@functools.cache
def queries(subject: str) -> dict[str, LiteralString]:
    """The statements of `sql/<subject>.sql` by name, with psycopg's `%(name)s` in place of `:name`."""
    return {name: _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%")) for name, text in _statements(subject).items()}


def _statements(subject: str) -> dict[str, LiteralString]:
    text_of_document = statements("dtrag.adapters.postgres", "sql/shared.sql")["document_text"]
    return {
        name: text.replace("{document_text}", text_of_document)
        for name, text in statements("dtrag.adapters.postgres", f"sql/{subject}.sql").items()
    }


def condition(filters: Iterable[str]) -> LiteralString:
    """The named conditions of `sql/filters.sql`, with `:name` for their parameters."""
    return " ".join(_statements("filters")[name] for name in filters)


def filtered(statement: LiteralString, filters: Iterable[str]) -> LiteralString:
    """The statement with the named conditions of `sql/filters.sql` in the place of `{filters}`."""
    return statement.replace("{filters}", _PARAMETER.sub(r"%(\1)s", condition(filters)))


def filter_parameters(scope: Scope, filters: SearchFilters) -> dict[str, object]:
    """Name of a condition in `sql/filters.sql` -> its parameter, for those that the scope and the filters need."""
    parameters: dict[str, object] = {}
    if scope.nodes is not None:
        parameters["scope"] = sorted(scope.nodes)
    if filters.content_types is not None:
        parameters["content_types"] = list(filters.content_types)
    if filters.date_from is not None:
        parameters["date_from"] = filters.date_from
    if filters.date_to is not None:
        parameters["date_to"] = filters.date_to
    if filters.metadata is not None:
        parameters["metadata"] = Jsonb(dict(filters.metadata))
    return parameters
