"""Measures of retrieval against values worked out by hand, and against shorter formulas."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.core.metrics.ranking import mrr_at, ndcg_at, percentile, precision_at, recall_at

RANKING = ["d", "a", "x", "b", "y"]
JUDGED = {"a": 2, "b": 1, "c": 1, "x": 0, "y": -1}


def test_recall_by_hand() -> None:
    assert [recall_at(k, RANKING, JUDGED) for k in (1, 2, 4, 50)] == pytest.approx([0, 1 / 3, 2 / 3, 2 / 3])
    assert recall_at(5, RANKING, {"x": 0}) == 0.0
    assert recall_at(5, [], JUDGED) == 0.0


def test_precision_by_hand() -> None:
    assert [precision_at(k, RANKING, JUDGED) for k in (1, 2, 4, 5)] == pytest.approx([0, 1 / 2, 1 / 2, 2 / 5])
    assert precision_at(5, ["a"], JUDGED) == pytest.approx(1 / 5)


def test_ndcg_by_hand() -> None:
    gain = 2 / math.log2(3) + 1 / math.log2(5)
    ideal = 2 / 1 + 1 / math.log2(3) + 1 / 2
    assert ndcg_at(10, RANKING, JUDGED) == pytest.approx(gain / ideal)
    assert ndcg_at(2, RANKING, JUDGED) == pytest.approx((2 / math.log2(3)) / (2 + 1 / math.log2(3)))
    assert ndcg_at(10, RANKING, {}) == 0.0


def test_reciprocal_rank_by_hand() -> None:
    assert [mrr_at(k, RANKING, JUDGED) for k in (1, 2, 10)] == [0.0, 0.5, 0.5]
    assert mrr_at(10, ["x", "y"], JUDGED) == 0.0


@settings(max_examples=80)
@given(
    st.permutations(list("abcdefgh")),
    st.dictionaries(st.sampled_from("abcdefghij"), st.integers(0, 3)),
    st.integers(1, 12),
)
def test_measures_lie_in_0_1_and_the_ideal_ranking_reaches_1(
    ranking: list[str], judged: dict[str, int], k: int
) -> None:
    for measure in (recall_at, precision_at, ndcg_at, mrr_at):
        assert 0.0 <= measure(k, ranking, judged) <= 1.0 + 1e-12
    ideal = sorted(judged, key=lambda key: -judged[key])
    relevant = any(judged.values())
    assert ndcg_at(k, ideal, judged) == pytest.approx(float(relevant))
    assert mrr_at(k, ideal, judged) == float(relevant)
    hits = [1 if judged.get(key, 0) else 0 for key in ranking[:k]]
    assert precision_at(k, ranking, judged) == pytest.approx(sum(hits) / k)


def test_percentile_by_hand() -> None:
    assert percentile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.5
    assert percentile([10.0, 20.0], 0.95) == pytest.approx(19.5)
    assert percentile([7.0], 0.95) == 7.0
    assert math.isnan(percentile([], 0.5))


@settings(max_examples=60)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_percentile_is_the_median_and_the_extremes(values: list[float]) -> None:
    assert percentile(values, 0.5) == pytest.approx(statistics.median(values))
    assert (percentile(values, 0.0), percentile(values, 1.0)) == (min(values), max(values))
