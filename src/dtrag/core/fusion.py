"""Bringing two ranked lists onto one scale and into one order: normalisation and fusion, each citing its source."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np


class ScoreNormalizer:
    """Brings the scores of one list onto a common scale.

    Order is kept; +inf counts as the highest finite score of the list, -inf and nan as the lowest.
    """

    @staticmethod
    def min_max_normalize(scores: Sequence[float]) -> list[float]:
        """(s - min) / (max - min), in [0, 1]; all equal: 1.0 each."""
        values = _finite(scores)
        if not values:
            return []
        low, high = min(values), max(values)
        spread = high - low
        if spread <= 0.0 or not math.isfinite(spread):
            return [1.0 if value == high else 0.0 for value in values] if spread else [1.0] * len(values)
        return [(value - low) / spread for value in values]

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
    def reciprocal_rank_normalize(scores: Sequence[float], k: int = 60) -> list[float]:
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


def fuse(
    lexical: Mapping[str, float], vector: Mapping[str, float], *, lexical_weight: float, vector_weight: float
) -> dict[str, float]:
    """Hybrid score per id: weighted sum of the min-max normalised scores; an id missing on one side counts 0 there.

    Fox & Shaw 1994 (CombSUM), weighted. The weights are brought to sum 1; with one list empty the other decides.
    """
    if not vector:
        lexical_weight, vector_weight = 1.0, 0.0
    elif not lexical:
        lexical_weight, vector_weight = 0.0, 1.0
    total = lexical_weight + vector_weight
    fused: dict[str, float] = {}
    for scores, weight in ((lexical, lexical_weight / total), (vector, vector_weight / total)):
        for key, score in zip(scores, ScoreNormalizer.min_max_normalize(list(scores.values())), strict=True):
            fused[key] = fused.get(key, 0.0) + weight * score
    return fused
