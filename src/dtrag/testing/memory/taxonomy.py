"""Versions of the category tree in memory: `TaxonomyStore`."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from dtrag.core.access import taxonomy_impact as impact
from dtrag.core.access.scope import EVERYTHING, Scope
from dtrag.core.access.taxonomy_impact import Pair, TreeVersion
from dtrag.core.taxonomy.apply import DocumentMoves, NodeSplit, applied, nearest
from dtrag.core.taxonomy.operations import Operation
from dtrag.core.taxonomy.tree import UNCLASSIFIED, Taxonomy
from dtrag.core.taxonomy.versions import next_version, parse_version
from dtrag.errors import Conflict, InvalidInput, NotFound
from dtrag.testing.memory.state import Activation, MemoryState, StoredDocument

Kind = Literal["activate", "rollback"]


@dataclass(frozen=True, slots=True)
class _Change:
    """`moves` are the documents for each pair of nodes; `vacated` maps nodes that leave the tree to their successor."""

    after: Taxonomy
    moves: Mapping[Pair, Sequence[uuid.UUID]]
    vacated: Mapping[int, int]


class MemoryTaxonomy:
    """The tree of one state. `term_ids` gives the terms of a text, for splits by keywords."""

    def __init__(self, state: MemoryState, term_ids: Callable[[str], list[int]]):
        self._state = state
        self._term_ids = term_ids

    async def active(self) -> Taxonomy:
        """The active tree."""
        return self._state.taxonomy

    async def tree(self, version: str) -> Taxonomy | None:
        """The tree of a version, or None."""
        return self._state.trees.get(version)

    async def versions(self) -> list[TreeVersion]:
        """All versions, the newest first."""
        activated = {activation.version: activation.activated_at for activation in self._state.activations}
        versions = [
            replace(row, active=row.version == self._state.active_version, activated_at=activated.get(row.version))
            for row in self._state.versions.values()
        ]
        return sorted(versions, key=lambda row: (row.created_at, row.version), reverse=True)

    async def counts(self) -> dict[int, int]:
        """Documents on each node; only nodes that have some."""
        return dict(Counter(stored.node_id for stored in self._state.documents.values()))

    async def propose(
        self,
        operations: Sequence[Operation],
        rationale: str,
        parent: str | None,
        version: str | None,
        *,
        by: str,
        now: datetime,
    ) -> TreeVersion:
        """Store a version that is not active. Raises `InvalidInput`, `NotFound`, `Conflict`."""
        base = self._state.trees.get(parent) if parent else self._state.taxonomy
        if base is None:
            raise NotFound(f"There is no version {str(parent)[:40]!r}. List them with: dtrag taxonomy list")
        taken = self._state.versions.keys()
        number = version or next_version(base.version, {operation.kind for operation in operations}, taken)
        parse_version(number)
        if number in taken:
            raise Conflict(f"There is a version {number} already. Leave the number out, or take another.")
        grown = applied(base, operations, number, self._state.last_node + 1)
        self._state.last_node = max(self._state.last_node, grown.next_id - 1)
        row = TreeVersion(number, base.version, rationale, False, grown.operations, by, now, None)
        self._state.versions[number] = row
        self._state.trees[number] = grown.taxonomy
        return row

    async def preview(self, version: str, kind: Kind, now: datetime) -> impact.Preview:
        """What activating the version would do. Raises `NotFound` and `Conflict`."""
        return self._preview(self._change_to(version, kind), now)

    async def bring_in(
        self, version: str, kind: Kind, allowed: Callable[[impact.Preview], None], *, by: str, now: datetime
    ) -> impact.Preview:
        """Activate the version; nothing changes when `allowed` raises. Raises `NotFound` and `Conflict`."""
        change = self._change_to(version, kind)
        preview = self._preview(change, now)
        allowed(preview)
        moves = {document: pair for pair, documents in change.moves.items() for document in documents}
        self._state.trees[version] = change.after
        self._state.active_version = version
        self._state.activations.append(Activation(version, now, dict(change.vacated), moves))
        for document, (_, node_id) in moves.items():
            self._state.move(document, node_id)
        self._state.refresh_editions()
        self._state.changed()
        return preview

    def _change_to(self, version: str, kind: Kind) -> _Change:
        row, now = self._state.versions.get(version), self._state.taxonomy
        if row is None:
            raise NotFound(
                f"There is no version {version[:40]!r} of the category tree. List them with: dtrag taxonomy list"
            )
        if version == now.version:
            raise Conflict(f"Version {version} is active already.")
        was_active = any(activation.version == version for activation in self._state.activations)
        if kind == "rollback":
            if not was_active:
                raise Conflict(
                    f"Version {version} was never active. Activate it with: dtrag taxonomy activate {version}"
                )
            return self._back(version)
        if was_active:
            raise Conflict(f"Version {version} was active before. Return to it with: dtrag taxonomy rollback {version}")
        if row.parent != now.version:
            raise Conflict(
                f"Version {version} changes {row.parent}, but {now.version} is active now. Propose the change again."
            )
        return self._forth(row)

    def _forth(self, row: TreeVersion) -> _Change:
        now = self._state.taxonomy
        try:
            grown = applied(now, row.operations, row.version, next_id=0)
        except InvalidInput as error:
            raise Conflict(
                f"The tree has changed since {row.version} was proposed: {error} Propose the change again."
            ) from error
        vacated = {node: to for node, to in grown.rehoming.emptied.items() if node in now.nodes}
        return _Change(grown.taxonomy, self._moves(grown.rehoming), vacated)

    def _moves(self, rehoming: DocumentMoves) -> dict[Pair, list[uuid.UUID]]:
        words = {
            word
            for step in rehoming.steps
            if isinstance(step, NodeSplit)
            for part in step.parts
            for word in part.keywords
        }
        moves: dict[Pair, list[uuid.UUID]] = defaultdict(list)
        for stored in self._state.seen(Scope(rehoming.sources)):
            document, keywords = stored.written.document_id, self._keywords(stored, words)
            to = rehoming.route(stored.node_id, lambda step: step.part_of(document, keywords))  # noqa: B023
            if to != stored.node_id:
                moves[stored.node_id, to].append(document)
        return dict(moves)

    def _keywords(self, stored: StoredDocument, words: Iterable[str]) -> frozenset[str]:
        """Which of the keywords a passage of the document holds with all their terms."""
        passages = [frozenset(indexed.term_ids.tolist()) for indexed in stored.written.chunks]
        return frozenset(
            word
            for word in words
            if (ids := frozenset(self._term_ids(word))) and any(ids <= passage for passage in passages)
        )

    def _back(self, version: str) -> _Change:
        """Undo the moves of later activations, newest first; what is on later nodes goes up to the nearest."""
        now, then = self._state.taxonomy, self._state.trees[version]
        last = max(at for at, activation in enumerate(self._state.activations) if activation.version == version)
        moves: dict[Pair, list[uuid.UUID]] = defaultdict(list)
        for stored in self._state.seen(EVERYTHING):
            document, place = stored.written.document_id, stored.node_id
            for activation in reversed(self._state.activations[last + 1 :]):
                before, after = activation.moves.get(document, (place, None))
                place = before if after == place else place
            to = place if place == UNCLASSIFIED else nearest(place, now, then)
            if to != stored.node_id:
                moves[stored.node_id, to].append(document)
        vacated = {node: nearest(node, now, then) for node in now.nodes if node not in then.nodes}
        return _Change(then, dict(moves), vacated)

    def _preview(self, change: _Change, now: datetime) -> impact.Preview:
        before = self._state.taxonomy
        counts = Counter((stored.node_id, stored.node_id) for stored in self._state.documents.values())
        for pair, documents in change.moves.items():
            counts[pair] = len(documents)
            counts[pair[0], pair[0]] -= len(documents)
        counts = +counts
        moved = [
            impact.Moved(before.path(pair[0]), change.after.path(pair[1]), len(documents), self._titles(documents))
            for pair, documents in change.moves.items()
        ]
        seen = impact.scope_changes(self._grantees(now), before, change.after, counts)
        return impact.Preview(
            change.after.version,
            before.version,
            tuple(sorted(moved, key=lambda row: (-row.documents, row.before, row.after))),
            tuple(self._reach(change, shift, counts) for shift in seen),
        )

    def _reach(self, change: _Change, shift: impact.ScopeChange, counts: Mapping[Pair, int]) -> impact.AccessChange:
        return impact.access_change(
            shift, counts, self._examples(change, shift.gained), self._examples(change, shift.lost)
        )

    def _examples(self, change: _Change, pairs: Iterable[Pair]) -> list[impact.Example]:
        examples: list[impact.Example] = []
        moving = {document for documents in change.moves.values() for document in documents}
        for pair in sorted(pair for pair in pairs if pair[0] != pair[1]):
            titles = self._titles(change.moves[pair])
            examples += [impact.Example(title, change.after.path(pair[1])) for title in titles]
        staying = Scope(frozenset(before for before, after in pairs if before == after))
        rest = [stored for stored in self._state.seen(staying) if stored.written.document_id not in moving]
        rest.sort(key=lambda stored: stored.written.document.title)
        examples += [
            impact.Example(stored.written.document.title, change.after.path(stored.node_id)) for stored in rest
        ]
        return examples[: impact.EXAMPLES]

    def _titles(self, documents: Sequence[uuid.UUID]) -> tuple[str, ...]:
        stored = self._state.documents
        return tuple(sorted(stored[document].written.document.title for document in documents[: impact.EXAMPLES]))

    def _grantees(self, now: datetime) -> list[impact.Grantee]:
        keys = [
            impact.Grantee("key", key.name, key.grant)
            for key in self._state.keys.values()
            if key.grant is not None and key.state(now) == "valid"
        ]
        agents = [impact.Grantee("agent", agent.name, agent.grant) for agent in self._state.agents.values()]
        return [*sorted(keys, key=lambda grantee: grantee.name), *sorted(agents, key=lambda grantee: grantee.name)]
