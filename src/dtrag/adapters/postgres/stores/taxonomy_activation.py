"""Activates a version of the category tree, and previews the effect.

One transaction: searches see the old tree with the old nodes of documents, or the new tree with the new nodes.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

import numpy as np
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from dtrag.adapters.postgres import editions
from dtrag.adapters.postgres.database import Connection, Database, compute_inside, fetch, fetch_row
from dtrag.adapters.postgres.queries import Lock, lock, queries
from dtrag.adapters.postgres.stores.taxonomy_moves import active_tree, place_tree, tree_of
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
    lowered_grades,
    scope_changes,
)
from dtrag.core.ranking.segments import DOCUMENTS, halves
from dtrag.core.taxonomy.apply import DocumentMoves, NodeSplit, applied, nearest
from dtrag.core.taxonomy.grades import Grades
from dtrag.core.taxonomy.operations import operations
from dtrag.core.taxonomy.tree import UNCLASSIFIED, Taxonomy
from dtrag.errors import Advice, Conflict, InvalidInput, NotFound

PAGE = 5_000
"""Documents in one statement."""
COMPUTED_S = 60.0
"""Longest computation between two statements: that of the places of a million documents takes seconds."""


async def preview(
    database: Database,
    version: str,
    kind: Kind,
    terms: Terms,
    now: datetime,
    *,
    grades: Grades,
    public: Grant | None = None,
) -> Preview:
    """The effect of activating the version, also for callers without a key, whose branches `public` are.

    Raises `NotFound` and `Conflict`.
    """
    async with database.connection("owner") as connection, connection.transaction():
        await connection.execute(queries("session")["read_one_state"])
        await compute_inside(connection, COMPUTED_S)
        change = await change_to(connection, version, kind, terms)
        return await previewed(connection, change, now, grades, public)


async def bring_in(
    database: Database,
    version: str,
    kind: Kind,
    terms: Terms,
    allowed: Callable[[Preview], None],
    *,
    by: str,
    now: datetime,
    grades: Grades,
    public: Grant | None = None,
) -> Preview:
    """Activate the version; returns the effect as `preview`. `allowed` may raise, and then nothing changes.

    Raises `NotFound` and `Conflict`.
    """
    sql = queries("taxonomy")
    async with database.connection("owner") as connection, connection.transaction():
        # In this order everywhere. Merges of segments do not wait for their lock, and writers hold none but the second.
        for name in (Lock.TAXONOMY, Lock.WRITERS, Lock.MERGE):
            await lock(connection, name)
        await compute_inside(connection, COMPUTED_S)
        change = await change_to(connection, version, kind, terms)
        preview = await previewed(connection, change, now, grades, public)
        allowed(preview)
        last = await fetch_row(connection, sql["last_activation"])
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
    tables = ("chunks", "lexical", "vectors", "waiting", "sentences", "originals", "imagined")
    parts = [sql[f"move_{name}"] for name in tables]
    moved: dict[uuid.UUID, int] = {}
    moved_editions: list[DictRow] = []
    for (from_node, to_node), documents in moves.items():
        for page in (documents[start : start + PAGE] for start in range(0, len(documents), PAGE)):
            values: dict[str, object] = {"from_node": from_node, "to_node": to_node, "document_ids": list(page)}
            rows = await fetch(connection, sql["move_rows"], values)
            moved_editions += [row for row in rows if row["work_id"] is not None]
            existing = [row["document_id"] for row in rows]  # deletions do not wait for the activation
            values["document_ids"] = existing
            for statement in parts:
                await connection.execute(statement, values)
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
    for row in await fetch(connection, sql["counted_segments"]):
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


async def previewed(
    connection: Connection, change: Change, now: datetime, grades: Grades, public: Grant | None
) -> Preview:
    """What the change does to documents, access and grades."""
    sql = queries("taxonomy")
    rows = await fetch(connection, sql["counts"])
    counts: dict[Pair, int] = {(row["node_id"], row["node_id"]): row["documents"] for row in rows}
    for pair, documents in change.moves.items():
        counts[pair] = len(documents)
        counts[pair[0], pair[0]] -= len(documents)
    counts = {pair: number for pair, number in counts.items() if number > 0}
    moved = []
    for (before, after), documents in change.moves.items():
        titles = await _titles(connection, documents[:EXAMPLES])
        moved.append(Moved(change.before.path(before), change.after.path(after), len(documents), tuple(titles)))
    known = await _grantees(connection, now)
    if public is not None:
        known.append(Grantee("public", "public", public))
    seen = scope_changes(known, change.before, change.after, counts)
    access = [await _reach(connection, change, shift, counts) for shift in seen]
    return Preview(
        change.after.version,
        change.before.version,
        tuple(sorted(moved, key=lambda row: (-row.documents, row.before, row.to))),
        tuple(access),
        lowered_grades(grades, change.before, change.after, change.vacated, counts),
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
        rows = await fetch(connection, queries("taxonomy")["examples"], values)
        examples += [Example(row["title"], change.after.path(row["node_id"])) for row in rows]
    return examples


async def _titles(connection: Connection, documents: Sequence[uuid.UUID]) -> list[str]:
    return sorted(
        row["title"]
        for row in await fetch(connection, queries("taxonomy")["titles_of"], {"document_ids": list(documents)})
    )


async def _grantees(connection: Connection, now: datetime) -> list[Grantee]:
    grantees: list[Grantee] = []
    for name in ("keys", "agents"):
        rows = await fetch(connection, queries("taxonomy")[name], {"now": now})
        grantees += [Grantee(row["kind"], row["name"], Grant.from_json(row["scope"])) for row in rows]
    return grantees


Kind = Literal["activate", "rollback"]
Terms = Callable[[str], list[int]]
"""The ids of the terms of a text, as the index holds them."""


@dataclass(frozen=True, slots=True)
class Change:
    """`moves` are the documents for each pair of nodes; `vacated` maps nodes that are no more to where theirs went."""

    kind: Kind
    before: Taxonomy
    after: Taxonomy
    moves: Mapping[Pair, Sequence[uuid.UUID]]
    vacated: Mapping[int, int] = field(default_factory=dict)


async def change_to(connection: Connection, version: str, kind: Kind, terms: Terms) -> Change:
    """Raises `NotFound` for an unknown version, and `Conflict` for one that cannot come into force."""
    sql = queries("taxonomy")
    row = await fetch_row(connection, sql["version"], {"version": version})
    if row is None:
        raise NotFound(f"There is no version {version[:40]!r} of the category tree.", Advice.LIST_VERSIONS)
    if row["active"]:
        raise Conflict(f"Version {version} is active already.")
    last = await fetch_row(connection, sql["activation_of"], {"version": version})
    activation = last["activation"] if last else None
    now = await active_tree(connection)
    if kind == "rollback":
        if activation is None:
            raise Conflict(f"Version {version} was never active.", Advice.ACTIVATE, version=version)
        return await _back(connection, version, now, activation)
    if activation is not None:
        raise Conflict(f"Version {version} was active before.", Advice.RETURN_TO, version=version)
    if row["parent"] != now.version:
        raise Conflict(
            f"Version {version} changes {row['parent']}, but {now.version} is active now. Propose the change again."
        )
    return await _forth(connection, version, now, row["operations"], terms)


async def _forth(connection: Connection, version: str, now: Taxonomy, rows: object, terms: Terms) -> Change:
    try:
        # On the tree as it is now: paths that documents named on ingest may have come since the proposal.
        grown = applied(now, operations(rows), version, next_id=0)
    except InvalidInput as error:
        raise Conflict(
            f"The tree has changed since {version} was proposed: {error} Propose the change again."
        ) from error
    moves = await _rehomed(connection, grown.rehoming, now, terms)
    vacated = {node: to for node, to in grown.rehoming.emptied.items() if node in now.nodes}
    return Change("activate", now, grown.taxonomy, moves, vacated)


async def _rehomed(
    connection: Connection, rehoming: DocumentMoves, now: Taxonomy, terms: Terms
) -> dict[Pair, list[uuid.UUID]]:
    sources = sorted(node for node in rehoming.sources if node in now.nodes)
    if not sources:
        return {}
    cursor = await connection.execute(queries("taxonomy")["documents_on"], {"node_ids": sources})
    divided = [node for node in sources if rehoming.divides(node)]
    held = await _held(connection, divided, rehoming, terms)
    whole = {node: rehoming.route(node, lambda step: None) for node in sources}
    moves: dict[Pair, list[uuid.UUID]] = defaultdict(list)
    for row in await cursor.fetchall():
        node, document = row["node_id"], row["document_id"]
        known = held.get(document, frozenset())
        to = rehoming.route(node, lambda step: step.part_of(document, known)) if node in divided else whole[node]  # noqa: B023
        if to != node:
            moves[node, to].append(document)
    return dict(moves)


async def _held(
    connection: Connection, nodes: Sequence[int], rehoming: DocumentMoves, terms: Terms
) -> dict[uuid.UUID, frozenset[str]]:
    """Which keywords of the splits the documents hold: all terms of one in a passage (titles are in each)."""
    divided = [step for step in rehoming.steps if isinstance(step, NodeSplit)]
    words = {word for step in divided for part in step.parts for word in part.keywords}
    term_ids = {word: np.unique(np.array(ids, np.int32)) for word in words if (ids := terms(word))}
    held: dict[uuid.UUID, set[str]] = defaultdict(set)
    if not nodes or not term_ids:
        return {}
    async with connection.cursor("passages_on", binary=True) as passages:
        await passages.execute(queries("taxonomy")["passages_on"], {"node_ids": list(nodes)})
        async for row in passages:
            passage_ids = np.frombuffer(row["terms"], np.int32)
            for word, keyword_ids in term_ids.items():
                if np.isin(keyword_ids, passage_ids).all():
                    held[row["document_id"]].add(word)
    return {document: frozenset(keywords) for document, keywords in held.items()}


async def _back(connection: Connection, version: str, now: Taxonomy, activation: int) -> Change:
    """Undo the moves of later activations, newest first; documents on later nodes go to the nearest older node."""
    sql = queries("taxonomy")
    then = await tree_of(connection, version) or Taxonomy(version)
    starts: dict[uuid.UUID, int] = {}
    places: dict[uuid.UUID, int] = {}
    for row in await fetch(connection, sql["moves_after"], {"activation": activation}):
        document = row["document_id"]
        starts.setdefault(document, row["node_id"])
        if places.setdefault(document, row["node_id"]) == row["to_node"]:
            places[document] = row["from_node"]
    for row in await fetch(connection, sql["documents_not_on"], {"node_ids": [*then.nodes, UNCLASSIFIED]}):
        starts.setdefault(row["document_id"], row["node_id"])
        places.setdefault(row["document_id"], row["node_id"])
    moves: dict[Pair, list[uuid.UUID]] = defaultdict(list)
    for document, place in places.items():
        to = place if place == UNCLASSIFIED else nearest(place, now, then)
        if to != starts[document]:
            moves[starts[document], to].append(document)
    vacated = {node: nearest(node, now, then) for node in now.nodes if node not in then.nodes}
    return Change("rollback", now, then, dict(moves), vacated)
