"""Measures of retrieval over one query: a ranking of ids against graded judgements (id -> relevance, 0 = none)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


def recall_at(k: int, ranking: Sequence[str], judgements: Mapping[str, int]) -> float:
    """Share of the relevant ids among the first k; 0.0 without relevant ids."""
    relevant = {key for key, grade in judgements.items() if grade > 0}
    return len(relevant.intersection(ranking[:k])) / len(relevant) if relevant else 0.0


def precision_at(k: int, ranking: Sequence[str], judgements: Mapping[str, int]) -> float:
    """Share of relevant ids among the first k ranks; missing ranks count as misses."""
    return sum(1 for key in ranking[:k] if judgements.get(key, 0) > 0) / k


def ndcg_at(k: int, ranking: Sequence[str], judgements: Mapping[str, int]) -> float:
    """Normalised discounted cumulative gain with linear gain. Järvelin & Kekäläinen 2002, as trec_eval computes it."""
    gain = sum(max(0, judgements.get(key, 0)) / math.log2(place + 2) for place, key in enumerate(ranking[:k]))
    grades = sorted((grade for grade in judgements.values() if grade > 0), reverse=True)[:k]
    ideal = sum(grade / math.log2(place + 2) for place, grade in enumerate(grades))
    return gain / ideal if ideal else 0.0


DIVERSITY_DEPTH = 10


def diversity_ratio(document_ids: Sequence[str]) -> float:
    """Share of distinct documents among those of the first ten results; 0.0 without results."""
    first = document_ids[:DIVERSITY_DEPTH]
    return len(set(first)) / len(first) if first else 0.0


def mrr_at(k: int, ranking: Sequence[str], judgements: Mapping[str, int]) -> float:
    """Reciprocal rank of the first relevant id among the first k, else 0.0."""
    for place, key in enumerate(ranking[:k]):
        if judgements.get(key, 0) > 0:
            return 1.0 / (place + 1)
    return 0.0


def complete_at(k: int, ranking: Sequence[str], judgements: Mapping[str, int]) -> float:
    """1.0 when all relevant ids are among the first k, else 0.0: for questions that need several passages."""
    return float({key for key, grade in judgements.items() if grade > 0} <= set(ranking[:k]))


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0..1) of the values lie, linearly interpolated; nan for none."""
    if not values:
        return math.nan
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)
