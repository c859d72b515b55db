"""Classification and the review queue in memory: `PlacementStore` and `ReviewStore`."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from dtrag.core.access.scope import Grant, Scope
from dtrag.core.ranking.segments import FREQUENCY_UNIT, quantised
from dtrag.core.taxonomy.centroids import FIRST_PASSAGES, Sample, TermCounts, mean_vector
from dtrag.core.taxonomy.classification import TRUSTED
from dtrag.core.taxonomy.review import MAX_WAITING_ANSWERS, Decision, Item, Placement
from dtrag.testing.memory.state import MemoryState, StoredDocument


class MemoryReview:
    """Placements and review items of one state."""

    def __init__(self, state: MemoryState):
        self._state = state

    async def samples(self, nodes: Sequence[int], per_node: int, space: str) -> list[Sample]:
        """Documents with a trusted category, at most so many per node; those decided by reviewers first."""
        by_node: dict[int, list[Sample]] = defaultdict(list)
        for stored in self._state.seen(Scope(frozenset(nodes))):
            if stored.written.chunks and self._is_trusted(stored.written.document_id):
                by_node[stored.node_id].append(self._sample(stored, space))
        chosen = [
            sample
            for samples in by_node.values()
            for sample in sorted(samples, key=lambda sample: (not sample.decided, sample.document_id))[:per_node]
        ]
        return sorted(chosen, key=lambda sample: sample.document_id)

    def _is_trusted(self, document_id: uuid.UUID) -> bool:
        decided = document_id in self._state.decided_nodes
        return decided or self._state.placements.get(document_id, 1.0) >= TRUSTED

    def _sample(self, stored: StoredDocument, space: str) -> Sample:
        first = [indexed for indexed in stored.written.chunks if indexed.chunk.ordinal < FIRST_PASSAGES]
        terms = TermCounts.of(
            [indexed.term_ids for indexed in first],
            [quantised(indexed.frequencies) * FREQUENCY_UNIT for indexed in first],
        )
        document_id = stored.written.document_id
        vectors = self._state.vectors.get(document_id, {})
        made = [vectors[ordinal] for ordinal in sorted(vectors) if ordinal < FIRST_PASSAGES]
        vector = mean_vector([vector for model, vector in made if model == space])
        return Sample(document_id, stored.node_id, terms, vector, document_id in self._state.decided_nodes)

    async def decided(self, document_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, int]:
        """The nodes that reviewers chose for those of the documents that they decided."""
        return {key: self._state.decided_nodes[key] for key in document_ids if key in self._state.decided_nodes}

    async def record(self, placements: Sequence[Placement], settled: Sequence[uuid.UUID]) -> None:
        """Remember accepted placements, queue the others for review; forget both for `settled`."""
        documents = {*(placement.document_id for placement in placements), *settled}
        items = self._state.review_items
        for document_id in documents:
            self._state.placements.pop(document_id, None)
        for item in list(items.values()):
            if item.document_id in documents and item.status == "waiting":
                del items[item.item_id]
        for placement in placements:
            if placement.classification.accepted:
                self._state.placements[placement.document_id] = placement.classification.confidence
            else:
                item = Item.of(placement)
                items[item.item_id] = item

    async def answer_grants(self) -> list[Grant]:
        """The branches of the agents whose answers are in the queue."""
        grants = [_grant(item) for item in self._state.review_items.values() if item.kind == "answer"]
        return list(dict.fromkeys(grant for grant in grants if grant is not None))

    async def waiting(
        self, scope: Scope, limit: int, offset: int, grants: Sequence[Grant] = ()
    ) -> tuple[list[Item], int]:
        """Waiting items that the caller may see, the least sure first for the whole tree, and their total number."""
        items = [
            self._titled(item)
            for item in self._state.review_items.values()
            if item.status == "waiting" and self._may_see(item, scope, grants)
        ]
        everything = scope.nodes is None
        items.sort(key=lambda item: ((item.confidence or 0.0) if everything else 0.0, item.created_at, item.item_id))
        return items[offset : offset + limit], len(items)

    async def get(self, item_id: uuid.UUID, scope: Scope, grants: Sequence[Grant] = ()) -> Item | None:
        """An item that the caller may see, or None."""
        item = self._state.review_items.get(item_id)
        return self._titled(item) if item is not None and self._may_see(item, scope, grants) else None

    async def answered(self, scope: Scope, limit: int, grants: Sequence[Grant] = ()) -> list[Item]:
        """The newest decided answers with chosen passages that the caller may see, newest first."""
        items = [
            item
            for item in self._state.review_items.values()
            if item.kind == "answer" and "chosen" in item.proposal and self._may_see(item, scope, grants)
        ]
        items.sort(key=lambda item: item.item_id)
        items.sort(key=lambda item: item.decided_at or item.created_at, reverse=True)
        return items[:limit]

    async def add(self, item: Item) -> bool:
        """Queue an item, an answer once for each question; False when less confident ones fill the queue."""
        items = self._state.review_items
        answers = [other for other in items.values() if other.kind == "answer" and other.status == "waiting"]
        if item.kind == "answer" and any(_question(other) == _question(item) for other in answers):
            return True
        if item.kind == "answer" and len(answers) >= MAX_WAITING_ANSWERS:
            surest = min(answers, key=lambda other: (-(other.confidence or 0.0), other.created_at, other.item_id))
            if (item.confidence or 0.0) >= (surest.confidence or 0.0):
                return False
            del items[surest.item_id]
        items[item.item_id] = replace(item, status="waiting", title="")
        return True

    async def decide(self, item: Item, decision: Decision) -> bool:
        """Settle a waiting item and move its document to the decided node; False when it is not waiting any more."""
        stored = self._state.review_items.get(item.item_id)
        if stored is None or stored.status != "waiting":
            return False
        self._state.review_items[item.item_id] = replace(
            stored,
            proposal={**stored.proposal, **decision.addition()},
            status=decision.status,
            note=decision.note,
            decided_at=decision.at,
            decided_by=decision.by,
        )
        if decision.node_id is not None and item.document_id is not None:
            self._state.decided_nodes[item.document_id] = decision.node_id
            self._state.placements.pop(item.document_id, None)
            if item.document_id in self._state.documents:
                self._state.move(item.document_id, self._state.living_node(decision.node_id))
                self._state.refresh_editions()
                self._state.changed()
        return True

    def _may_see(self, item: Item, scope: Scope, grants: Sequence[Grant]) -> bool:
        """An answer needs all the branches of its agent, and every document that it cites."""
        if item.kind == "classification":
            return self._is_visible(item.document_id, scope)
        if scope.nodes is None:
            return True
        cited = [uuid.UUID(document_id) for document_id in item.proposal.get("document_ids", ())]
        return _grant(item) in grants and all(self._is_visible(document_id, scope) for document_id in cited)

    def _is_visible(self, document_id: uuid.UUID | None, scope: Scope) -> bool:
        stored = self._state.documents.get(document_id) if document_id is not None else None
        return stored is not None and stored.in_scope(scope)

    def _titled(self, item: Item) -> Item:
        stored = self._state.documents.get(item.document_id) if item.document_id is not None else None
        return replace(item, title=stored.written.document.title if stored is not None else "")


def _question(item: Item) -> tuple[object, ...]:
    """Equal for answers to the same question in the same scope."""
    proposal = item.proposal
    return item.agent_id, _grant(item), proposal["question_hash"], proposal.get("as_of", "")


def _grant(item: Item) -> Grant | None:
    rows = item.proposal.get("grant")
    return Grant.from_json(rows) if isinstance(rows, list) else None
