"""Activates a version of the category tree, and previews the effect.

One transaction: searches see the old tree with the old nodes of documents, or the new tree with the new nodes.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

import numpy as np
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from dtrag.adapters.postgres import editions
from dtrag.adapters.postgres.database import Connection, Database
from dtrag.adapters.postgres.locks import Lock, lock
from dtrag.adapters.postgres.queries import queries
from dtrag.adapters.postgres.stores.taxonomy_impact import Change, Kind, Terms, change_to
from dtrag.adapters.postgres.stores.taxonomy_rows import place_tree
from dtrag.core.access.scope import Grant
from dtrag.core.access.taxonomy_impact import (
    EXAMPLES,
    AccessChange,
    Example,
    Grantee,
    Moved,
    Pair,
    Preview,
    ScopeChange,
    access_change,
    scope_changes,
)
from dtrag.core.ranking.segments import DOCUMENTS, halves

PAGE = 5_000
"""Documents in one statement."""


async def preview(database: Database, version: str, kind: Kind, terms: Terms, now: datetime) -> Preview:
    """The effect of activating the version. Raises `NotFound` and `Conflict`."""
    async with database.connection("owner") as connection, connection.transaction():
        await connection.execute(queries("session")["read_one_state"])
        change = await change_to(connection, version, kind, terms)
        return await _previewed(connection, change, now)


async def bring_in(
    database: Database,
    version: str,
    kind: Kind,
    terms: Terms,
    allowed: Callable[[Preview], None],
    *,
    by: str,
    now: datetime,
) -> Preview:
    """Activate the version; returns the effect. `allowed` may raise, and then nothing changes.

    Raises `NotFound` and `Conflict`.
    """
    sql = queries("taxonomy")
    async with database.connection("owner") as connection, connection.transaction():
        # In this order everywhere. Merges of segments do not wait for their lock, and writers hold none but the second.
        for name in (Lock.TAXONOMY, Lock.WRITERS, Lock.MERGE):
            await lock(connection, name)
        change = await change_to(connection, version, kind, terms)
        preview = await _previewed(connection, change, now)
        allowed(preview)
        last = await (await connection.execute(sql["last_activation"])).fetchone()
        activation = (last["activation"] if last else 0) + 1
        if kind == "activate":
            await place_tree(connection, change.after)
        await connection.execute(sql["activate"], {"version": version})
        values = {"activation": activation, "version": version, "previous": change.before.version, "kind": kind}
        vacated = Jsonb({str(node): to for node, to in change.vacated.items()})
        await connection.execute(sql["insert_activation"], {**values, "by": by, "now": now, "vacated": vacated})
        await _move(connection, activation, change.moves)
        await connection.execute(queries("writing")["bump_generation"])
    return preview


async def _move(connection: Connection, activation: int, moves: Mapping[Pair, Sequence[uuid.UUID]]) -> None:
    sql = queries("taxonomy")
    moved: dict[uuid.UUID, int] = {}
    moved_editions: list[DictRow] = []
    for (from_node, to_node), documents in moves.items():
        for page in (documents[start : start + PAGE] for start in range(0, len(documents), PAGE)):
            values: dict[str, object] = {"from_node": from_node, "to_node": to_node, "document_ids": list(page)}
            rows = await (await connection.execute(sql["move_rows"], values)).fetchall()
            moved_editions += [row for row in rows if row["work_id"] is not None]
            existing = [row["document_id"] for row in rows]  # deletions do not wait for the activation
            values["document_ids"] = existing
            for name in ("move_chunks", "move_lexical", "move_vectors", "move_imagined"):
                await connection.execute(sql[name], values)
            await connection.execute(sql["insert_moves"], {**values, "activation": activation})
            moved.update(dict.fromkeys(existing, to_node))
    if moved:
        await _rewrite_heads(connection, moved)
        await editions.moved(connection, moved_editions, {node for pair in moves for node in pair})


async def _rewrite_heads(connection: Connection, moved: Mapping[uuid.UUID, int]) -> None:
    """Write the new nodes of the documents into the heads of their segments; postings do not change."""
    sql = queries("taxonomy")
    ids = np.array([halves(document) for document in moved], np.uint64)
    order = np.lexsort((ids[:, 1], ids[:, 0]))
    ids, nodes = ids[order], np.fromiter(moved.values(), np.int32, len(moved))[order]
    for row in await (await connection.execute(sql["counted_segments"])).fetchall():
        name = {"segment_id": row["segment_id"]}
        head = await (await connection.execute(sql["head"], name, binary=True)).fetchone()
        documents = np.frombuffer(head["documents"] if head else b"", DOCUMENTS).copy()
        document_ids = documents["document_id"]
        # Upper halves are nearly always distinct; documents that share one are distinguished below.
        first = np.searchsorted(ids[:, 0], document_ids[:, 0], "left")
        beyond = np.searchsorted(ids[:, 0], document_ids[:, 0], "right")
        touched = False
        for at in np.flatnonzero(beyond > first).tolist():
            for place in range(int(first[at]), int(beyond[at])):
                if ids[place, 1] == document_ids[at, 1]:
                    documents["node_id"][at] = nodes[place]
                    touched = True
        if touched:
            await connection.execute(sql["rewrite_head"], {**name, "documents": documents.tobytes()})


async def _previewed(connection: Connection, change: Change, now: datetime) -> Preview:
    sql = queries("taxonomy")
    rows = await (await connection.execute(sql["counts"])).fetchall()
    counts: dict[Pair, int] = {(row["node_id"], row["node_id"]): row["documents"] for row in rows}
    for pair, documents in change.moves.items():
        counts[pair] = len(documents)
        counts[pair[0], pair[0]] -= len(documents)
    counts = {pair: number for pair, number in counts.items() if number > 0}
    moved = []
    for (before, after), documents in change.moves.items():
        titles = await _titles(connection, documents[:EXAMPLES])
        moved.append(Moved(change.before.path(before), change.after.path(after), len(documents), tuple(titles)))
    seen = scope_changes(await _grantees(connection, now), change.before, change.after, counts)
    access = [await _reach(connection, change, shift, counts) for shift in seen]
    return Preview(
        change.after.version,
        change.before.version,
        tuple(sorted(moved, key=lambda row: (-row.documents, row.before, row.to))),
        tuple(access),
    )


async def _reach(
    connection: Connection, change: Change, shift: ScopeChange, counts: Mapping[Pair, int]
) -> AccessChange:
    gains = await _examples(connection, change, shift.gained)
    losses = await _examples(connection, change, shift.lost)
    return access_change(shift, counts, gains, losses)


async def _examples(connection: Connection, change: Change, pairs: Iterable[Pair]) -> list[Example]:
    examples: list[Example] = []
    staying = [before for before, after in pairs if before == after]
    for pair in sorted(pair for pair in pairs if pair[0] != pair[1]):
        titles = await _titles(connection, change.moves[pair][:EXAMPLES])
        examples += [Example(title, change.after.path(pair[1])) for title in titles]
        if len(examples) >= EXAMPLES:
            return examples[:EXAMPLES]
    if staying:
        leaving = [
            document for (before, _), documents in change.moves.items() if before in staying for document in documents
        ]
        values = {"node_ids": staying, "moved": leaving, "limit": EXAMPLES - len(examples)}
        rows = await (await connection.execute(queries("taxonomy")["examples"], values)).fetchall()
        examples += [Example(row["title"], change.after.path(row["node_id"])) for row in rows]
    return examples


async def _titles(connection: Connection, documents: Sequence[uuid.UUID]) -> list[str]:
    cursor = await connection.execute(queries("taxonomy")["titles_of"], {"document_ids": list(documents)})
    return sorted(row["title"] for row in await cursor.fetchall())


async def _grantees(connection: Connection, now: datetime) -> list[Grantee]:
    grantees: list[Grantee] = []
    for name in ("keys", "agents"):
        rows = await (await connection.execute(queries("taxonomy")[name], {"now": now})).fetchall()
        grantees += [Grantee(row["kind"], row["name"], Grant.from_json(row["scope"])) for row in rows]
    return grantees
