"""Scopes, grants and search filters: what a caller may see, and what a request restricts it to."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any, TypedDict

from dtrag.core.taxonomy.tree import MAX_DEPTH, ROOT, UNCLASSIFIED, CategoryPath, Taxonomy
from dtrag.core.text.analysis import clean
from dtrag.errors import InvalidInput

PathKey = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """The taxonomy nodes whose documents a caller may see: a required argument of every read.

    `nodes` None is the whole tree, unclassified documents included; with an empty set nothing is visible.
    `server_paths`: whether addresses of documents may show folders of the server; by default only with the whole tree.
    `as_of` is the day whose texts are read; None: today's.
    """

    nodes: frozenset[int] | None
    server_paths: bool | None = field(default=None, compare=False)
    as_of: date | None = None

    def __post_init__(self) -> None:
        if self.server_paths is None:
            object.__setattr__(self, "server_paths", self.nodes is None)

    @classmethod
    def everything(cls) -> Scope:
        """The scope of an administrator."""
        return cls(None)

    def resolved(self, taxonomy: Taxonomy) -> Scope:
        """The scope itself, which is resolved already."""
        return self

    def narrowed(self, nodes: Iterable[int]) -> Scope:
        """The intersection with `nodes`; never wider than self."""
        others = frozenset(nodes)
        return replace(self, nodes=others if self.nodes is None else self.nodes & others)

    def at(self, as_of: date | None) -> Scope:
        """The same branches on another day; None changes nothing."""
        return self if as_of is None else replace(self, as_of=as_of)

    def branches(self, taxonomy: Taxonomy) -> frozenset[int] | None:
        """The topmost nodes: what is recorded with a text that is written in this scope, for `reads`.

        None for the whole tree, and for an empty scope, which would be part of every other one.
        """
        if not self.nodes:
            return None
        parents = {node: taxonomy.nodes[node].parent_id for node in self.nodes if node in taxonomy.nodes}
        return frozenset(node for node in self.nodes if parents.get(node) not in self.nodes)

    def reads(self, asked_in: frozenset[int] | None) -> bool:
        """Whether a text that was written in a scope with these `branches` may be shown in this one.

        Words of a question show what is to be found in the scope in which it was asked. Scopes hold whole branches, so
        that one with the topmost nodes holds all of it. The policies of migration 0019 are the same rule.
        """
        return self.nodes is None or (asked_in is not None and asked_in <= self.nodes)


PUBLISHED: frozenset[int] = frozenset()
"""Recorded with a text whose audience was chosen: it is shown to all who see its category and its documents."""
EVERYTHING = Scope.everything()
"""The scope of an administrator: the whole tree."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """A granted branch: its path at the time of the grant, and the node that had this path.

    The node counts, even when the branch is renamed or moved later; when the node is deleted, nothing is granted. A
    path without a node grants nothing until a node has that path.
    """

    path: CategoryPath
    node_id: int | None

    def node(self, taxonomy: Taxonomy) -> int | None:
        """The node in this version of the tree, or None."""
        if self.node_id is None:
            return taxonomy.find(self.path)
        return self.node_id if self.node_id == ROOT or self.node_id in taxonomy.nodes else None


ALL_CATEGORIES = Anchor(CategoryPath(("*",), ("*",)), ROOT)
"""Every category, also those to come; not documents without a category. No category can have this name."""
MOST_KNOWN = 10_000
"""Grants whose nodes are cached per version of the tree."""


class AnchorRow(TypedDict):
    """An anchor as JSON: in the database and the audit log."""

    path: list[str]
    node_id: int | None


@dataclass(frozen=True, slots=True)
class Grant:
    """The branches granted to a key or an agent; without any, nothing is granted."""

    anchors: tuple[Anchor, ...]

    @classmethod
    def of(cls, paths: Iterable[CategoryPath], taxonomy: Taxonomy) -> Grant:
        """The branches at these paths of this version of the tree."""
        return cls(tuple(Anchor(path, taxonomy.find(path)) for path in paths))

    @classmethod
    def from_json(cls, rows: Iterable[Mapping[str, Any]]) -> Grant:
        """The inverse of `as_json`."""
        return cls(tuple(Anchor(CategoryPath.parse(row["path"]), row["node_id"]) for row in rows))

    def as_json(self) -> list[AnchorRow]:
        """One row per branch."""
        return [{"path": list(anchor.path.names), "node_id": anchor.node_id} for anchor in self.anchors]

    def nodes(self, taxonomy: Taxonomy) -> frozenset[int]:
        """All nodes of the branches in this version of the tree."""
        cached = taxonomy.known.get(self)
        if cached is not None:
            return cached
        nodes: frozenset[int] = frozenset()
        for anchor in self.anchors:
            node = anchor.node(taxonomy)
            if node is not None:
                nodes |= taxonomy.subtree(node) - {ROOT}
        if len(taxonomy.known) < MOST_KNOWN:
            taxonomy.known[self] = nodes
        return nodes

    def unresolved(self, taxonomy: Taxonomy) -> list[CategoryPath]:
        """Paths of branches that do not exist in this version of the tree."""
        return [anchor.path for anchor in self.anchors if anchor.node(taxonomy) is None]


@dataclass(frozen=True, slots=True)
class Access:
    """What a caller may see, independent of the version of the tree: the intersection of the grants.

    Without grants it is the whole tree. Each read resolves it with the version of the tree that it reads, so that a
    result never mixes two versions. `server_paths` and `as_of` as in `Scope`.

    In categories that the rights of a source restrict, it is what one of the users `principals` may read there; None:
    everything, for administrators of the whole tree.
    """

    grants: tuple[Grant, ...] = ()
    server_paths: bool | None = field(default=None, compare=False)
    as_of: date | None = None
    principals: tuple[str, ...] | None = ()

    def __post_init__(self) -> None:
        if self.server_paths is None:
            object.__setattr__(self, "server_paths", not self.grants)

    def within(self, grant: Grant) -> Access:
        """Restricted to the grant, too."""
        return replace(self, grants=(*self.grants, grant))

    def at(self, as_of: date | None) -> Access:
        """The same branches on another day; None changes nothing."""
        return self if as_of is None else replace(self, as_of=as_of)

    def resolved(self, taxonomy: Taxonomy) -> Scope:
        """The nodes in this version of the tree."""
        nodes: frozenset[int] | None = None
        for grant in self.grants:
            granted = grant.nodes(taxonomy)
            nodes = granted if nodes is None else nodes & granted
        if self.principals is not None and (hidden := taxonomy.hidden_from(self.principals)):
            nodes = (frozenset((*taxonomy.nodes, UNCLASSIFIED)) if nodes is None else nodes) - hidden
        return Scope(nodes, self.server_paths, self.as_of)


@dataclass(frozen=True, slots=True)
class Intersection:
    """What both viewers may see, on the day of the first one that names a day."""

    first: Viewer
    second: Viewer

    def resolved(self, taxonomy: Taxonomy) -> Scope:
        """The nodes in this version of the tree."""
        first, second = self.first.resolved(taxonomy), self.second.resolved(taxonomy)
        both = first if second.nodes is None else first.narrowed(second.nodes)
        return Scope(both.nodes, first.server_paths and second.server_paths, first.as_of or second.as_of)

    @property
    def as_of(self) -> date | None:
        """The day whose texts are read; None: today's."""
        return self.first.as_of or self.second.as_of

    def at(self, as_of: date | None) -> Intersection:
        """The same branches on another day; None changes nothing."""
        return self if as_of is None else Intersection(self.first.at(as_of), self.second.at(as_of))


Viewer = Scope | Access | Intersection
"""What reads accept as the scope of their caller."""


CONTENT_TYPES = frozenset(
    {
        "text/plain",
        "text/markdown",
        "text/html",
        "text/csv",
        "application/pdf",
        "application/json",
        "application/hwp+zip",
        "application/vnd.hancom.hml",
        "application/vnd.hancom.hwp",
        "application/vnd.ms-excel",
        "application/vnd.oasis.opendocument.spreadsheet",
        "application/vnd.oasis.opendocument.text",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/xml",
        "image/jpeg",
        "image/png",
        "image/tiff",
        "message/rfc822",
    }
)
_PATH_KEYS = ("taxonomy_paths", "allowed_category_paths", "canonical_in")
MAX_PATHS = 100
MAX_METADATA = 16
MAX_METADATA_CHARACTERS = 200
_KEY = re.compile(r"[^\W\d]\w{0,49}")

FieldValue = str | int | float | bool


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """Validated filters of a request. None: no such filter.

    `metadata` holds pairs of a metadata field and the value that it must have.
    """

    paths: tuple[CategoryPath, ...] | None = None
    content_types: tuple[str, ...] | None = None
    date_from: datetime | None = None
    date_to: datetime | None = None
    metadata: tuple[tuple[str, FieldValue], ...] | None = None
    _booleans: tuple[bool, ...] = field(init=False, repr=False, default=())
    """Which metadata values are booleans: True must not equal 1, as it does in Python."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_booleans", tuple(isinstance(value, bool) for _, value in self.metadata or ()))

    @classmethod
    def parse(cls, raw: Mapping[str, Any] | None, keys: Collection[str] = ()) -> SearchFilters:
        """Validate the filters of a request; `keys` are the metadata fields that may be filtered by.

        Raises `InvalidInput` for unknown keys and invalid values.
        """
        if raw is not None and not isinstance(raw, Mapping):
            raise InvalidInput("The filters are an object, such as {'content_types': ['application/pdf']}.")
        raw = raw or {}
        known = {*_PATH_KEYS, "content_types", "date_from", "date_to", "metadata"}
        for key in raw:
            if key not in known:
                raise InvalidInput(f"Unknown filter. Known filters: {', '.join(sorted(known))}.")
        path_filters = [_paths(key, raw[key]) for key in _PATH_KEYS if key in raw]
        if len(path_filters) > 1:
            raise InvalidInput(f"Give one of {', '.join(_PATH_KEYS)}, not several.")
        types, metadata = raw.get("content_types"), raw.get("metadata")
        first, last = _date("date_from", raw.get("date_from")), _date("date_to", raw.get("date_to"))
        if first is not None and last is not None and first > last:
            raise InvalidInput("date_from is later than date_to.")
        return cls(
            paths=path_filters[0] if path_filters else None,
            content_types=_content_types(types) if types is not None else None,
            date_from=first,
            date_to=last,
            metadata=_metadata(metadata, keys) if metadata is not None else None,
        )

    def admits(self, content_type: str, processed_at: datetime, metadata: Mapping[str, Any]) -> bool:
        """Whether a document with these properties passes all filters except paths, which narrow the scope."""
        if self.content_types is not None and content_type not in self.content_types:
            return False
        if self.date_from is not None and processed_at < self.date_from:
            return False
        if self.date_to is not None and processed_at > self.date_to:
            return False
        return all(key in metadata and _same(metadata[key], value) for key, value in self.metadata or ())

    def scope(self, taxonomy: Taxonomy, caller: Scope) -> Scope:
        """The caller's scope restricted to the filtered branches; unknown paths match nothing."""
        if self.paths is None:
            return caller
        nodes: set[int] = set()
        for path in self.paths:
            node = taxonomy.find(path)
            if node is not None:
                nodes |= taxonomy.subtree(node)
        return caller.narrowed(nodes)


NO_FILTERS = SearchFilters()
"""Filters that everything passes."""


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
            raise InvalidInput(f"Unknown content type. Known: {', '.join(sorted(CONTENT_TYPES))}.")
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
    """The metadata fields that may be filtered by, from a comma-separated list. Raises `InvalidInput`."""
    keys = frozenset(key.strip() for key in declared.split(",") if key.strip())
    for key in sorted(keys):
        if not _KEY.fullmatch(key):
            raise InvalidInput(
                f"The filter key {key[:40]!r} is invalid: use a letter, then letters, digits and _, at most 50 in all."
            )
    return keys


def _metadata(value: object, keys: Collection[str]) -> tuple[tuple[str, FieldValue], ...]:
    if not isinstance(value, Mapping) or not 1 <= len(value) <= MAX_METADATA:
        raise InvalidInput(f"metadata is an object with 1 to {MAX_METADATA} fields, such as {{'author': 'Kim'}}.")
    for key, field_value in value.items():
        if not isinstance(key, str) or key not in keys:
            raise InvalidInput(
                "Documents cannot be filtered by this metadata field. Declared in the setting filter_keys: "
                f"{', '.join(sorted(keys)) or 'nothing'}."
            )
        if not _is_field_value(field_value):
            raise InvalidInput(
                f"{key} must be a string of at most {MAX_METADATA_CHARACTERS} characters, a number or a boolean."
            )
    return tuple(sorted(value.items()))


def _is_field_value(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_METADATA_CHARACTERS and clean(value) == value
    if isinstance(value, int):  # booleans, too
        return abs(value) < 2**63
    return isinstance(value, float) and math.isfinite(value)


def _same(first: object, second: object) -> bool:
    return first == second and isinstance(first, bool) == isinstance(second, bool)


def reaches_out(paths: Iterable[CategoryPath], access: Access, taxonomy: Taxonomy) -> bool:
    """Whether one of the paths is neither inside a branch of the caller nor an ancestor of one.

    Ancestors are allowed: the search runs on the intersection.
    """
    keys = [path.key for path in paths]
    for grant in access.grants:
        branches = [_key(anchor, taxonomy) for anchor in grant.anchors]
        if not all(any(_begins(key, branch) or _begins(branch, key) for branch in branches) for key in keys):
            return True
    return False


def lies_within(grant: Grant, access: Access, taxonomy: Taxonomy) -> bool:
    """Whether every branch of the grant is inside a branch of the caller, in this version of the tree.

    A deleted branch of the caller contains nothing, even when another node has its name now.
    """
    keys = [_key(anchor, taxonomy) for anchor in grant.anchors]
    for outer in access.grants:
        existing = [anchor for anchor in outer.anchors if anchor.node_id is None or anchor.node_id in taxonomy.nodes]
        branches = [_key(anchor, taxonomy) for anchor in existing]
        if not all(any(_begins(key, branch) for branch in branches) for key in keys):
            return False
    return True


def category_within(path: CategoryPath, taxonomy: Taxonomy, scope: Scope) -> int:
    """The node of a category in scope. Raises `InvalidInput`, the same for one outside as for an unknown one."""
    node_id = taxonomy.find(path)
    if node_id is None or (scope.nodes is not None and node_id not in scope.nodes):
        raise InvalidInput("There is no such category that you may see. Give one of the tree.")
    return node_id


def scope_rows(access: Access) -> list[AnchorRow] | None:
    """The scope as the audit log stores it: the branches of all grants; None for the whole tree."""
    return [row for grant in access.grants for row in grant.as_json()] if access.grants else None


def _key(anchor: Anchor, taxonomy: Taxonomy) -> PathKey:
    """The current path of the branch; the granted one when its node does not exist."""
    names: list[str] = []
    node = taxonomy.nodes.get(anchor.node_id) if anchor.node_id is not None else None
    while node is not None and len(names) < MAX_DEPTH:
        names.append(node.key)
        node = taxonomy.nodes.get(node.parent_id)
    return tuple(reversed(names)) or anchor.path.key


def _begins(key: PathKey, branch: PathKey) -> bool:
    return key[: len(branch)] == branch
