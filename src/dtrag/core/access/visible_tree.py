"""The category tree restricted to a scope: its version, and the branches of the tree of another service, validated."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from dtrag.core.access.scope import MOST_KNOWN, Scope
from dtrag.core.response import response
from dtrag.core.taxonomy.apply import MOST_NODES
from dtrag.core.taxonomy.tree import MAX_DEPTH, MAX_NAME, ROOT, Taxonomy, name_key
from dtrag.core.taxonomy.versions import MAX_VERSION
from dtrag.errors import InvalidInput


def seen_version(taxonomy: Taxonomy, scope: Scope) -> str:
    """The version of the tree for display in a scope.

    With the whole tree its number. In a narrower scope `0.0.0+<digest>`, a semantic version that changes only when the
    names visible in the scope change: the number would reveal changes elsewhere in the tree.
    """
    if scope.nodes is None:
        return taxonomy.version
    version = taxonomy.versions_seen.get(scope.nodes)
    if version is None:
        names = sorted(json.dumps(taxonomy.path(node), ensure_ascii=False) for node in taxonomy.with_above(scope.nodes))
        version = f"0.0.0+{blake2b(','.join(names).encode(), digest_size=6).hexdigest()}"
        if len(taxonomy.versions_seen) < MOST_KNOWN:
            taxonomy.versions_seen[scope.nodes] = version
    return version


def pruned(branches: Sequence[Branch], active: Taxonomy, scope: Scope) -> tuple[Branch, ...]:
    """The branches in scope and their ancestors, without ids, and without document counts of the ancestors.

    Categories are matched with the active tree by folded path and get its spelling; a category without a match is left
    out with its descendants.
    """
    own = frozenset(active.nodes) if scope.nodes is None else scope.nodes
    return _pruned(branches, ROOT, active, own, active.with_above(own))


def _pruned(
    branches: Sequence[Branch], parent: int, active: Taxonomy, own: frozenset[int], shown: frozenset[int]
) -> tuple[Branch, ...]:
    matched: dict[int, Branch] = {}
    for branch in branches:
        node = active.children.get(parent, {}).get(name_key(branch.name) or "")
        if node is None or node not in shown or node in matched:
            continue
        below = _pruned(branch.children, node, active, own, shown)
        documents = branch.documents if node in own else 0
        matched[node] = Branch(None, active.nodes[node].name, active.path(node), documents, below)
    # Ancestors without a descendant in scope are left out.
    return tuple(branch for node, branch in matched.items() if node in own or branch.children)


@dataclass(frozen=True, slots=True)
class TopBranch:
    """One of the topmost branches that the caller may see."""

    __pydantic_config__ = response()

    path: tuple[str, ...]
    """Names, outermost first."""
    documents: int
    """Documents in the branch that the caller may see, subcategories included."""


def top_branches(active: Taxonomy, scope: Scope, counts: Mapping[int, int]) -> list[TopBranch]:
    """The topmost branches in scope that have documents, those with the most first.

    A single branch whose documents are all in subcategories is replaced by these. `counts` are those of all nodes.
    """
    own = frozenset(active.nodes) if scope.nodes is None else scope.nodes
    top: Iterable[int] = own & frozenset(active.children.get(ROOT, {}).values())
    if scope.nodes is not None:
        top = scope.branches(active) or ()
    documents = _documents_below(active, top, own, counts)
    while len(documents) == 1:
        [only] = documents
        below = _documents_below(active, active.children.get(only, {}).values(), own, counts)
        if sum(below.values()) < documents[only]:
            break
        documents = below
    ordered = sorted(documents, key=lambda node: (-documents[node], active.path(node)))
    return [TopBranch(active.path(node), documents[node]) for node in ordered]


def _documents_below(
    active: Taxonomy, nodes: Iterable[int], own: frozenset[int], counts: Mapping[int, int]
) -> dict[int, int]:
    """Node -> documents in its own part of the tree, for the categories that have any."""
    sums = {
        node: sum(counts.get(each, 0) for each in active.subtree(node) & own) for node in nodes if node in active.nodes
    }
    return {node: documents for node, documents in sums.items() if documents}


MAX_BYTES = 8 * 2**20
"""10,000 categories with their paths take about 3 MB."""
_MAX_SENT_NAME = 4 * MAX_NAME
"""Names in other services may be longer."""
_MAX_COUNT = 2**53
"""Largest integer that every JSON parser represents exactly."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A category with its subcategories, as far as visible to the caller."""

    __pydantic_config__ = response("NodeShape")

    node_id: int | None
    """The same in every version; null for a caller with a scope: ids are numbered over the whole tree and would reveal
    the number of categories."""
    name: str
    """Its display name."""
    path: tuple[str, ...]
    """Names, outermost first."""
    documents: int
    """Documents in the category itself; 0 outside the caller's branches."""
    children: tuple[Branch, ...] = ()
    """Its subcategories."""
    grade: str = ""
    """Its grade, the highest one on its path; empty where none was given, and in the tree of another service."""


@dataclass(frozen=True, slots=True)
class SentTree:
    """The tree of one version."""

    version: str
    branches: tuple[Branch, ...]


def read_sent_tree(body: bytes) -> SentTree:
    """From `{"version": …, "tree": [{"name": …, "documents": …, "node_id": …, "children": […]}]}`.

    Only `name` is required of a category, and other fields are ignored. Raises `InvalidInput`.
    """
    try:
        sent = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("its answer is not JSON.") from error
    if not isinstance(sent, dict) or not isinstance(sent.get("tree"), list):
        raise InvalidInput("its answer has no list `tree`.")
    reader = _TreeReader()
    return SentTree(_text(sent.get("version"), MAX_VERSION, "version"), reader.branches(sent["tree"], ()))


class _TreeReader:
    """Counts the categories while they are read."""

    def __init__(self) -> None:
        self._count = 0

    def branches(self, sent: object, above: tuple[str, ...]) -> tuple[Branch, ...]:
        """Raises `InvalidInput`."""
        if not isinstance(sent, list):
            raise InvalidInput("its answer has `children` that are not a list.")
        if sent and len(above) >= MAX_DEPTH:
            raise InvalidInput(f"its tree is more than {MAX_DEPTH} levels deep.")
        self._count += len(sent)
        if self._count > MOST_NODES:
            raise InvalidInput(f"its tree has more than {MOST_NODES:,} categories.")
        return tuple(self._branch(category, above) for category in sent)

    def _branch(self, sent: object, above: tuple[str, ...]) -> Branch:
        if not isinstance(sent, dict):
            raise InvalidInput("its answer has categories that are not JSON objects.")
        node_id, name = sent.get("node_id"), _text(sent.get("name"), _MAX_SENT_NAME, "name")
        return Branch(
            None if node_id is None else _count(node_id, "node_id"),
            name,
            (*above, name),
            _count(sent.get("documents", 0), "documents"),
            self.branches(sent.get("children", []), (*above, name)),
        )


def _text(value: Any, longest: int, field: str) -> str:
    if isinstance(value, str) and value.strip() and len(value) <= longest and value.isprintable():
        return value
    raise InvalidInput(f"its answer has a `{field}` that is not a line of at most {longest} characters.")


def _count(value: Any, field: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_COUNT:
        return value
    raise InvalidInput(f"its answer has a `{field}` that is not a whole number.")
