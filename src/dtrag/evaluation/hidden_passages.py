"""An index without some passages, for questions whose answer is missing.

Document frequencies exclude the hidden passages: a rare word that only they contain would otherwise still count as
known. The number of passages is unchanged, as it has no measurable effect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from dtrag.core.access.scope import Scope, SearchFilters
from dtrag.core.documents import SearchResult, Vector
from dtrag.core.imagined import MOST_QUESTIONS
from dtrag.core.ranking.bm25 import LexicalQuery, LexicalStatistics
from dtrag.core.text.analysis import Analyzer, term_id
from dtrag.ports import Embedder, Index
from dtrag.retrieval.engine import HybridSearchEngine
from dtrag.retrieval.regulation_pack import RegulationRanking


class HidingIndex:
    """Reads from `index` without the currently hidden passages; delegates everything else."""

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

    async def lexical(self, query: LexicalQuery, scope: Scope, filters: SearchFilters, top_k: int) -> dict[str, float]:
        """See `Index.lexical`."""
        return self._visible(await self._index.lexical(query, scope, filters, top_k + len(self._hidden)), top_k)

    async def vectors(
        self, query: Vector, space: str, scope: Scope, filters: SearchFilters, top_k: int
    ) -> dict[str, float]:
        """See `Index.vectors`."""
        return self._visible(await self._index.vectors(query, space, scope, filters, top_k + len(self._hidden)), top_k)

    async def imagined(
        self, query: Vector, space: str, scope: Scope, filters: SearchFilters, limit: int
    ) -> dict[str, float]:
        """See `Index.imagined`."""
        more = limit + MOST_QUESTIONS * len(self._hidden)
        return self._visible(await self._index.imagined(query, space, scope, filters, more), limit)

    async def imagined_by_words(
        self, terms: Sequence[tuple[int, float]], scope: Scope, filters: SearchFilters, limit: int
    ) -> dict[str, float]:
        """See `Index.imagined_by_words`."""
        more = limit + len(self._hidden)
        return self._visible(await self._index.imagined_by_words(terms, scope, filters, more), limit)

    async def statistics(self, terms: Collection[int], scope: Scope) -> LexicalStatistics:
        """See `Index.statistics`; document frequencies exclude hidden passages."""
        whole = await self._index.statistics(terms, scope)
        hidden_counts = {term: sum(term in passage for passage in self._hidden.values()) for term in terms}
        affected = sorted(term for term, count in hidden_counts.items() if count)
        if not affected:
            return whole
        negative = np.array([-hidden_counts[term] for term in affected], np.int64)
        correction = LexicalStatistics(np.array(affected, np.int64), negative)
        return LexicalStatistics(chunks=whole.chunks, lengths=whole.lengths, parts=(whole, correction))

    def _terms(self, passage: SearchResult) -> frozenset[int]:
        text = "\n".join((passage.title, *passage.breadcrumb, passage.text))
        return frozenset(map(term_id, self._analyzer.terms(text)))

    def _visible(self, scores: Mapping[str, float], top_k: int) -> dict[str, float]:
        visible = [(key, score) for key, score in scores.items() if key not in self._hidden]
        return dict(visible[:top_k])


def hiding_engine(
    index: HidingIndex, embedder: Embedder | None, analyzer: Analyzer, regulations: str = "off"
) -> HybridSearchEngine:
    """An engine that ranks like that of an app, without reranker and cache; `regulations` is the mode of the pack."""
    reader = cast("Index", index)
    return HybridSearchEngine(
        embedder,
        reader,
        enable_caching=False,
        enable_reranking=False,
        normalization="absolute",
        analyzer=analyzer,
        pack=RegulationRanking(reader, mode=regulations, analyzer=analyzer),
    )
