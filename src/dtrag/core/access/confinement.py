"""What the code that runs now may read at most: the scope of the run, request or tool call around it.

Functions for a program of its own (`hybrid_search`, `HybridSearchEngine`, `LangGraphPipeline`, `App.search` …) need no
scope: alone they read as the owner, the whole tree. Inside a run, a request or a tool call they read no more than it
may, whatever scope they are called with. Ports and stores know nothing of this: their scope is a required argument.
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
    """While the block runs, nothing in it (tasks that it starts included) reads beyond `scope`; the scope it has."""
    viewer = bounded(scope)
    token = _confined_to.set(viewer)
    try:
        yield viewer
    finally:
        _confined_to.reset(token)


def bounded(scope: Viewer | None = None) -> Viewer:
    """The scope to read with: `scope` (None: the owner's), no wider than what surrounds the call."""
    limit = _confined_to.get()
    if limit is None:
        return OWNER if scope is None else scope
    return limit if scope is None or scope == limit else _both(limit, scope)


def _both(one: Viewer, other: Viewer) -> Viewer:
    if isinstance(one, Access) and isinstance(other, Access):
        grants = tuple(dict.fromkeys((*one.grants, *other.grants)))
        return Access(grants, one.server_paths and other.server_paths)
    return Intersection(one, other)
