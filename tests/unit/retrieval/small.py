"""A small index and an engine on it, for the tests of the engine."""

from __future__ import annotations

from typing import Any

from dtrag.core.access.scope import Scope
from dtrag.core.taxonomy.tree import ROOT, Node, Taxonomy
from dtrag.ports import Embedder, Index
from dtrag.retrieval.engine import HybridSearchEngine
from tests.unit.retrieval.memory import MemoryIndex, Row

TREE = Taxonomy.of("1", [Node(2, ROOT, "AI", "ai"), Node(3, ROOT, "HR", "hr")])
ROWS = (
    Row("a", "The kettle has a valve.", 2),
    Row("b", "A boiler has a valve and a valve.", 2),
    Row("c", "Leave is granted in summer.", 3),
    Row("d", "The valve of the salary office.", 3),
    Row("e", "휴학은 네 학기까지 할 수 있다.", 3),
)
EVERYTHING = Scope.everything()


def small_index(embedder: Embedder | None = None) -> MemoryIndex:
    """Two passages of AI, three of HR, one of these in Korean."""
    return MemoryIndex(ROWS, embedder, TREE)


def engine_on(index: Index, embedder: Embedder | None = None, **options: Any) -> HybridSearchEngine:
    """An engine that does not rerank unless told to."""
    return HybridSearchEngine(embedder, index, **({"enable_reranking": False} | options))
