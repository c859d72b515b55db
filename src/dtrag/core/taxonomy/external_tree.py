"""The category tree of another service, validated."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from dtrag.core.taxonomy.apply import MOST_NODES
from dtrag.core.taxonomy.tree import MAX_DEPTH, MAX_NAME
from dtrag.core.taxonomy.versions import MAX_VERSION
from dtrag.errors import InvalidInput

MAX_BYTES = 8 * 2**20
"""10,000 categories with their paths take about 3 MB."""
_MAX_SENT_NAME = 4 * MAX_NAME
"""Names in other services may be longer."""
_MAX_COUNT = 2**53
"""Largest integer that every JSON parser represents exactly."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A category with its descendants. `documents` counts those on the category itself."""

    name: str
    documents: int = 0
    node_id: int | None = None
    children: tuple[Branch, ...] = ()


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
    return SentTree(_text(sent.get("version"), MAX_VERSION, "version"), reader.branches(sent["tree"], 1))


class _TreeReader:
    """Counts the categories while they are read."""

    def __init__(self) -> None:
        self._count = 0

    def branches(self, sent: object, depth: int) -> tuple[Branch, ...]:
        """Raises `InvalidInput`."""
        if not isinstance(sent, list):
            raise InvalidInput("its answer has `children` that are not a list.")
        if sent and depth > MAX_DEPTH:
            raise InvalidInput(f"its tree is more than {MAX_DEPTH} levels deep.")
        self._count += len(sent)
        if self._count > MOST_NODES:
            raise InvalidInput(f"its tree has more than {MOST_NODES:,} categories.")
        return tuple(self._branch(category, depth) for category in sent)

    def _branch(self, sent: object, depth: int) -> Branch:
        if not isinstance(sent, dict):
            raise InvalidInput("its answer has categories that are not JSON objects.")
        node_id = sent.get("node_id")
        return Branch(
            name=_text(sent.get("name"), _MAX_SENT_NAME, "name"),
            documents=_count(sent.get("documents", 0), "documents"),
            node_id=None if node_id is None else _count(node_id, "node_id"),
            children=self.branches(sent.get("children", []), depth + 1),
        )


def _text(value: Any, longest: int, field: str) -> str:
    if isinstance(value, str) and value.strip() and len(value) <= longest and value.isprintable():
        return value
    raise InvalidInput(f"its answer has a `{field}` that is not a line of at most {longest} characters.")


def _count(value: Any, field: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_COUNT:
        return value
    raise InvalidInput(f"its answer has a `{field}` that is not a whole number.")
