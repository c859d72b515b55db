"""The regulations of a collection, read in the caller's scope under row-level security."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cachetools import LRUCache
from psycopg.rows import DictRow

from dtrag.adapters.postgres.database import Database, fetch
from dtrag.adapters.postgres.passage_cache import Version, version_of
from dtrag.adapters.postgres.queries import queries
from dtrag.core.access.scope import Scope
from dtrag.core.provisions import BETWEEN_HEADINGS, Provision, RegulationText
from dtrag.ports import valid_day

EDITION_BYTES = 16 * 2**20
"""Memory of the texts of editions that were read last; a book of 371 regulations has 5 MB."""
PROVISION_BYTES = 250


class PostgresRegulations:
    """Documents of the kind `regulation` with their provisions."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._editions: LRUCache[uuid.UUID, tuple[Version, RegulationText]] = LRUCache(EDITION_BYTES, getsizeof=_size)

    async def versions(self, scope: Scope) -> dict[uuid.UUID, bytes]:
        """The regulations in scope, ordered by name, each with a fingerprint that changes with its text."""
        async with self._database.scoped("reader", scope) as connection:
            return {
                row["document_id"]: bytes(row["fingerprint"])
                for row in await fetch(connection, queries("regulations")["versions"], {"as_of": valid_day(scope)})
            }

    async def read(self, document_ids: Sequence[uuid.UUID], scope: Scope) -> list[RegulationText]:
        """Those of the regulations that are in scope, ordered by name."""
        async with self._database.scoped("reader", scope) as connection:
            return [
                _regulation(row)
                for row in await fetch(
                    connection,
                    queries("regulations")["regulations"],
                    {"document_ids": list(document_ids), "as_of": valid_day(scope)},
                )
            ]

    async def editions(self, document_ids: Sequence[uuid.UUID], scope: Scope) -> list[RegulationText]:
        """All editions in scope of the works of these documents, with all their provisions, the oldest first.

        The database says which these are, in which version and with which days; only texts that are not cached in that
        version are read.
        """
        statements = queries("regulations")
        texts: dict[uuid.UUID, RegulationText] = {}
        async with self._database.scoped("reader", scope) as connection:
            editions = await fetch(connection, statements["editions"], {"document_ids": list(document_ids)})
            for row in editions:
                version, text = self._editions.get(row["document_id"], (None, None))
                if text is not None and version == version_of(row):
                    texts[row["document_id"]] = text
            unread = [row["document_id"] for row in editions if row["document_id"] not in texts]
            for row in await fetch(connection, statements["edition_texts"], {"document_ids": unread}) if unread else ():
                text = texts[row["document_id"]] = _regulation(row)
                if _size((version_of(row), text)) <= self._editions.maxsize:
                    self._editions[row["document_id"]] = version_of(row), text
        return [
            replace(
                texts[row["document_id"]],
                work_id=row["work_id"],
                effective_from=row["effective_from"],
                superseded_from=row["superseded_from"],
            )
            for row in editions
            if row["document_id"] in texts
        ]


def _size(edition: tuple[Version, RegulationText]) -> int:
    return 2 * len(edition[1].text) + PROVISION_BYTES * len(edition[1].provisions)


def _regulation(row: DictRow) -> RegulationText:
    return RegulationText(
        row["document_id"],
        row["title"],
        row["code"] or "",
        row["text"],
        _provisions(row["pieces"] or ()),
        row["work_id"],
        row["effective_from"],
        row["superseded_from"],
        tuple(row["headings"].split(BETWEEN_HEADINGS)) if row["headings"] else (),
    )


def _provisions(pieces: Sequence[Sequence[Any]]) -> tuple[Provision, ...]:
    """The provisions of the passages; the pieces of a long one follow each other."""
    provisions: list[Provision] = []
    for ordinal, start, end, kind, label, title, occurrence in pieces:
        if not kind or not label:
            continue
        last = provisions[-1] if provisions else None
        if last is not None and (last.kind, last.label, last.occurrence) == (kind, label, occurrence):
            provisions[-1] = replace(last, end=end, last=ordinal)
        else:
            provisions.append(Provision(kind, label, title or "", occurrence, start, end, ordinal, ordinal))
    return tuple(provisions)
