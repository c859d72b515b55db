"""The configuration of a search engine, its time limits, and how many passages each stage passes on to the next one.

Both retrievers return candidates (`CANDIDATES` in request.py by default), which are fused. The best of the fused
passages are fetched, ordered by the pack or the reranker, and cut to `top_k`. Every number of passages here is raised
to `top_k` where that is larger.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypedDict

from dtrag.core.ranking.fusion import METHODS, HybridScoreFusion, shares
from dtrag.errors import InvalidInput
from dtrag.settings import timeout_multiplier

PACK_LEXICAL_CANDIDATES = 200
"""Lexical candidates of a query that a pack has added terms to."""
PACK_PASSAGES = 120
"""Fused passages that are fetched for a pack, which joins the pieces of one article."""
PACK_NEAREST = 20
"""Passages nearest to the question that are fetched beside them."""
PACK_ARTICLES = 50
"""Articles that the pack ranks a second time; the others keep the order of the fused scores."""
RERANKED_PASSAGES = 50
"""Passages that a reranker reads: those that are fetched without a pack, or the best of the pack's order."""
LINKED_AFTER = 7
"""Passages that keep their places before those that they mention or cite: the first results answer the question
itself."""
LINKED_PASSAGES = 3
"""Mentioned documents, or cited provisions, that are inserted."""
LEXICAL_SHARE = 0.85
"""Share of the caller's remaining time for the lexical retriever; the rest is for fetching passages."""
VECTOR_SHARE = 0.75
"""Share for the vector retriever, the embedding included: lexical candidates can still be reranked after it."""
MENTIONS_SHARE = 0.3
"""Share for documents that the best passages mention."""
CITATIONS_SECONDS = 0.1
"""Time limit for the provisions that the best passages cite."""


class EngineOptions(TypedDict, total=False):
    """Values of `EngineConfig` that `HybridSearchEngine(...)` takes as keyword arguments only."""

    fusion: str
    adaptive: bool
    hops: int
    cache_size: int
    cache_ttl: float
    embedding_timeout: float
    rerank_timeout: float


class EngineChanges(EngineOptions, total=False):
    """All values of `EngineConfig`."""

    bm25_weight: float
    vector_weight: float
    normalization: str
    enable_caching: bool
    enable_reranking: bool


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """The values of an engine; the weights are scaled to sum to 1. Raises `InvalidInput` for an invalid value.

    With `adaptive` the weights depend on the characteristics of the query. `fusion` is `weighted` or `rrf` (which uses
    ranks and no normalisation). `embedding_timeout` and `rerank_timeout` are the seconds allowed for the vector of the
    query and for the reranker, times PIPELINE_TIMEOUT_MULTIPLIER. With `hops` 2, documents that the best passages
    mention are inserted into the results (retrieval/multihop.py); with 1 they are not.
    """

    bm25_weight: float = 0.5
    vector_weight: float = 0.5
    normalization: str = "min_max"
    fusion: str = "weighted"
    adaptive: bool = False
    hops: int = 2
    enable_caching: bool = True
    enable_reranking: bool = True
    cache_size: int = 1000
    cache_ttl: float = 3600.0
    embedding_timeout: float = 1.0
    rerank_timeout: float = 0.6

    def __post_init__(self) -> None:
        lexical, vector = shares(self.bm25_weight, self.vector_weight)
        object.__setattr__(self, "bm25_weight", lexical)
        object.__setattr__(self, "vector_weight", vector)
        self.score_fusion()
        if self.fusion not in METHODS:
            raise InvalidInput(f"There is no fusion {str(self.fusion)[:20]!r}. Known: {', '.join(METHODS)}.")
        for name in ("adaptive", "enable_caching", "enable_reranking"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(f"{name} must be True or False.")
        for name in ("cache_ttl", "embedding_timeout", "rerank_timeout"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
                raise InvalidInput(f"{name} must be a number of seconds above 0.")
        if isinstance(self.hops, bool) or self.hops not in {1, 2}:
            raise InvalidInput("hops must be 1 or 2.")
        if isinstance(self.cache_size, bool) or not isinstance(self.cache_size, int) or self.cache_size < 1:
            raise InvalidInput("cache_size must be a whole number of at least 1.")

    def score_fusion(self) -> HybridScoreFusion:
        """The fusion of scores with these weights."""
        return HybridScoreFusion(self.bm25_weight, self.vector_weight, self.normalization)

    def changed(self, changes: Mapping[str, Any]) -> EngineConfig:
        """A copy with the changed values. Raises `InvalidInput` for an unknown name or an invalid value."""
        names = [field.name for field in fields(self)]
        for name in changes:
            if name not in names:
                raise InvalidInput(f"The engine has no setting {str(name)[:40]!r}. Known: {', '.join(names)}.")
        return replace(self, **changes)


class TimeLimits:
    """The limits of one search; `seconds` is the time limit of the caller, None for none.

    Limits of the configuration are multiplied by PIPELINE_TIMEOUT_MULTIPLIER and never exceed the caller's time.
    """

    def __init__(self, config: EngineConfig, seconds: float | None) -> None:
        self.seconds = seconds
        self._config = config
        self._end = math.inf if seconds is None else time.monotonic() + seconds
        self._multiplier = timeout_multiplier()

    @property
    def embedding(self) -> float:
        """Seconds for the vector of the query."""
        return min(self._config.embedding_timeout * self._multiplier, self._remaining())

    @property
    def lexical(self) -> float | None:
        """Seconds for the lexical retriever; None for no limit."""
        return self._share_of_remaining(LEXICAL_SHARE)

    @property
    def vector(self) -> float | None:
        """Seconds for the vector retriever, the vector of the query included; None for no limit."""
        return self._share_of_remaining(VECTOR_SHARE)

    @property
    def mentions(self) -> float | None:
        """Seconds for mentioned documents; None for no limit."""
        return self._share_of_remaining(MENTIONS_SHARE)

    @property
    def citations(self) -> float:
        """Seconds for the provisions that the best passages cite."""
        limit = CITATIONS_SECONDS * self._multiplier
        mentions = self.mentions
        return limit if mentions is None else min(limit, mentions)

    @property
    def reranking(self) -> float:
        """Seconds for the reranker."""
        return min(self._config.rerank_timeout * self._multiplier, self._remaining())

    def _remaining(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def _share_of_remaining(self, share: float) -> float | None:
        return None if math.isinf(self._end) else share * self._remaining()
