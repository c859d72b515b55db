"""The category tree restricted to a scope: its version, and the branches of an external tree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b

from dtrag.core.access.scope import MOST_KNOWN, Scope
from dtrag.core.taxonomy.external_tree import Branch
from dtrag.core.taxonomy.tree import ROOT, Taxonomy, name_key


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
