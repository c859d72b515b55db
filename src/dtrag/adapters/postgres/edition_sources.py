"""The files that contain an edition: its document belongs to the one read last, then to another one."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection
from datetime import UTC, datetime

from dtrag.adapters.postgres.database import Connection
from dtrag.adapters.postgres.queries import queries
from dtrag.core.documents import IndexedDocument


async def listed(connection: Connection, document: IndexedDocument) -> None:
    """Record that the source of a document contains this edition; nothing for other documents."""
    edition = document.edition
    if edition is None or edition.work_id is None or edition.retained:
        return
    values = {
        "document_id": document.document_id,
        "source_id": document.source_id,
        "source_uri": document.source_uri,
        "source_path": document.source_path,
        "now": datetime.now(UTC),
    }
    await connection.execute(queries("editions")["list_source"], values)


async def hand_over(connection: Connection, source_id: uuid.UUID, lost: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Give those of the `lost` editions of a source that another one contains to the one that was read last.

    That file is read again with the next ingest: the text is still that of the former one. Returns their ids.
    """
    sql = queries("editions")
    rows = await (await connection.execute(sql["shared_editions"], {"source_id": source_id})).fetchall()
    heirs = {row["document_id"]: row for row in rows if row["document_id"] in lost}
    if heirs:
        names = ("document_id", "source_id", "source_uri", "source_path")
        columns = {f"{name}s": [row[name] for row in heirs.values()] for name in names}
        await connection.execute(sql["hand_over"], columns)
        await connection.execute(queries("writing")["bump_generation"])
    return set(heirs)


async def unlisted(connection: Connection, source_id: uuid.UUID, contains: Callable[[uuid.UUID], bool]) -> None:
    """Record that a source does not contain the other editions any more."""
    sql = queries("editions")
    rows = await (await connection.execute(sql["listed_editions"], {"source_id": source_id})).fetchall()
    others = [row["document_id"] for row in rows if not contains(row["document_id"])]
    if others:
        await connection.execute(sql["unlist_source"], {"source_id": source_id, "document_ids": others})


async def forgotten(connection: Connection, document_id: uuid.UUID) -> None:
    """Forget a deleted edition. The files that contain it are read again with the next ingest."""
    for name in ("forget_sources", "forget_edition"):
        await connection.execute(queries("editions")[name], {"document_id": document_id})
