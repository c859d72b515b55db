"""The reading side of a store in memory: exact, small, and able to fail on demand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dtrag.core.documents import SearchResult, Vector
from dtrag.core.scope import Scope, SearchFilters
from dtrag.core.scoring import LexicalQuery, LexicalStatistics, bm25_weight
from dtrag.core.taxonomy import Taxonomy
from dtrag.core.text import term_id, terms
from dtrag.ports import Embedder, IndexSnapshot


@dataclass(frozen=True)
class Row:
    """One passage of the store."""

    key: str
    text: str
    node_id: int = 1
    title: str = ""
    breadcrumb: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


def counted(text: str) -> Counter[int]:
    """Occurrences of each term id."""
    return Counter(map(term_id, terms(text)))


class MemoryIndex:
    """Scores every passage. `broken` names the calls that raise, `vanished` the passages that fetching misses."""

    def __init__(self, rows: Sequence[Row], embedder: Embedder | None = None, taxonomy: Taxonomy | None = None) -> None:
        self.rows = {row.key: row for row in rows}
        self.settings: dict[str, Any] = {"generation": 1}
        self.taxonomy = taxonomy or Taxonomy("1")
        self.broken: dict[str, Exception] = {}
        self.vanished: set[str] = set()
        self.calls: list[str] = []
        self.asked: list[list[int]] = []
        self._counts = {row.key: counted(row.text) for row in rows}
        vectors = embedder.embed_documents([row.text for row in rows]) if embedder else ()
        self._vectors = dict(zip(self.rows, vectors, strict=False))
        self.statistics = self._count()

    def _count(self) -> LexicalStatistics:
        df = Counter(term for counts in self._counts.values() for term in counts)
        ids = sorted(df)
        total = sum(sum(counts.values()) for counts in self._counts.values())
        frequencies = np.array([df[term] for term in ids], np.int64)
        return LexicalStatistics(np.array(ids, np.int64), frequencies, len(self.rows), {"en": (len(self.rows), total)})

    def _enter(self, call: str) -> None:
        self.calls.append(call)
        if call in self.broken:
            raise self.broken[call]

    def _seen(self, scope: Scope) -> list[str]:
        return [key for key, row in self.rows.items() if scope.nodes is None or row.node_id in scope.nodes]

    async def snapshot(self) -> IndexSnapshot:
        self._enter("snapshot")
        return IndexSnapshot(self.settings, self.statistics, self.taxonomy)

    async def lexical(
        self, query: LexicalQuery, terms: Sequence[int], scope: Scope, filters: SearchFilters, wanted: int
    ) -> dict[str, float]:
        self._enter("lexical")
        self.asked.append(list(terms))
        chunks, total = self.statistics.lengths["en"]
        scores = {}
        for key in self._seen(scope):
            counts = self._counts[key]
            length = sum(counts.values())
            if not counts.keys().isdisjoint(terms):
                scores[key] = sum(
                    weight * bm25_weight(counts[term], length, total / chunks)
                    for term, weight in query.weights.items()
                    if counts[term]
                )
        return _best(scores, wanted)

    async def strict(self, query: str, scope: Scope, filters: SearchFilters, wanted: int) -> dict[str, float]:
        self._enter("strict")
        words = counted(query).keys()
        return _best({key: 0.5 for key in self._seen(scope) if words <= self._counts[key].keys()}, wanted)

    async def vectors(self, query: Vector, scope: Scope, filters: SearchFilters, wanted: int) -> dict[str, float]:
        self._enter("vectors")
        return _best({key: float(self._vectors[key] @ query) for key in self._seen(scope)}, wanted)

    async def fetch(self, chunk_ids: Sequence[str], scope: Scope, taxonomy: Taxonomy) -> dict[str, SearchResult]:
        self._enter("fetch")
        seen = set(self._seen(scope)) - self.vanished
        return {
            key: SearchResult(
                key,
                self.rows[key].text,
                title=self.rows[key].title,
                breadcrumb=self.rows[key].breadcrumb,
                metadata=self.rows[key].metadata,
                start=100,
                end=100 + len(self.rows[key].text),
            )
            for key in chunk_ids
            if key in seen
        }


def _best(scores: Mapping[str, float], wanted: int) -> dict[str, float]:
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:wanted])


@dataclass(frozen=True)
class Broken:
    """An embedder that does not do what it should: raises `error`, or gives vectors full of `value`."""

    error: Exception | None = None
    value: float = 0.0
    queries_work: bool = False
    id: str = "broken@00000000"
    dim: int = 8
    max_tokens: int = 256
    languages: frozenset[str] = frozenset({"*"})

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        if self.error is not None:
            raise self.error
        return np.full((len(texts), self.dim), self.value, np.float32)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        if self.queries_work:
            return np.full((len(texts), self.dim), self.dim**-0.5, np.float32)
        return self.embed_documents(texts)
