"""Whether what a request or an agent names lies within a caller's own branches.

Paths are compared by their names alone: whether a path outside exists makes no difference to any answer here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dtrag.core.access.scope import Access, Anchor, Grant
from dtrag.core.taxonomy.tree import MAX_DEPTH, CategoryPath, Taxonomy

Key = tuple[str, ...]


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
