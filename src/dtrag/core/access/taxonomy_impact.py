"""What a change of the category tree does to documents and to those who see them, as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from dtrag.core.access.scope import Grant
from dtrag.core.taxonomy.operations import Operation
from dtrag.core.taxonomy.tree import Taxonomy

EXAMPLES = 5
Path = tuple[str, ...]
Pair = tuple[int, int]
"""The node that a document hangs on, and the one it goes to."""


@dataclass(frozen=True, slots=True)
class TreeVersion:
    """One version as lists show it; `activated_at` is None for one that was never in force."""

    version: str
    parent: str | None
    rationale: str
    active: bool
    operations: tuple[Operation, ...]
    created_by: str
    created_at: datetime
    activated_at: datetime | None

    def as_dict(self) -> dict[str, Any]:
        """As it is sent and printed."""
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
    """A document by its title, and where it will hang."""

    title: str
    path: Path


@dataclass(frozen=True, slots=True)
class Moved:
    """How many documents go from one category to another, and titles of some; () is no category."""

    before: Path
    after: Path
    documents: int
    titles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AccessChange:
    """What one grantee comes to see, and sees no more: numbers of documents and some of them."""

    kind: Literal["key", "agent"]
    name: str
    gained: int
    lost: int
    gains: tuple[Example, ...]
    losses: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class Preview:
    """What bringing `version` into force in the place of `active` would do; only those whose view changes are named."""

    version: str
    active: str
    moved: tuple[Moved, ...]
    access: tuple[AccessChange, ...]

    @property
    def documents(self) -> int:
        """How many documents go elsewhere."""
        return sum(row.documents for row in self.moved)

    @property
    def widened(self) -> tuple[AccessChange, ...]:
        """Those who come to see more."""
        return tuple(row for row in self.access if row.gained)

    def as_dict(self) -> dict[str, Any]:
        """As it is sent and printed."""
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
    """For one grantee the pairs of nodes whose documents come into sight and go out of it; (n, n): stay on n."""

    grantee: Grantee
    gained: frozenset[Pair]
    lost: frozenset[Pair]


def scope_changes(
    grantees: Iterable[Grantee], before: Taxonomy, after: Taxonomy, pairs: Iterable[Pair]
) -> list[ScopeChange]:
    """Whose view changes. `pairs` are those that documents there are for. Whoever sees everything goes on to do so."""
    known = list(pairs)
    found = []
    for grantee in grantees:
        if grantee.grant is None:
            continue
        old, new = grantee.grant.nodes(before), grantee.grant.nodes(after)
        gained = frozenset(pair for pair in known if pair[0] not in old and pair[1] in new)
        lost = frozenset(pair for pair in known if pair[0] in old and pair[1] not in new)
        if gained or lost:
            found.append(ScopeChange(grantee, gained, lost))
    return found


def access_change(
    shift: ScopeChange, counts: Mapping[Pair, int], gains: Iterable[Example], losses: Iterable[Example]
) -> AccessChange:
    """The numbers of a shift."""
    return AccessChange(
        shift.grantee.kind,
        shift.grantee.name,
        sum(counts[pair] for pair in shift.gained),
        sum(counts[pair] for pair in shift.lost),
        tuple(gains),
        tuple(losses),
    )
