"""What a caller may see, and what a request narrows it to. Parsed once at the door, trusted everywhere deeper."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dtrag.core.taxonomy.tree import MAX_DEPTH, CategoryPath, Taxonomy
from dtrag.core.text.analysis import clean
from dtrag.errors import InvalidInput

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """The taxonomy nodes whose documents a caller may see: a required argument of every read.

    `nodes` is None for the whole tree including the unclassified; an empty set sees nothing. `server_paths`: whether
    addresses of documents may show folders of this machine; by default only where nothing is hidden.
    """

    nodes: frozenset[int] | None
    server_paths: bool | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.server_paths is None:
            object.__setattr__(self, "server_paths", self.nodes is None)

    @classmethod
    def everything(cls) -> Scope:
        """The scope of an administrator."""
        return cls(None)

    def resolved(self, taxonomy: Taxonomy) -> Scope:
        """Itself: it holds nodes already."""
        return self

    def narrowed(self, nodes: Iterable[int]) -> Scope:
        """The intersection with `nodes`; never wider than self."""
        wanted = frozenset(nodes)
        return Scope(wanted if self.nodes is None else self.nodes & wanted, self.server_paths)


EVERYTHING = Scope.everything()
"""The scope of an administrator: the whole tree."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """A branch that somebody may see: its path when it was granted, and the node that the path led to then.

    The node counts from then on, whatever the branch is called and wherever it is moved; once it is gone from the tree
    the anchor holds nothing. A path that led nowhere holds nothing until it leads somewhere.
    """

    path: CategoryPath
    node_id: int | None

    def node(self, taxonomy: Taxonomy) -> int | None:
        """The node in this version of the tree, or None."""
        if self.node_id is None:
            return taxonomy.find(self.path)
        return self.node_id if self.node_id in taxonomy.nodes else None


MOST_KNOWN = 10_000
"""Grants whose nodes a version of the tree remembers."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The branches that a key or an agent was given; none of them: nothing."""

    anchors: tuple[Anchor, ...]

    @classmethod
    def of(cls, paths: Iterable[CategoryPath], taxonomy: Taxonomy) -> Grant:
        """The branches at these paths, as they stand in this version of the tree."""
        return cls(tuple(Anchor(path, taxonomy.find(path)) for path in paths))

    @classmethod
    def from_json(cls, rows: Iterable[Mapping[str, Any]]) -> Grant:
        """From what `as_json` gave."""
        return cls(tuple(Anchor(CategoryPath.parse(row["path"]), row["node_id"]) for row in rows))

    def as_json(self) -> list[dict[str, Any]]:
        """`[{"path": [...], "node_id": n or None}, ...]`."""
        return [{"path": list(anchor.path.names), "node_id": anchor.node_id} for anchor in self.anchors]

    def nodes(self, taxonomy: Taxonomy) -> frozenset[int]:
        """All nodes of the branches in this version of the tree."""
        known = taxonomy.known.get(self)
        if known is not None:
            return known
        found: frozenset[int] = frozenset()
        for anchor in self.anchors:
            node = anchor.node(taxonomy)
            if node is not None:
                found |= taxonomy.subtree(node)
        if len(taxonomy.known) < MOST_KNOWN:
            taxonomy.known[self] = found
        return found

    def unresolved(self, taxonomy: Taxonomy) -> list[CategoryPath]:
        """The paths that lead nowhere in this version of the tree."""
        return [anchor.path for anchor in self.anchors if anchor.node(taxonomy) is None]


@dataclass(frozen=True, slots=True)
class Access:
    """What a caller may see, before it is known which version of the tree counts: what all of the grants hold.

    No grant at all is the whole tree. A read resolves it against the very version that it reads by, so that what a
    caller sees is of the old tree or of the new one and never of both. `server_paths` as in `Scope`.
    """

    grants: tuple[Grant, ...] = ()
    server_paths: bool | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.server_paths is None:
            object.__setattr__(self, "server_paths", not self.grants)

    def within(self, grant: Grant) -> Access:
        """Narrowed to what the grant holds, too."""
        return Access((*self.grants, grant), self.server_paths)

    def resolved(self, taxonomy: Taxonomy) -> Scope:
        """The nodes in this version of the tree."""
        if len(self.grants) == 1:
            return Scope(self.grants[0].nodes(taxonomy), self.server_paths)
        scope = Scope(None, self.server_paths)
        for grant in self.grants:
            scope = scope.narrowed(grant.nodes(taxonomy))
        return scope


@dataclass(frozen=True, slots=True)
class Intersection:
    """What two viewers may both see."""

    one: Viewer
    other: Viewer

    def resolved(self, taxonomy: Taxonomy) -> Scope:
        """The nodes in this version of the tree."""
        first, second = self.one.resolved(taxonomy), self.other.resolved(taxonomy)
        both = first if second.nodes is None else first.narrowed(second.nodes)
        return Scope(both.nodes, first.server_paths and second.server_paths)


Viewer = Scope | Access | Intersection
"""Whoever reads, as far as reading depends on it."""


CONTENT_TYPES = frozenset(
    {
        "text/plain",
        "text/markdown",
        "text/html",
        "text/csv",
        "application/pdf",
        "application/json",
        "application/hwp+zip",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    }
)
_PATH_KEYS = ("taxonomy_paths", "allowed_category_paths", "canonical_in")
MAX_PATHS = 100
MAX_FACTS = 16
MAX_FACT = 200
_KEY = re.compile(r"[^\W\d]\w{0,49}")

Fact = str | int | float | bool


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """A request's filters, checked. None means: not asked for.

    `metadata` holds facts of the document that must be just so, by key.
    """

    paths: tuple[CategoryPath, ...] | None = None
    content_types: tuple[str, ...] | None = None
    date_from: datetime | None = None
    date_to: datetime | None = None
    metadata: tuple[tuple[str, Fact], ...] | None = None
    _truths: tuple[bool, ...] = field(init=False, repr=False, default=())
    """Which facts are truth values: True is not the number 1, though Python holds them equal."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_truths", tuple(isinstance(value, bool) for _, value in self.metadata or ()))

    @classmethod
    def parse(cls, raw: Mapping[str, Any] | None, keys: Collection[str] = ()) -> SearchFilters:
        """From the plain dictionary of a request; `keys` are the facts of documents that may be asked for.

        Raises `InvalidInput` for unknown keys and bad values.
        """
        if raw is not None and not isinstance(raw, Mapping):
            raise InvalidInput("The filters are an object, such as {'content_types': ['application/pdf']}.")
        raw = raw or {}
        known = {*_PATH_KEYS, "content_types", "date_from", "date_to", "metadata"}
        for key in raw:
            if key not in known:
                raise InvalidInput(f"There is no filter of this name. Known filters: {', '.join(sorted(known))}.")
        asked = [_paths(key, raw[key]) for key in _PATH_KEYS if key in raw]
        if len(asked) > 1:
            raise InvalidInput(f"Give one of {', '.join(_PATH_KEYS)}, not several.")
        types, facts = raw.get("content_types"), raw.get("metadata")
        first, last = _date("date_from", raw.get("date_from")), _date("date_to", raw.get("date_to"))
        if first is not None and last is not None and first > last:
            raise InvalidInput("date_from is later than date_to: nothing lies between them.")
        return cls(
            paths=asked[0] if asked else None,
            content_types=_content_types(types) if types is not None else None,
            date_from=first,
            date_to=last,
            metadata=_facts(facts, keys) if facts is not None else None,
        )

    def admits(self, content_type: str, processed_at: datetime, metadata: Mapping[str, Any]) -> bool:
        """Whether a document of this kind, time and these facts passes; where it hangs is the scope's matter."""
        if self.content_types is not None and content_type not in self.content_types:
            return False
        if self.date_from is not None and processed_at < self.date_from:
            return False
        if self.date_to is not None and processed_at > self.date_to:
            return False
        return all(key in metadata and _same(metadata[key], value) for key, value in self.metadata or ())

    def scope(self, taxonomy: Taxonomy, caller: Scope) -> Scope:
        """The caller's scope narrowed to the asked branches; a path that does not exist matches nothing."""
        if self.paths is None:
            return caller
        nodes: set[int] = set()
        for path in self.paths:
            found = taxonomy.find(path)
            if found is not None:
                nodes |= taxonomy.subtree(found)
        return caller.narrowed(nodes)


NO_FILTERS = SearchFilters()
"""What admits everything."""


def _paths(key: str, value: object) -> tuple[CategoryPath, ...]:
    if not isinstance(value, (list, tuple)):
        raise InvalidInput(f"{key} is a list of category paths, such as [['AI', 'ML']].")
    if len(value) > MAX_PATHS:
        raise InvalidInput(f"{key} takes at most {MAX_PATHS} paths.")
    return tuple(CategoryPath.parse(path) for path in value)


def _content_types(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise InvalidInput("content_types is a list, such as ['application/pdf'].")
    for item in value:
        if not isinstance(item, str) or item not in CONTENT_TYPES:
            raise InvalidInput(
                f"There is no content type of one of these names. Known: {', '.join(sorted(CONTENT_TYPES))}."
            )
    return tuple(value)


def _date(key: str, value: object) -> datetime | None:
    if value is None:
        return None
    try:
        if not isinstance(value, str) or len(value) > 40:
            raise ValueError
        parsed = datetime.fromisoformat(value)
        return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"{key} is not an ISO 8601 date, such as 2025-01-31 or 2025-01-31T09:00:00Z.") from error


def filter_keys(declared: str) -> frozenset[str]:
    """The keys of facts that may be filtered by, from a list with commas. Raises `InvalidInput`."""
    keys = frozenset(key.strip() for key in declared.split(",") if key.strip())
    for key in sorted(keys):
        if not _KEY.fullmatch(key):
            raise InvalidInput(
                f"The filter key {key[:40]!r} is not a name: a letter, then letters, digits and _, at most 50 in all."
            )
    return keys


def _facts(value: object, keys: Collection[str]) -> tuple[tuple[str, Fact], ...]:
    if not isinstance(value, Mapping) or not 1 <= len(value) <= MAX_FACTS:
        raise InvalidInput(f"metadata is an object of 1 to {MAX_FACTS} facts, such as {{'author': 'Kim'}}.")
    for key, fact in value.items():
        if not isinstance(key, str) or key not in keys:
            raise InvalidInput(
                "Documents cannot be filtered by one of these keys of metadata. Declared in DTRAG_FILTER_KEYS: "
                f"{', '.join(sorted(keys)) or 'nothing'}."
            )
        if not _is_fact(fact):
            raise InvalidInput(f"{key} must be a text of at most {MAX_FACT} characters, a number, true or false.")
    return tuple(sorted(value.items()))


def _is_fact(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_FACT and clean(value) == value
    if isinstance(value, int):  # truth values, too
        return abs(value) < 2**63
    return isinstance(value, float) and math.isfinite(value)


def _same(one: object, other: object) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def reaches_out(paths: Iterable[CategoryPath], access: Access, taxonomy: Taxonomy) -> bool:
    """Whether one of the paths lies neither in a branch of the caller nor above one, in this version of the tree.

    A path above is no attempt to see more: it is the intersection that is searched.
    """
    keys = [path.key for path in paths]
    for grant in access.grants:
        branches = [_key(anchor, taxonomy) for anchor in grant.anchors]
        if not all(any(_begins(key, branch) or _begins(branch, key) for branch in branches) for key in keys):
            return True
    return False


def lies_within(grant: Grant, access: Access, taxonomy: Taxonomy) -> bool:
    """Whether every branch of the grant lies in one of the caller's, in this version of the tree.

    A branch of the caller's that is gone from the tree holds nothing, also when another has taken over its name.
    """
    keys = [_key(anchor, taxonomy) for anchor in grant.anchors]
    for outer in access.grants:
        held = [anchor for anchor in outer.anchors if anchor.node_id is None or anchor.node_id in taxonomy.nodes]
        branches = [_key(anchor, taxonomy) for anchor in held]
        if not all(any(_begins(key, branch) for branch in branches) for key in keys):
            return False
    return True


def scope_rows(access: Access) -> list[Any] | None:
    """What may be seen, as the audit log keeps it: the branches of all grants; None for the whole tree."""
    return [row for grant in access.grants for row in grant.as_json()] if access.grants else None


def _key(anchor: Anchor, taxonomy: Taxonomy) -> Key:
    """Where the branch hangs now; where it was granted, when it leads nowhere."""
    names: list[str] = []
    node = taxonomy.nodes.get(anchor.node_id) if anchor.node_id is not None else None
    while node is not None and len(names) < MAX_DEPTH:
        names.append(node.key)
        node = taxonomy.nodes.get(node.parent_id)
    return tuple(reversed(names)) or anchor.path.key


def _begins(key: Key, branch: Key) -> bool:
    return key[: len(branch)] == branch
