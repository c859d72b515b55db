"""The category tree as a scope is shown it: its version, and the branches of a tree of another service."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b

from dtrag.core.access.scope import MOST_KNOWN, Scope
from dtrag.core.taxonomy.external_tree import Branch
from dtrag.core.taxonomy.tree import ROOT, Taxonomy, name_key


def seen_version(taxonomy: Taxonomy, scope: Scope) -> str:
    """The version of the tree as a scope is shown it.

    With the whole tree its number. With a part of it `0.0.0+<digest>`, a semantic version that changes when the names
    that the scope sees change and at no other time: numbers would tell how often the rest of the tree has changed.
    """
    if scope.nodes is None:
        return taxonomy.version
    known = taxonomy.versions_seen.get(scope.nodes)
    if known is None:
        names = sorted(json.dumps(taxonomy.path(node), ensure_ascii=False) for node in taxonomy.with_above(scope.nodes))
        known = f"0.0.0+{blake2b(','.join(names).encode(), digest_size=6).hexdigest()}"
        if len(taxonomy.versions_seen) < MOST_KNOWN:
            taxonomy.versions_seen[scope.nodes] = known
    return known


def pruned(branches: Sequence[Branch], active: Taxonomy, scope: Scope) -> tuple[Branch, ...]:
    """The branches of a scope and the names above them, without ids and without counts outside the scope.

    A category is recognised by its folded path in the active tree and spelled as it is there; what has no counterpart
    in the active tree is left out with everything below it.
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
        matched[node] = Branch(
            active.nodes[node].name, branch.documents if node in own else 0, node_id=None, children=below
        )
    # A category above the scope without anything of the scope below it says nothing that the caller may know.
    return tuple(branch for node, branch in matched.items() if node in own or branch.children)
