"""Keeps the writing of a caller within their branches: categories, and files that were there before."""

from __future__ import annotations

import uuid

from dtrag.core.access.scope import Scope
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.errors import Forbidden, InvalidInput
from dtrag.ports import IndexWriter

OUTSIDE = "A document can only be put into a category inside your own branches."
REFUSED = "It cannot be written with your key: give the file another name, or ask an editor of the whole tree."
"""The same whatever the reason is: it must not tell what there is elsewhere."""


class Fence:
    """The branches that one run may write to; `scope` grows by the categories that the run makes inside of them."""

    def __init__(self, writer: IndexWriter, scope: Scope):
        self._writer = writer
        self.scope = scope

    async def admit(self, category: CategoryPath | None) -> None:
        """Raises `InvalidInput` without a category where one is needed, and `Forbidden` for one outside."""
        if self.scope.nodes is None:
            return
        if category is None:
            raise InvalidInput("Name a category inside your own branches: your key may not write anywhere else.")
        if not self._holds(category, await self._writer.ensure_paths([])):
            raise Forbidden(OUTSIDE)

    def check(self, path: CategoryPath, taxonomy: Taxonomy) -> None:
        """Raises `InvalidInput` for a category that lies outside, or that would have to be made there."""
        if not self._holds(path, taxonomy):
            raise InvalidInput(OUTSIDE)

    def made(self, node: int) -> None:
        """A category was made or found by a path that was checked."""
        self.scope = Scope(None) if self.scope.nodes is None else Scope(self.scope.nodes | {node})

    async def check_source(self, source_id: uuid.UUID) -> None:
        """Raises `InvalidInput` for a file of which there are documents outside: it would replace them."""
        if self.scope.nodes is not None and await self._writer.reaches_out(source_id, self.scope):
            raise InvalidInput(REFUSED)

    def _holds(self, path: CategoryPath, taxonomy: Taxonomy) -> bool:
        """Whether `path`, or a category above it, lies inside: a scope is made of whole branches."""
        if self.scope.nodes is None:
            return True
        above = (
            taxonomy.find(CategoryPath(path.names[:depth], path.key[:depth])) for depth in range(1, len(path.key) + 1)
        )
        return any(node in self.scope.nodes for node in above)
