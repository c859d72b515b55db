"""Limits the writes of one run to the branches of the caller: categories, and files that the index has already."""

from __future__ import annotations

import uuid

from dtrag.core.access.scope import Scope
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy
from dtrag.errors import Forbidden, InvalidInput
from dtrag.ports import IndexWriter

OUTSIDE = "A document can only be put into a category inside your own branches."
REFUSED = "It cannot be written with your key: give the file another name, or ask an editor of the whole tree."
"""The same for every reason, so that it reveals nothing about documents outside the scope."""


class WriteGuard:
    """The branches that one run may write to; `scope` grows by the categories that the run creates inside of them."""

    def __init__(self, writer: IndexWriter, scope: Scope):
        self._writer = writer
        self.scope = scope

    async def admit(self, category: CategoryPath | None) -> None:
        """Raises `InvalidInput` for a limited scope without a category, and `Forbidden` for a category outside."""
        if self.scope.nodes is None:
            return
        if category is None:
            raise InvalidInput("Name a category inside your own branches: your key may not write anywhere else.")
        if not self._contains(category, await self._writer.ensure_paths([])):
            raise Forbidden(OUTSIDE)

    def check(self, path: CategoryPath, taxonomy: Taxonomy) -> None:
        """Raises `InvalidInput` for a category that lies outside, or would be created there."""
        if not self._contains(path, taxonomy):
            raise InvalidInput(OUTSIDE)

    def include(self, node: int) -> None:
        """Add the node of a category that passed `check`."""
        self.scope = Scope(None) if self.scope.nodes is None else Scope(self.scope.nodes | {node})

    async def check_source(self, source_id: uuid.UUID) -> None:
        """Raises `InvalidInput` for a file that has documents outside, which it would replace."""
        if self.scope.nodes is not None and await self._writer.reaches_out(source_id, self.scope):
            raise InvalidInput(REFUSED)

    def _contains(self, path: CategoryPath, taxonomy: Taxonomy) -> bool:
        """Whether `path`, or a category above it, is in the scope: a scope consists of whole branches."""
        if self.scope.nodes is None:
            return True
        ancestors = (
            taxonomy.find(CategoryPath(path.names[:depth], path.key[:depth])) for depth in range(1, len(path.key) + 1)
        )
        return any(node in self.scope.nodes for node in ancestors)
