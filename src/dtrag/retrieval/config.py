"""The configuration of a search engine: every value with its valid range, validated as a whole."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypedDict

from dtrag.core.ranking.fusion import METHODS, HybridScoreFusion, shares
from dtrag.errors import InvalidInput


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
