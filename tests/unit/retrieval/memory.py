"""The reading side of a store in memory: exact, small, and able to fail on demand."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtrag.core.access.scope import NO_FILTERS, Scope, SearchFilters
from dtrag.core.answers.sentence_vectors import NOTHING_STORED, SentenceVectors
from dtrag.core.documents import SearchResult, Vector
from dtrag.core.editions import WorkBeginning
from dtrag.core.ranking.bm25 import LexicalQuery, LexicalStatistics, bm25_weight
from dtrag.core.taxonomy.tree import Taxonomy
from dtrag.core.text.analysis import term_id, terms
from dtrag.core.text.passage_title_mentions import title_key, title_number
from dtrag.ports import Embedder, IndexChanged, IndexSnapshot


@dataclass(frozen=True)
class Row:
    """One passage of the store."""

    key: str
    text: str
    node_id: int = 1
    title: str = ""
    breadcrumb: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    content_type: str = "text/plain"
    processed_at: datetime = datetime(2025, 6, 1, tzinfo=UTC)


def counted(text: str) -> Counter[int]:
    """Occurrences of each term id."""
    return Counter(map(term_id, terms(text)))


class MemoryIndex:
    """Scores every passage. `broken` names the calls that raise, `gates` those that wait, `vanished` the passages that
    fetching misses."""

    def __init__(self, rows: Sequence[Row], embedder: Embedder | None = None, taxonomy: Taxonomy | None = None) -> None:
        self.rows = {row.key: row for row in rows}
        self.settings: dict[str, Any] = {"generation": 1}
        self.latest: IndexSnapshot | None = None
        self.taxonomy = taxonomy or Taxonomy("1")
        self.broken: dict[str, Exception] = {}
        self.vanished: set[str] = set()
        self.calls: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self._counts = {row.key: counted(row.text) for row in rows}
        vectors = embedder.embed_documents([row.text for row in rows]) if embedder else ()
        self._vectors = dict(zip(self.rows, vectors, strict=False))
        self.statistics_ = self._count(self.rows)

    async def preceding(self, chunk_ids: Sequence[str], scope: Scope, limit: int) -> dict[str, list[tuple[int, str]]]:
        """No passage has one before it."""
        return {}

    async def sentence_vectors(self, passages: Sequence[SearchResult], space: str, scope: Scope) -> SentenceVectors:
        """None are stored."""
        return NOTHING_STORED

    def _count(self, keys: Collection[str]) -> LexicalStatistics:
        """Of these passages, with the mean length of all."""
        df = Counter(term for key in keys for term in self._counts[key])
        ids = sorted(df)
        total = sum(sum(counts.values()) for counts in self._counts.values())
        frequencies = np.array([df[term] for term in ids], np.int64)
        return LexicalStatistics(np.array(ids, np.int64), frequencies, len(keys), {"en": (len(self.rows), total)})

    async def _enter(self, call: str) -> None:
        self.calls.append(call)
        if call in self.gates:
            await self.gates[call].wait()
        if call in self.broken:
            raise self.broken[call]

    def _seen(self, scope: Scope, filters: SearchFilters = SearchFilters()) -> list[str]:
        return [
            key
            for key, row in self.rows.items()
            if (scope.nodes is None or row.node_id in scope.nodes)
            and filters.admits(row.content_type, row.processed_at, row.metadata)
        ]

    async def snapshot(self) -> IndexSnapshot:
        await self._enter("snapshot")
        self.latest = IndexSnapshot(dict(self.settings), self.statistics_, self.taxonomy)
        return self.latest

    async def lexical(self, query: LexicalQuery, scope: Scope, filters: SearchFilters, wanted: int) -> dict[str, float]:
        await self._enter("lexical")
        found = {key: self._bm25(query, key) for key in self._seen(scope, filters)}
        return _best({key: score for key, score in found.items() if score > 0}, wanted)

    async def lexical_scores(self, query: LexicalQuery, chunk_ids: Sequence[str], scope: Scope) -> dict[str, float]:
        await self._enter("lexical_scores")
        return {key: self._bm25(query, key) for key in chunk_ids if key in self._seen(scope)}

    def _bm25(self, query: LexicalQuery, key: str) -> float:
        counts = self._counts[key]
        mean = query.mean_lengths["en"]
        return sum(
            weight * bm25_weight(counts[term], sum(counts.values()), mean)
            for term, weight in query.ranked()
            if counts[term]
        )

    async def strict_note(self, scope: Scope) -> None:
        return None

    async def strict(self, query: str, scope: Scope, filters: SearchFilters, wanted: int) -> dict[str, float]:
        await self._enter("strict")
        words = counted(query).keys()
        return _best({key: 0.5 for key in self._seen(scope, filters) if words <= self._counts[key].keys()}, wanted)

    async def vectors(
        self, query: Vector, space: str, scope: Scope, filters: SearchFilters, wanted: int
    ) -> dict[str, float]:
        await self._enter("vectors")
        return _best(self._cosines(query, self._seen(scope, filters)), wanted)

    async def statistics(self, terms: Collection[int], scope: Scope) -> LexicalStatistics:
        await self._enter("statistics")
        return self.statistics_ if scope.nodes is None else self._count(self._seen(scope))

    async def titled(self, numbers: NDArray[np.uint64], scope: Scope) -> dict[int, list[str]]:
        await self._enter("titled")
        found: dict[int, dict[str, list[str]]] = {}
        for key in self._seen(scope):
            documents = found.setdefault(title_number(title_key(self.rows[key].title)), {})
            documents.setdefault(key.rpartition(":")[0], []).append(key)
        return {
            number: next(iter(documents.values()))
            for number, documents in found.items()
            if number in numbers and number and len(documents) == 1
        }

    async def holds_kind(self, kind: str, scope: Scope) -> bool:
        return any(self.rows[key].metadata.get("kind") == kind for key in self._seen(scope))

    async def work_beginnings(self, scope: Scope) -> list[WorkBeginning]:
        return []

    async def vector_scores(
        self, query: Vector, space: str, chunk_ids: Sequence[str], scope: Scope
    ) -> dict[str, float]:
        await self._enter("vector_scores")
        return self._cosines(query, [key for key in chunk_ids if key in self._seen(scope)])

    def _cosines(self, query: Vector, keys: Sequence[str]) -> dict[str, float]:
        return {key: float(self._vectors[key] @ query) for key in keys if key in self._vectors}

    async def imagined(
        self, query: Vector, space: str, scope: Scope, filters: SearchFilters, limit: int
    ) -> dict[str, float]:
        return {}  # the snapshot reports no imagined questions

    async def imagined_scores(
        self, query: Vector, space: str, chunk_ids: Sequence[str], scope: Scope
    ) -> dict[str, float]:
        return {}

    async def imagined_by_words(
        self, terms: Sequence[tuple[int, float]], scope: Scope, filters: SearchFilters, limit: int
    ) -> dict[str, float]:
        return {}

    async def imagined_questions(self, chunk_ids: Sequence[str], scope: Scope) -> dict[str, list[str]]:
        return {}

    async def chunk_ids(self, document_id: uuid.UUID, scope: Scope) -> list[str]:
        await self._enter("chunk_ids")
        return [key for key in self._seen(scope) if key.rpartition(":")[0] == str(document_id)]

    def filter_clause(self, filters: SearchFilters, scope: Scope) -> tuple[str, dict[str, object]]:
        asked: dict[str, object] = {"nodes": scope.nodes, "types": filters.content_types, "facts": filters.metadata}
        asked |= {"first": filters.date_from, "last": filters.date_to}
        parameters = {name: value for name, value in asked.items() if value is not None}
        return " and ".join(f"fits(:{name})" for name in parameters), parameters

    async def fetch(
        self,
        chunk_ids: Sequence[str],
        scope: Scope,
        taxonomy: Taxonomy,
        filters: SearchFilters = NO_FILTERS,
        *,
        version: tuple[int, int] | None = None,
    ) -> dict[str, SearchResult]:
        await self._enter("fetch")
        if version not in {None, (self.settings["generation"], self.settings.get("vectors", 0))}:
            raise IndexChanged
        seen = set(self._seen(scope, filters)) - self.vanished
        return {
            key: SearchResult(
                key,
                self.rows[key].text,
                title=self.rows[key].title,
                breadcrumb=self.rows[key].breadcrumb,
                taxonomy_path=list(taxonomy.path(self.rows[key].node_id)),
                metadata={
                    **self.rows[key].metadata,
                    "content_type": self.rows[key].content_type,
                    "processed_at": self.rows[key].processed_at.isoformat(),
                },
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
    floor: float = 0.0
    decides: bool = True

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        if self.error is not None:
            raise self.error
        return np.full((len(texts), self.dim), self.value, np.float32)

    def embed_queries(self, texts: Sequence[str]) -> Vector:
        if self.queries_work:
            return np.full((len(texts), self.dim), self.dim**-0.5, np.float32)
        return self.embed_documents(texts)
