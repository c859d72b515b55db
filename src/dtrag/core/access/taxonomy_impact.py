"""Effects of a new version of the category tree: moved documents, and changed access of keys, agents and the public."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from dtrag.core.access.scope import Grant
from dtrag.core.response import TEXT, Moment, Written, response
from dtrag.core.taxonomy.grades import Grades
from dtrag.core.taxonomy.operations import Operation
from dtrag.core.taxonomy.tree import UNCLASSIFIED, Taxonomy
from dtrag.core.taxonomy.versions import GradeChange, Path, PathChange

EXAMPLES = 5
Pair = tuple[int, int]
"""Node of a document before and after."""
Operations = Annotated[
    tuple[Operation, ...],
    Written(
        lambda operations: [operation.as_json() for operation in operations],
        {"type": "list", "items_schema": {"type": "dict", "keys_schema": TEXT}},
    ),
]


@dataclass(frozen=True, slots=True)
class TreeVersion:
    """One version of the category tree."""

    __pydantic_config__ = response("VersionShape")

    version: str
    """Its semantic version."""
    parent: str | None
    """The version to which the operations apply; null for the first."""
    rationale: str
    """Why it was proposed."""
    active: bool
    """Whether it is the active version."""
    operations: Operations
    """The operations on its parent, in order."""
    created_by: str
    """Who proposed it."""
    created_at: Moment
    """When, in ISO 8601."""
    activated_at: Moment | None
    """When it was last activated; null if never."""


@dataclass(frozen=True, slots=True)
class Grantee:
    """A key, an agent or the public; `grant` None is the whole tree."""

    kind: Literal["key", "agent", "public"]
    name: str
    grant: Grant | None


@dataclass(frozen=True, slots=True)
class Example:
    """A document and its future category."""

    __pydantic_config__ = response("ExampleShape")

    title: str
    """Its title."""
    path: Path
    """Its future category; empty for none."""


@dataclass(frozen=True, slots=True)
class Moved(PathChange):
    """Documents that move from one category to another; an empty path means no category."""

    __pydantic_config__ = response("MovedShape")

    documents: int
    """Number of documents."""
    titles: tuple[str, ...]
    """Examples."""


@dataclass(frozen=True, slots=True)
class AccessChange:
    """The documents that a key, an agent or the public gains and loses."""

    __pydantic_config__ = response("ReachShape")

    kind: Literal["key", "agent", "public"]
    """key, agent, or public: callers without a key."""
    name: str
    """Name of the key or agent; public."""
    gained: int
    """Documents that become visible to it."""
    lost: int
    """Documents that become invisible to it."""
    gains: tuple[Example, ...]
    """Examples of gained documents."""
    losses: tuple[Example, ...]
    """Examples of lost documents."""

    def __str__(self) -> str:
        return self.name if self.kind == "public" else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Preview:
    """The effects of activating a version."""

    __pydantic_config__ = response("PreviewShape")

    version: str
    """The version to activate."""
    active: str
    """The active version."""
    documents: int = field(init=False, default=0)
    """Documents that move."""
    moved: tuple[Moved, ...]
    """Moved documents by category."""
    access: tuple[AccessChange, ...]
    """Keys, agents and the public, as far as their access changes."""
    lowered: tuple[GradeChange, ...] = ()
    """Categories that get a lower grade, or whose documents move to one; an empty path: documents without one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "documents", sum(row.documents for row in self.moved))

    @property
    def widened(self) -> tuple[AccessChange, ...]:
        """Grantees that gain access to documents."""
        return tuple(row for row in self.access if row.gained)


def lowered_grades(
    grades: Grades, before: Taxonomy, after: Taxonomy, vacated: Mapping[int, int], pairs: Iterable[Pair]
) -> tuple[GradeChange, ...]:
    """The categories of `before` whose grade falls, or whose documents (`pairs`) get a lower one.

    `vacated` maps nodes that are no more to where their documents go.
    """
    old, new = grades.of(before), grades.of(after)
    if not old.highest:
        return ()
    stays = {(node, node if node in after.nodes else vacated.get(node, UNCLASSIFIED)) for node in before.nodes}
    falls = {
        GradeChange(before.path(node), grades.names[old.node(node)], grades.names[new.node(to)])
        for node, to in {*stays, *pairs}
        if new.node(to) < old.node(node)
    }
    return tuple(sorted(falls))


@dataclass(frozen=True, slots=True)
class ScopeChange:
    """Pairs of nodes whose documents one grantee gains and loses; (n, n): documents that stay on node n."""

    grantee: Grantee
    gained: frozenset[Pair]
    lost: frozenset[Pair]


def scope_changes(
    grantees: Iterable[Grantee], before: Taxonomy, after: Taxonomy, pairs: Iterable[Pair]
) -> list[ScopeChange]:
    """Grantees whose scope changes. `pairs` are those with documents. Grantees with the whole tree never change."""
    known = list(pairs)
    changes = []
    for grantee in grantees:
        if grantee.grant is None:
            continue
        old, new = grantee.grant.nodes(before), grantee.grant.nodes(after)
        gained = frozenset(pair for pair in known if pair[0] not in old and pair[1] in new)
        lost = frozenset(pair for pair in known if pair[0] in old and pair[1] not in new)
        if gained or lost:
            changes.append(ScopeChange(grantee, gained, lost))
    return changes


def access_change(
    change: ScopeChange, counts: Mapping[Pair, int], gains: Iterable[Example], losses: Iterable[Example]
) -> AccessChange:
    """The change as numbers of documents, with examples."""
    return AccessChange(
        change.grantee.kind,
        change.grantee.name,
        sum(counts[pair] for pair in change.gained),
        sum(counts[pair] for pair in change.lost),
        tuple(gains),
        tuple(losses),
    )
