"""Ports of the taxonomy: versions of the tree, classification and its review queue."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal, Protocol

from dtrag.core.access.scope import Grant, Scope
from dtrag.core.access.taxonomy_impact import Preview, TreeVersion
from dtrag.core.taxonomy.centroids import Sample
from dtrag.core.taxonomy.operations import Operation
from dtrag.core.taxonomy.review import Decision, Placement, ReviewItem
from dtrag.core.taxonomy.tree import Taxonomy


class TaxonomyStore(Protocol):
    """Versions of the category tree."""

    async def active(self) -> Taxonomy:
        """The active version."""

    async def tree(self, version: str) -> Taxonomy | None:
        """The tree of a version, or None."""

    async def versions(self) -> list[TreeVersion]:
        """All versions, newest first."""

    async def counts(self) -> dict[int, int]:
        """Node id -> number of documents; nodes without documents are absent."""

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
        """Store the result of the operations on `parent` (None: the active version) as an inactive version.

        `version` is its number; None: the next one. Raises `InvalidInput` for impossible operations, `NotFound` for
        an unknown parent, `Conflict` for a number in use.
        """

    async def preview(self, version: str, kind: Literal["activate", "rollback"], now: datetime) -> Preview:
        """What activating the version would change. Raises `NotFound` and `Conflict`."""

    async def bring_in(
        self,
        version: str,
        kind: Literal["activate", "rollback"],
        allowed: Callable[[Preview], None],
        *,
        by: str,
        now: datetime,
    ) -> Preview:
        """Activate the version in one transaction, which is rolled back when `allowed` raises.

        Raises `NotFound`, `Conflict`, and what `allowed` raises.
        """


class PlacementStore(Protocol):
    """Training data of the classifier, and its results."""

    async def samples(self, nodes: Sequence[int], per_node: int, space: str) -> list[Sample]:
        """Documents with a trusted category: at most `per_node` of each node, those that a person decided first.

        Their vectors are those of the model with the id `space`.
        """

    async def decided(self, document_ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, int]:
        """Document id -> node, for the documents whose category a person decided."""

    async def record(self, placements: Sequence[Placement], settled: Sequence[uuid.UUID]) -> None:
        """Store automatic placements, queue those that need a review, and drop stored ones of the ids `settled`."""


class ReviewStore(Protocol):
    """The review queue. A caller with a scope sees only items about documents in it."""

    async def answer_grants(self) -> list[Grant]:
        """Scopes of the agents that have answers in the queue."""

    async def waiting(
        self, scope: Scope, limit: int, offset: int, grants: Sequence[Grant] = ()
    ) -> tuple[list[ReviewItem], int]:
        """A page of the open items, least confident first, and the total number of open items in scope.

        `grants` are the scopes of the agents whose answers the caller may see; with the whole tree, all agents.
        """

    async def get(self, item_id: uuid.UUID, scope: Scope, grants: Sequence[Grant] = ()) -> ReviewItem | None:
        """An item in scope, or None; `grants` as in `waiting`."""

    async def add(self, item: ReviewItem) -> bool:
        """Add an item to the queue; whether it is there now.

        Of answers, the same question (question_hash, as_of, agent, grant) is open once: another one changes nothing.
        When MAX_WAITING_ANSWERS are open, a less confident one replaces the most confident one; False for one that is
        not less confident.
        """

    async def decide(self, item: ReviewItem, decision: Decision) -> bool:
        """Close an open item and move its document when the decision names a node; False when it is not open.

        `decision.addition()` is added to the proposal.
        """

    async def answered(self, scope: Scope, limit: int, grants: Sequence[Grant] = ()) -> list[ReviewItem]:
        """The newest decided answers with chosen passages in scope, newest first; `grants` as in `waiting`."""
