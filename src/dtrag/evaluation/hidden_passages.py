"""An index in which some passages are as if they had never been read: questions whose answer is not there.

What a passage leaves behind when it goes is told by more than its text: a rare word that only it held would still look
known. So the document frequencies are those without it. The number of passages stays, as one more or less changes
nothing, and a smaller one would tell that something is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from dtrag.core.access.scope import Scope, SearchFilters
from dtrag.core.documents import SearchResult, Vector
from dtrag.core.ranking.bm25 import LexicalQuery, LexicalStatistics
from dtrag.core.text.analysis import Analyzer, term_id
from dtrag.ports import Embedder, Index
from dtrag.retrieval.engine import HybridSearchEngine


class HidingIndex:
    """Reads from `index`, without the passages that are hidden at the moment; what is not overridden is as there."""

    def __init__(self, index: Index, analyzer: Analyzer) -> None:
        self._index = index
        self._analyzer = analyzer
        self._hidden: dict[str, frozenset[int]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    @contextmanager
    def without(self, passages: Collection[SearchResult]) -> Iterator[None]:
        """Hide these passages inside the block."""
        self._hidden = {passage.chunk_id: self._terms(passage) for passage in passages}
        try:
            yield
        finally:
            self._hidden = {}

    async def lexical(self, query: LexicalQuery, scope: Scope, filters: SearchFilters, wanted: int) -> dict[str, float]:
        """As `Index.lexical`."""
        return self._seen(await self._index.lexical(query, scope, filters, wanted + len(self._hidden)), wanted)

    async def vectors(self, query: Vector, scope: Scope, filters: SearchFilters, wanted: int) -> dict[str, float]:
        """As `Index.vectors`."""
        return self._seen(await self._index.vectors(query, scope, filters, wanted + len(self._hidden)), wanted)

    async def statistics(self, terms: Collection[int], scope: Scope) -> LexicalStatistics:
        """As `Index.statistics`, with the document frequencies that the index would have."""
        found = await self._index.statistics(terms, scope)
        gone = {term: sum(term in held for held in self._hidden.values()) for term in terms}
        less = sorted(term for term, count in gone.items() if count)
        if not less:
            return found
        taken = LexicalStatistics(np.array(less, np.int64), np.array([-gone[term] for term in less], np.int64))
        return LexicalStatistics(chunks=found.chunks, lengths=found.lengths, parts=(found, taken))

    def _terms(self, passage: SearchResult) -> frozenset[int]:
        text = "\n".join((passage.title, *passage.breadcrumb, passage.text))
        return frozenset(map(term_id, self._analyzer.terms(text)))

    def _seen(self, scores: Mapping[str, float], wanted: int) -> dict[str, float]:
        seen = [(key, score) for key, score in scores.items() if key not in self._hidden]
        return dict(seen[:wanted])


def hiding_engine(index: HidingIndex, embedder: Embedder | None, analyzer: Analyzer) -> HybridSearchEngine:
    """An engine that ranks as an app's does without a reranker, and keeps no results."""
    return HybridSearchEngine(
        embedder,
        cast("Index", index),
        enable_caching=False,
        enable_reranking=False,
        normalization="absolute",
        analyzer=analyzer,
    )
