"""Effects of a new version of the category tree: moved documents, and changed access of keys and agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypedDict

from dtrag.core.access.scope import Grant
from dtrag.core.taxonomy.operations import Operation, OperationRow
from dtrag.core.taxonomy.tree import Taxonomy

EXAMPLES = 5
Path = tuple[str, ...]
Pair = tuple[int, int]
"""Node of a document before and after."""


class TreeVersionView(TypedDict):
    """A version for display."""

    version: str
    parent: str | None
    rationale: str
    active: bool
    operations: list[OperationRow]
    created_by: str
    created_at: str
    activated_at: str | None


MoveView = TypedDict("MoveView", {"from": list[str], "to": list[str], "documents": int, "titles": list[str]})


class ExampleView(TypedDict):
    """A document whose visibility changes."""

    title: str
    path: list[str]


class AccessChangeView(TypedDict):
    """The changed access of one key or agent."""

    kind: Literal["key", "agent"]
    name: str
    gained: int
    lost: int
    gains: list[ExampleView]
    losses: list[ExampleView]


class PreviewView(TypedDict):
    """A preview for display."""

    version: str
    active: str
    documents: int
    moved: list[MoveView]
    access: list[AccessChangeView]


@dataclass(frozen=True, slots=True)
class TreeVersion:
    """A version in lists; `activated_at` None: it was never active."""

    version: str
    parent: str | None
    rationale: str
    active: bool
    operations: tuple[Operation, ...]
    created_by: str
    created_at: datetime
    activated_at: datetime | None

    def as_dict(self) -> TreeVersionView:
        """For display, with plain values."""
        return {
            "version": self.version,
            "parent": self.parent,
            "rationale": self.rationale,
            "active": self.active,
            "operations": [operation.as_json() for operation in self.operations],
            "created_by": self.created_by,
            "created_at": self.created_at.isoformat(),
            "activated_at": self.activated_at.isoformat() if self.activated_at else None,
        }


@dataclass(frozen=True, slots=True)
class Grantee:
    """A key or an agent; `grant` None is the whole tree."""

    kind: Literal["key", "agent"]
    name: str
    grant: Grant | None


@dataclass(frozen=True, slots=True)
class Example:
    """Title of a document, and its path in the new version."""

    title: str
    path: Path


@dataclass(frozen=True, slots=True)
class Moved:
    """Documents that move from one category to another: their number and some titles. () is no category."""

    before: Path
    after: Path
    documents: int
    titles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AccessChange:
    """Documents that one grantee gains and loses: their numbers and some examples."""

    kind: Literal["key", "agent"]
    name: str
    gained: int
    lost: int
    gains: tuple[Example, ...]
    losses: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class Preview:
    """Effects of activating `version` in place of `active`; `access` lists only grantees whose access changes."""

    version: str
    active: str
    moved: tuple[Moved, ...]
    access: tuple[AccessChange, ...]

    @property
    def documents(self) -> int:
        """Number of documents that move."""
        return sum(row.documents for row in self.moved)

    @property
    def widened(self) -> tuple[AccessChange, ...]:
        """Grantees that gain access to documents."""
        return tuple(row for row in self.access if row.gained)

    def as_dict(self) -> PreviewView:
        """For display, with plain values."""
        return {
            "version": self.version,
            "active": self.active,
            "documents": self.documents,
            "moved": [
                {
                    "from": list(row.before),
                    "to": list(row.after),
                    "documents": row.documents,
                    "titles": list(row.titles),
                }
                for row in self.moved
            ],
            "access": [
                {
                    "kind": row.kind,
                    "name": row.name,
                    "gained": row.gained,
                    "lost": row.lost,
                    "gains": [{"title": example.title, "path": list(example.path)} for example in row.gains],
                    "losses": [{"title": example.title, "path": list(example.path)} for example in row.losses],
                }
                for row in self.access
            ],
        }


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
