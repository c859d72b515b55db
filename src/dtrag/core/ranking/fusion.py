"""Normalisation of scores and fusion of two ranked lists."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from dtrag.errors import InvalidInput

RANK_CONSTANT = 60
"""Of reciprocal ranks: the k that Cormack, Clarke & Büttcher 2009 found good on every collection they tried."""
ADAPTED = 0.2
MOST_ADAPTED = 0.8
"""Weight that `adapted` moves to one side, and the most that a side gets (AC-006)."""


class ScoreNormalizer:
    """Normalises the scores of one list.

    Order is kept; +inf counts as the highest finite score of the list, -inf and nan as the lowest.
    """

    @staticmethod
    def min_max_normalize(scores: Sequence[float]) -> list[float]:
        """(s - min) / (max - min), in [0, 1]; all equal: 1.0 each. What is not a number, and -inf, is 0.0."""
        finite = [score for score in scores if math.isfinite(score)]
        low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
        spread = high - low
        if spread == math.inf:  # halves of what floats can hold are apart by what they can hold
            return ScoreNormalizer.min_max_normalize([score / 2 for score in scores])
        normalized = []
        for score in scores:
            if math.isfinite(score):
                normalized.append((score - low) / spread if spread > 0.0 else 1.0)
            else:
                normalized.append(1.0 if score > 0 else 0.0)
        return normalized

    @staticmethod
    def z_score_normalize(scores: Sequence[float]) -> list[float]:
        """(s - mean) / standard deviation; all equal: 0.0 each."""
        values = _finite(scores)
        if not values:
            return []
        largest = max(abs(value) for value in values) or 1.0
        array = np.asarray(values) / largest
        deviation = float(array.std())
        if deviation < 1e-12:
            return [0.0] * len(values)
        return [float(value) for value in (array - array.mean()) / deviation]

    @staticmethod
    def reciprocal_rank_normalize(scores: Sequence[float], k: int = RANK_CONSTANT) -> list[float]:
        """1 / (k + rank), rank from 0 for the highest score; equal scores keep their order. Cormack et al. 2009."""
        values = _finite(scores)
        normalized = [0.0] * len(values)
        for rank, position in enumerate(sorted(range(len(values)), key=lambda i: -values[i])):
            normalized[position] = 1.0 / (k + rank)
        return normalized


def _finite(scores: Sequence[float]) -> list[float]:
    finite = [score for score in scores if math.isfinite(score)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    return [score if math.isfinite(score) else (high if score > 0 else low) for score in scores]


NORMALIZATIONS: dict[str, Callable[[Sequence[float]], list[float]]] = {
    "min_max": ScoreNormalizer.min_max_normalize,
    "z_score": ScoreNormalizer.z_score_normalize,
    "reciprocal_rank": ScoreNormalizer.reciprocal_rank_normalize,
    "absolute": lambda scores: [score if 0.0 < score < 1.0 else _part(score, bounded=True) for score in scores],
}
"""`absolute` keeps the scores, which are shares of the highest possible score and comparable across queries. It ranks
best, at any depth: +.009 over min-max in the mean of five English sets
(bench/README.md)."""
METHODS = ("weighted", "rrf")


def shares(bm25_weight: float, vector_weight: float) -> tuple[float, float]:
    """The two weights, scaled to sum 1. Raises `InvalidInput` when both are 0."""
    for weight in (bm25_weight, vector_weight):
        if isinstance(weight, bool) or not isinstance(weight, (int, float)):
            raise InvalidInput("The weights must be numbers.")
    total = bm25_weight + vector_weight
    if not (bm25_weight >= 0 and vector_weight >= 0 and 0 < total < math.inf):
        raise InvalidInput("The weights must be at least 0, and one of them above 0.")
    share = bm25_weight / total
    return share, 1.0 - share


@dataclass(frozen=True)
class HybridScoreFusion:
    """Fusion with the given weights, scaled to sum 1. Raises `InvalidInput`."""

    bm25_weight: float = 0.5
    vector_weight: float = 0.5
    normalization: str = "min_max"

    def __post_init__(self) -> None:
        lexical, vector = shares(self.bm25_weight, self.vector_weight)
        object.__setattr__(self, "bm25_weight", lexical)
        object.__setattr__(self, "vector_weight", vector)
        if self.normalization not in NORMALIZATIONS:
            raise InvalidInput(
                f"There is no normalization {str(self.normalization)[:20]!r}. Known: {', '.join(NORMALIZATIONS)}."
            )

    def fuse_scores(self, bm25_scores: Sequence[float], vector_scores: Sequence[float]) -> list[float]:
        """Weighted sum, item by item, of scores that are normalised already (D13).

        Scores are clipped to [0, 1], and nan counts as 0; z-scores are not clipped.
        """
        if len(bm25_scores) != len(vector_scores):
            raise InvalidInput(
                f"{len(bm25_scores)} lexical and {len(vector_scores)} vector scores: give one of each for every item."
            )
        bounded = self.normalization != "z_score"
        return [
            self.bm25_weight * _part(lexical, bounded) + self.vector_weight * _part(vector, bounded)
            for lexical, vector in zip(bm25_scores, vector_scores, strict=True)
        ]

    def adaptive_fusion(
        self, bm25_scores: Sequence[float], vector_scores: Sequence[float], query_characteristics: Mapping[str, Any]
    ) -> list[float]:
        """As `fuse_scores`, with the weights of `adapted`."""
        return self.adapted(query_characteristics).fuse_scores(bm25_scores, vector_scores)

    def adapted(self, query_characteristics: Mapping[str, Any]) -> HybridScoreFusion:
        """The fusion for a query: a short one with an exact term moves .2 to BM25, a complex one to the vectors.

        That gives a side at most .8; a higher weight is kept.
        """
        if query_characteristics["length"] <= 3 and query_characteristics["exact_terms"]:
            lexical = max(self.bm25_weight, min(MOST_ADAPTED, self.bm25_weight + ADAPTED))
            return HybridScoreFusion(lexical, 1.0 - lexical, self.normalization)
        if query_characteristics["semantic_complexity"] > 0.7:
            vector = max(self.vector_weight, min(MOST_ADAPTED, self.vector_weight + ADAPTED))
            return HybridScoreFusion(1.0 - vector, vector, self.normalization)
        return self

    def fuse(
        self, lexical: Mapping[str, float] | None, vector: Mapping[str, float] | None, method: str = "weighted"
    ) -> dict[str, float]:
        """As the function `fuse`, with these weights and this normalisation."""
        return fuse(
            lexical,
            vector,
            lexical_weight=self.bm25_weight,
            vector_weight=self.vector_weight,
            normalization=self.normalization,
            method=method,
        )


def _part(score: float, bounded: bool) -> float:
    if math.isnan(score):
        return 0.0
    return min(1.0, max(0.0, score)) if bounded else score


def fuse(
    lexical: Mapping[str, float] | None,
    vector: Mapping[str, float] | None,
    *,
    lexical_weight: float,
    vector_weight: float,
    normalization: str = "min_max",
    method: str = "weighted",
) -> dict[str, float]:
    """Hybrid score in [0, 1] per id, from the scores of each side; the order of the mappings does not matter.

    `weighted`: the weighted sum of the normalised scores (CombSUM, Fox & Shaw 1994); `rrf`: reciprocal-rank fusion,
    scaled so that the first of both lists has 1. An id that is missing on one side has 0 there; with `absolute` and
    `z_score` it has the score of the last of the list, which is an upper bound. A side that is None was not available:
    the other has all the weight.
    """
    sides = ((lexical, lexical_weight), (vector, vector_weight))
    available = [(scores, weight) for scores, weight in sides if scores is not None]
    total = sum(weight for _, weight in available) if len(available) > 1 else 0.0
    weights = [weight / total for _, weight in available] if total else [1.0] * len(available)
    if method == "rrf":
        summed = reciprocal_rank_fusion(*(scores for scores, _ in available), weights=weights)
        return {key: score * (RANK_CONSTANT + 1) for key, score in summed.items()}
    fused = dict.fromkeys(chain.from_iterable(scores for scores, _ in available), 0.0)
    for (scores, _), weight in zip(available, weights, strict=True):
        scaled = _on_one_scale(scores, normalization)
        missing = min(scaled.values(), default=0.0) if normalization in {"absolute", "z_score"} else 0.0
        scaled_score = scaled.get
        fused = {key: score + weight * scaled_score(key, missing) for key, score in fused.items()}
    if normalization == "z_score":
        # Squashed as a whole: squashing each side first costs .01 nDCG@10.
        return {key: 1.0 / (1.0 + math.exp(-score)) for key, score in fused.items()}
    return fused


def reciprocal_rank_fusion(
    *rankings: Mapping[str, float], k: int = RANK_CONSTANT, weights: Sequence[float] | None = None
) -> dict[str, float]:
    """Sum over the lists of weight / (k + rank), rank from 1, per id; an id that is missing in a list gets 0 from it.

    Cormack, Clarke & Büttcher 2009, *Reciprocal rank fusion outperforms Condorcet and individual rank learning
    methods*. Equal scores rank in the order of their ids, so that the order of a list does not matter.
    """
    fused: dict[str, float] = {}
    for ranking, weight in zip(rankings, weights or [1.0] * len(rankings), strict=True):
        for rank, key in enumerate(_ranked(ranking), start=1):
            fused[key] = fused.get(key, 0.0) + weight / (k + rank)
    return fused


def _ranked(scores: Mapping[str, float]) -> list[str]:
    """The ids by falling score, ties by id; nan comes last."""
    return sorted(scores, key=lambda key: (math.inf if math.isnan(scores[key]) else -scores[key], key))


def _on_one_scale(scores: Mapping[str, float], normalization: str) -> dict[str, float]:
    """Id -> score in [0, 1]; ordered first where the result depends on the order."""
    ordered = scores if normalization in {"absolute", "min_max"} else _ranked(scores)
    normalized = NORMALIZATIONS[normalization]([scores[key] for key in ordered])
    return dict(zip(ordered, normalized, strict=True))
