"""What bringing a version of the tree into force means here and now: the new tree, and which documents go where.

Read in the transaction that also does it (activation.py), or in one that only looks.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from dtrag.adapters.postgres.database import Connection
from dtrag.adapters.postgres.queries import queries
from dtrag.adapters.postgres.stores.taxonomy_rows import active_tree, tree_of
from dtrag.core.access.taxonomy_impact import Pair
from dtrag.core.taxonomy.apply import DocumentMoves, NodeSplit, applied, nearest
from dtrag.core.taxonomy.operations import operations
from dtrag.core.taxonomy.tree import UNCLASSIFIED, Taxonomy
from dtrag.errors import Advice, Conflict, InvalidInput, NotFound

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
    row = await (await connection.execute(sql["version"], {"version": version})).fetchone()
    if row is None:
        raise NotFound(f"There is no version {version[:40]!r} of the category tree.", Advice.LIST_VERSIONS)
    if row["active"]:
        raise Conflict(f"Version {version} is active already.")
    last = await (await connection.execute(sql["activation_of"], {"version": version})).fetchone()
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
    cursor = await connection.execute(sql["moves_after"], {"activation": activation})
    for row in await cursor.fetchall():
        document = row["document_id"]
        starts.setdefault(document, row["node_id"])
        if places.setdefault(document, row["node_id"]) == row["to_node"]:
            places[document] = row["from_node"]
    cursor = await connection.execute(sql["documents_not_on"], {"node_ids": [*then.nodes, UNCLASSIFIED]})
    for row in await cursor.fetchall():
        starts.setdefault(row["document_id"], row["node_id"])
        places.setdefault(row["document_id"], row["node_id"])
    moves: dict[Pair, list[uuid.UUID]] = defaultdict(list)
    for document, place in places.items():
        to = place if place == UNCLASSIFIED else nearest(place, now, then)
        if to != starts[document]:
            moves[starts[document], to].append(document)
    vacated = {node: nearest(node, now, then) for node in now.nodes if node not in then.nodes}
    return Change("rollback", now, then, dict(moves), vacated)
