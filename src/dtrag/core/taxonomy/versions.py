"""Versions of the category tree: numbers and differences."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from dtrag.core.response import response
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.errors import InvalidInput

MAX_VERSION = 100
_NUMBER = r"(0|[1-9][0-9]*)"
_LABEL = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_LABEL}(?:\.{_LABEL})*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
"""The grammar of Semantic Versioning 2.0.0 (semver.org), with ASCII digits."""
_MAJOR = frozenset({"merge", "split", "delete"})
_MINOR = frozenset({"add", "move", "grade"})


def parse_version(text: object) -> tuple[int, int, int]:
    """Major, minor and patch of a semantic version. Raises `InvalidInput` for another string."""
    match = _VERSION.fullmatch(text) if isinstance(text, str) and len(text) <= MAX_VERSION else None
    if match is None:
        raise InvalidInput("Invalid version format: write MAJOR.MINOR.PATCH, such as 1.4.0 or 2.5.3-beta.1.")
    return int(match[1]), int(match[2]), int(match[3])


def next_version(parent: str, kinds: Collection[str], taken: Collection[str] = ()) -> str:
    """The next number after `parent` for operations of these kinds that is not in `taken`.

    Merging, splitting and deleting move documents: major. Adding, moving and grading: minor. Only renaming: patch.
    """
    major, minor, patch = parse_version(parent)
    if _MAJOR.intersection(kinds):
        major, minor, patch = major + 1, 0, 0
    elif _MINOR.intersection(kinds):
        minor, patch = minor + 1, 0
    else:
        patch += 1
    while f"{major}.{minor}.{patch}" in taken:
        patch += 1
    return f"{major}.{minor}.{patch}"


Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, order=True)
class PathChange:
    """A category before and after."""

    __pydantic_config__ = response("PairShape")

    before: Path = field(metadata={"alias": "from"})
    """The path before."""
    to: Path
    """The path after."""


@dataclass(frozen=True, slots=True, order=True)
class GradeChange:
    """A category with another grade; an empty name means none."""

    __pydantic_config__ = response("GradeChangeShape")

    path: Path
    """The category."""
    before: str = field(metadata={"alias": "from"})
    """Its grade before."""
    to: str
    """Its grade after."""


@dataclass(frozen=True, slots=True)
class Diff:
    """The differences between a version and its base."""

    __pydantic_config__ = response("DiffShape")

    base: str
    """The base version."""
    version: str
    """The compared version."""
    added: tuple[Path, ...]
    """Categories that are not in the base."""
    removed: tuple[Path, ...]
    """Categories that are only in the base."""
    moved: tuple[PathChange, ...]
    """Categories with another parent."""
    renamed: tuple[PathChange, ...]
    """Categories with another name."""
    merged: tuple[PathChange, ...]
    """Categories whose documents were merged into another one."""
    graded: tuple[GradeChange, ...] = ()
    """Categories that were given another grade themselves."""


def diff(base: Taxonomy, version: Taxonomy, merged: Mapping[int, int] | None = None) -> Diff:
    """The differences. `merged` maps nodes that were merged between the versions to their targets.

    Descendants of a moved or renamed node are not listed: their parent is still the same.
    """
    both = [node for node in base.nodes if node in version.nodes]
    into = {node: to for node, to in (merged or {}).items() if node in base.nodes and node not in version.nodes}
    pairs = {node: PathChange(base.path(node), version.path(node)) for node in both}
    moved = [node for node in both if base.nodes[node].parent_id != version.nodes[node].parent_id]
    renamed = [node for node in both if base.nodes[node].name != version.nodes[node].name]
    return Diff(
        base.version,
        version.version,
        tuple(sorted(version.path(node) for node in version.nodes if node not in base.nodes)),
        tuple(sorted(base.path(node) for node in base.nodes if node not in version.nodes and node not in into)),
        tuple(sorted(pairs[node] for node in moved)),
        tuple(sorted(pairs[node] for node in renamed)),
        tuple(sorted(PathChange(base.path(node), version.path(to)) for node, to in into.items())),
        tuple(
            sorted(
                GradeChange(version.path(node), before, after)
                for node in version.nodes
                if (before := _own_grade(base, node)) != (after := _own_grade(version, node))
            )
        ),
    )


def _own_grade(taxonomy: Taxonomy, node: int) -> str:
    return taxonomy.nodes[node].grade if node in taxonomy.nodes else ""


def active_paths(path: CategoryPath, version: Taxonomy, active: Taxonomy) -> list[list[str]]:
    """The smallest set of branches of the active tree that contains the categories of a branch of `version`.

    Node ids are the same in all versions. Empty when the branch is not in `version`, or none of its nodes is active.
    """
    top = version.find(path)
    nodes = {node for node in version.subtree(top) if node in active.nodes} if top is not None else set()
    return [list(active.path(node)) for node in sorted(nodes) if not nodes & _above(node, active)]


def _above(node: int, taxonomy: Taxonomy) -> frozenset[int]:
    return taxonomy.with_above([node]) - {node}
