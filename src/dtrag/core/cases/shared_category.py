"""The category of a case: the deepest one that its passages share."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from dtrag.core.documents import SearchResult
from dtrag.core.taxonomy.tree import CategoryPath, Taxonomy


def shared_category(passages: Sequence[SearchResult], taxonomy: Taxonomy) -> tuple[tuple[str, ...], int | None]:
    """The deepest category that all the passages share, and its node; () and None where they share none."""
    columns = zip(*(passage.taxonomy_path for passage in passages), strict=False)
    path = tuple(names[0] for names in itertools.takewhile(lambda names: len(set(names)) == 1, columns))
    return (path, taxonomy.find(CategoryPath.parse(path))) if path else ((), None)
