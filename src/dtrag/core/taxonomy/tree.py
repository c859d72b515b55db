"""Category paths and the tree that they form. A path has a display spelling, and a folded key for comparisons."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dtrag.core.source_rights import SourceAccess
from dtrag.core.text.analysis import normalise
from dtrag.errors import InvalidInput

ROOT = 0
UNCLASSIFIED = 1
"""Reserved node ids: the root, which has no documents, and the node of documents without a category."""
MAX_DEPTH = 8
MAX_NAME = 50
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0") | {
    chr(code) for span in (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0)) for code in span
}
"""Invisible letters and marks (Hangul fillers, variation selectors): different names would look the same."""


@dataclass(frozen=True, slots=True)
class CategoryPath:
    """A path from the root to a category: `names` as written, `key` folded element by element."""

    names: tuple[str, ...]
    key: tuple[str, ...]

    @classmethod
    def parse(cls, value: str | Sequence[str]) -> CategoryPath:
        """From `"AI/ML"` or `["AI", "ML"]`. Raises `InvalidInput` unless it has 1 to 8 valid names."""
        parts = value.split("/") if isinstance(value, str) else value
        if isinstance(parts, (bytes, Mapping)) or not isinstance(parts, Sequence):
            raise InvalidInput("A category path is a list of names, such as ['AI', 'ML'].")
        if not 1 <= len(parts) <= MAX_DEPTH:
            raise InvalidInput(f"A category path has 1 to {MAX_DEPTH} names; this one has {len(parts)}.")
        if isinstance(value, str) and not all(part.strip() for part in parts):
            raise InvalidInput(
                f"The category path {value[:60]!r} has a name without characters: write the names with one / between "
                "them, such as HR/Leave."
            )
        names = tuple(_name(part) for part in parts)
        return cls(names, tuple(normalise(name) for name in names))

    def __str__(self) -> str:
        return "/".join(self.names)


def name_key(name: str) -> str | None:
    """The folded key of a category name; None for an invalid name."""
    try:
        return normalise(_name(name))
    except InvalidInput:
        return None


def _name(part: object) -> str:
    if not isinstance(part, str):
        raise InvalidInput("A category path is a list of names, such as ['AI', 'ML'].")
    if len(part) > MAX_NAME * 4:
        raise InvalidInput(f"A category name has at most {MAX_NAME} characters.")
    name = unicodedata.normalize("NFKC", part).strip()
    if not 1 <= len(name) <= MAX_NAME:
        raise InvalidInput(f"A category name has 1 to {MAX_NAME} characters.")
    for character in name:
        plain = character in " _-" or unicodedata.category(character)[0] in "LMN"
        if not plain or character in _UNSEEN:
            raise InvalidInput(
                "Unsafe characters detected in a category name: letters, digits, blank, _ and - are allowed."
            )
    scripts = {script for script in map(_script, name) if script}
    if len(scripts & {"LATIN", "CYRILLIC", "GREEK"}) > 1:
        raise InvalidInput("Unsafe characters detected: a category name mixes look-alike scripts.")
    return name


def _script(character: str) -> str:
    return unicodedata.name(character, "").split(" ", 1)[0] if character.isalpha() else ""


@dataclass(frozen=True, slots=True)
class Node:
    """A category in one version of the tree; `node_id` stays the same in every version.

    `grade` is the name of the grade that was given to it, "" for none (core/taxonomy/grades.py).
    """

    node_id: int
    parent_id: int
    name: str
    key: str
    grade: str = ""


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """One version of the tree, with look-ups by path and by node; `sources` restricts some of its categories."""

    version: str
    nodes: Mapping[int, Node] = field(default_factory=dict)
    children: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    sources: Sequence[SourceAccess] = ()
    known: dict[Hashable, frozenset[int]] = field(default_factory=dict, compare=False, repr=False)
    """Cache: nodes of grants in this version, and nodes hidden from users of sources."""
    versions_seen: dict[frozenset[int], str] = field(default_factory=dict, compare=False, repr=False)
    """Cache: nodes of a scope -> the version for display in it (`core/access/visible_tree.py::seen_version`)."""

    graded_by: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    """Cache: an order of grades -> the grades of the categories (`core/taxonomy/grades.py::Grades.of`)."""

    @classmethod
    def of(cls, version: str, nodes: Iterable[Node], sources: Sequence[SourceAccess] = ()) -> Taxonomy:
        """Index the nodes of a version."""
        by_id = {node.node_id: node for node in nodes}
        children: dict[int, dict[str, int]] = {}
        for node in by_id.values():
            children.setdefault(node.parent_id, {})[node.key] = node.node_id
        return cls(version, by_id, children, sources)

    def find(self, path: CategoryPath) -> int | None:
        """The node at `path`, or None."""
        current = ROOT
        for key in path.key:
            child = self.children.get(current, {}).get(key)
            if child is None:
                return None
            current = child
        return current

    def path(self, node_id: int) -> tuple[str, ...]:
        """Display names from the root to the node; () for the unclassified and for unknown nodes."""
        names: list[str] = []
        node = self.nodes.get(node_id)
        while node is not None and len(names) <= MAX_DEPTH:
            names.append(node.name)
            node = self.nodes.get(node.parent_id)
        return tuple(reversed(names))

    def with_above(self, nodes: Iterable[int]) -> frozenset[int]:
        """The nodes that are in the tree, and their ancestors."""
        with_ancestors: set[int] = set()
        for node in nodes:
            current = node
            while current in self.nodes and current not in with_ancestors:
                with_ancestors.add(current)
                current = self.nodes[current].parent_id
        return frozenset(with_ancestors)

    def graded(self, node_id: int) -> bool:
        """Whether the category or one above it was given a grade."""
        return any(self.nodes[above].grade for above in self.with_above([node_id]))

    def hidden_from(self, principals: tuple[str, ...]) -> frozenset[int]:
        """The categories that the rights of sources keep from a caller who is these users there."""
        if not self.sources:
            return frozenset()
        hidden = self.known.get(principals)
        if hidden is None:
            branches = (self.subtree(node) for source in self.sources for node in source.rights)
            admitted = (source.admitted(principals) for source in self.sources)
            hidden = self.known[principals] = frozenset[int]().union(*branches).difference(*admitted)
        return hidden

    @property
    def restricted(self) -> frozenset[int]:
        """The categories whose readers a source decides."""
        return frozenset[int]().union(*(self.subtree(node) for source in self.sources for node in source.rights))

    def subtree(self, node_id: int) -> frozenset[int]:
        """The node and its descendants."""
        branch = {node_id}
        queue = [node_id]
        while queue:
            for child in self.children.get(queue.pop(), {}).values():
                if child not in branch:
                    branch.add(child)
                    queue.append(child)
        return frozenset(branch)
