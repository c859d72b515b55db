"""Keeps the validity of editions: derived from all editions of a work, in the transaction that changes one of them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, date, datetime

from psycopg.rows import DictRow

from dtrag.adapters.postgres.database import Connection, fetch
from dtrag.adapters.postgres.queries import lock, queries, uuid_key
from dtrag.adapters.postgres.rows import article_dates
from dtrag.core.documents import IndexedDocument
from dtrag.core.editions import Edition, StoredEdition, Validity, passage_label, validity


async def written(connection: Connection, edition: Edition | None, node_id: int, origin: DictRow | None) -> None:
    """Derive the validity of the work of a document that was written, and of the works that it repeals.

    `origin` is the version that it replaced.
    """
    if origin is not None and (edition is None or edition.work_id != origin["work_id"]):
        await removed(connection, origin, ends=False)
    if edition is None or edition.work_id is None:
        return
    if (
        origin is not None
        and origin["followed_on"]
        and (origin["work_id"], origin["node_id"]) == (edition.work_id, node_id)
    ):
        values = {"document_id": origin["document_id"], "day": origin["followed_on"]}
        await connection.execute(queries("editions")["stay_followed"], values)
    await refresh_work(connection, edition.work_id)
    await refresh_repealed(connection, edition.repeals, node_id)
    if origin is not None:
        await refresh_repealed(connection, origin["repeals"] or (), origin["node_id"])


async def moved(connection: Connection, documents: Sequence[DictRow], node_ids: Collection[int]) -> None:
    """Derive the validity after these documents left or came to the nodes, of their works and of what they repeal."""
    for work_id in sorted({row["work_id"] for row in documents if row["work_id"] is not None}):
        await refresh_work(connection, work_id)
    names = sorted({name for row in documents for name in row["repeals"] or ()})
    for node_id in sorted(node_ids):
        await refresh_repealed(connection, names, node_id)


async def refresh_repealed(connection: Connection, names: Sequence[str], node_id: int) -> None:
    """Derive the validity of the works with these folded names in the category."""
    if not names:
        return
    values = {"names": list(names), "node_id": node_id}
    for work_id in sorted(
        row["work_id"] for row in await fetch(connection, queries("editions")["repealed_works"], values)
    ):
        await refresh_work(connection, work_id)


async def refresh_work(connection: Connection, work_id: uuid.UUID) -> None:
    """Derive the validity of all editions of a work, in each category from those there; other writers of them wait.

    The editions in one category know nothing of those in another, which a caller may not be allowed to see.
    """
    sql = queries("editions")
    await lock(connection, uuid_key(work_id))
    rows = await fetch(connection, sql["editions"], {"work_id": work_id})
    if not rows:
        return
    ids = [row["document_id"] for row in rows]
    labels: dict[uuid.UUID, list[str]] = {key: [] for key in ids}
    for row in await fetch(connection, sql["passages"], {"document_ids": ids}):
        labels[row["document_id"]].append(passage_label(row["kind"], row["label"]))
    valid: dict[uuid.UUID, Validity] = {}
    for node_id in sorted({row["node_id"] for row in rows}):
        here = [row for row in rows if row["node_id"] == node_id]
        editions = [
            StoredEdition(
                row["document_id"],
                row["effective_from"],
                article_dates(row),
                row["ends_on"],
                labels[row["document_id"]],
            )
            for row in here
        ]
        valid |= validity(editions, await _repealed_on(connection, work_id, here))
    await connection.execute(sql["forget_validity"], {"document_ids": ids})
    await connection.execute(sql["add_validity"], _validity_columns(valid))
    ends = {"document_ids": list(valid), "days": [each.end for each in valid.values()]}
    await connection.execute(sql["set_superseded"], ends)


async def _repealed_on(connection: Connection, work_id: uuid.UUID, rows: Sequence[DictRow]) -> list[date]:
    """The days on which another regulation repeals the work, in the category of these editions of it."""
    values = {
        "name": rows[-1]["work_name"],
        "node_id": rows[-1]["node_id"],
        "work_id": work_id,
    }
    return [row["day"] for row in await fetch(connection, queries("editions")["repealed_on"], values)]


def _validity_columns(valid: dict[uuid.UUID, Validity]) -> dict[str, object]:
    parts = [(key, part) for key, each in valid.items() for part in each.passages]
    return {
        "document_ids": [key for key, _ in parts],
        "first": [part.first for _, part in parts],
        "last": [part.last for _, part in parts],
        "starts": [part.start for _, part in parts],
        "ends": [part.end for _, part in parts],
    }


async def removed(connection: Connection, origin: DictRow, *, ends: bool) -> None:
    """Derive the validity of what remains of a work whose edition `origin` was deleted, and of what that repealed.

    With `ends`, the earlier editions do not become valid again, but for one that the file of `origin` still contains.
    """
    if origin["work_id"] is None:
        return
    if ends:
        values = {
            **{name: origin[name] for name in ("work_id", "node_id", "source_id")},
            "day": origin["effective_from"],
        }
        await connection.execute(queries("editions")["end_before"], values)
    await refresh_work(connection, origin["work_id"])
    await refresh_repealed(connection, origin["repeals"] or (), origin["node_id"])


async def mark_retained(connection: Connection, document_ids: Collection[uuid.UUID], *, retained: bool) -> None:
    """Record whether the file of these editions does not contain them any more."""
    values = {"document_ids": list(document_ids), "retained": retained}
    await connection.execute(queries("editions")["mark_retained"], values)


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
    rows = await fetch(connection, sql["shared_editions"], {"source_id": source_id})
    heirs = {row["document_id"]: row for row in rows if row["document_id"] in lost}
    if heirs:
        names = ("document_id", "source_id", "source_uri", "source_path")
        columns = {f"{name}s": [row[name] for row in heirs.values()] for name in names}
        for name in ("read_again", "hand_over"):
            await connection.execute(sql[name], columns)
        await connection.execute(queries("writing")["bump_generation"])
    return set(heirs)


async def unlisted(connection: Connection, source_id: uuid.UUID, contains: Callable[[uuid.UUID], bool]) -> None:
    """Record that a source does not contain the other editions any more."""
    sql = queries("editions")
    rows = await fetch(connection, sql["listed_editions"], {"source_id": source_id})
    others = [row["document_id"] for row in rows if not contains(row["document_id"])]
    if others:
        await connection.execute(sql["unlist_source"], {"source_id": source_id, "document_ids": others})


async def forgotten(connection: Connection, document_id: uuid.UUID) -> None:
    """Forget a deleted edition. The files that contain it are read again with the next ingest."""
    for name in ("forget_sources", "forget_edition"):
        await connection.execute(queries("editions")[name], {"document_id": document_id})
