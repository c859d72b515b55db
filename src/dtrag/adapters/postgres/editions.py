"""Keeps the validity of editions: derived from all editions of a work, in the transaction that changes one of them."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from datetime import date

from psycopg.rows import DictRow

from dtrag.adapters.postgres.database import Connection
from dtrag.adapters.postgres.locks import lock, uuid_key
from dtrag.adapters.postgres.queries import queries
from dtrag.adapters.postgres.rows import article_dates
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
    cursor = await connection.execute(queries("editions")["repealed_works"], values)
    for work_id in sorted(row["work_id"] for row in await cursor.fetchall()):
        await refresh_work(connection, work_id)


async def refresh_work(connection: Connection, work_id: uuid.UUID) -> None:
    """Derive the validity of all editions of a work, in each category from those there; other writers of them wait.

    The editions in one category know nothing of those in another, which a caller may not be allowed to see.
    """
    sql = queries("editions")
    await lock(connection, uuid_key(work_id))
    rows = await (await connection.execute(sql["editions"], {"work_id": work_id})).fetchall()
    if not rows:
        return
    ids = [row["document_id"] for row in rows]
    labels: dict[uuid.UUID, list[str]] = {key: [] for key in ids}
    for row in await (await connection.execute(sql["passages"], {"document_ids": ids})).fetchall():
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
    cursor = await connection.execute(queries("editions")["repealed_on"], values)
    return [row["day"] for row in await cursor.fetchall()]


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
