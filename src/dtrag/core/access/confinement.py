"""Upper bound of every scope: that of the surrounding pipeline run, request or tool call.

Public functions (`hybrid_search`, `HybridSearchEngine`, `LangGraphPipeline`, `App.search` …) work without a scope: on
their own they read the whole tree. Inside a run, request or tool call they are confined to its scope, whatever scope
is passed. Ports and stores are not affected: their scope is a required argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from dtrag.core.access.scope import EVERYTHING, Access, Intersection, Viewer

OWNER: Viewer = EVERYTHING
_confined_to: ContextVar[Viewer | None] = ContextVar("dtrag_confined_to", default=None)


@contextmanager
def confined(scope: Viewer) -> Iterator[Viewer]:
    """Confine the block, and tasks started in it, to `scope`; yields the resulting scope."""
    viewer = bounded(scope)
    token = _confined_to.set(viewer)
    try:
        yield viewer
    finally:
        _confined_to.reset(token)


def bounded(scope: Viewer | None = None) -> Viewer:
    """`scope` (None: the whole tree), restricted to the confinement of the running code."""
    limit = _confined_to.get()
    if limit is None:
        return OWNER if scope is None else scope
    return limit if scope is None or scope == limit else _both(limit, scope)


def _both(first: Viewer, second: Viewer) -> Viewer:
    if isinstance(first, Access) and isinstance(second, Access):
        ends = {first.principals, second.principals} - {None}  # None restricts nothing
        if len(ends) < 2:
            grants = tuple(dict.fromkeys((*first.grants, *second.grants)))
            paths = first.server_paths and second.server_paths
            return Access(grants, paths, first.as_of or second.as_of, next(iter(ends), None))
    return Intersection(first, second)
