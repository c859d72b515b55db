"""Normalised scores, their weighted sum, and reciprocal ranks: by hand, and for every list there may be."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dtrag.core.ranking.fusion import (
    METHODS,
    NORMALIZATIONS,
    HybridScoreFusion,
    ScoreNormalizer,
    fuse,
    reciprocal_rank_fusion,
    shares,
)
from dtrag.errors import InvalidInput

SCORES = st.lists(st.floats(-1e6, 1e6), max_size=12)
ANY = st.floats() | st.sampled_from([math.inf, -math.inf, math.nan, 1e308, -1e308, 5e-324])
WILD = st.lists(ANY, max_size=12)
NORMALIZERS: dict[str, Callable[[Sequence[float]], list[float]]] = {
    "min-max": ScoreNormalizer.min_max_normalize,
    "z-score": ScoreNormalizer.z_score_normalize,
    "reciprocal rank": ScoreNormalizer.reciprocal_rank_normalize,
}
SIDE = st.none() | st.dictionaries(st.sampled_from("abcdefg"), ANY | st.floats(0, 50), max_size=7)


def test_search_004_scenario_a_min_max() -> None:
    scores = [0.5, 1.2, 0.8, 2.0, 0.3]
    normalized = ScoreNormalizer.min_max_normalize(scores)
    assert normalized == pytest.approx([0.2 / 1.7, 0.9 / 1.7, 0.5 / 1.7, 1.0, 0.0])
    assert (min(normalized), max(normalized)) == (0.0, 1.0)


def test_search_004_scenario_b_z_score() -> None:
    normalized = ScoreNormalizer.z_score_normalize([10.0, 15.0, 20.0, 25.0, 30.0])
    assert normalized == pytest.approx([-math.sqrt(2), -math.sqrt(0.5), 0.0, math.sqrt(0.5), math.sqrt(2)])


def test_search_004_scenario_c_reciprocal_rank() -> None:
    normalized = ScoreNormalizer.reciprocal_rank_normalize([2.5, 1.8, 3.2, 0.5])
    assert normalized == pytest.approx([1 / 61, 1 / 62, 1 / 60, 1 / 63])
    assert ScoreNormalizer.reciprocal_rank_normalize([1.0], k=9) == pytest.approx([1 / 9])


@pytest.mark.parametrize("name", NORMALIZERS)
def test_search_004_no_scores_give_no_scores(name: str) -> None:
    assert NORMALIZERS[name]([]) == []


@pytest.mark.parametrize("scores", [[3.0], [0.0], [-2.5, -2.5, -2.5], [1e308] * 2, [0.1] * 3])
def test_search_004_equal_scores(scores: list[float]) -> None:
    assert ScoreNormalizer.min_max_normalize(scores) == [1.0] * len(scores)
    assert ScoreNormalizer.z_score_normalize(scores) == [0.0] * len(scores)


def test_search_004_scores_that_are_not_finite() -> None:
    assert ScoreNormalizer.min_max_normalize([1.0, math.nan, 3.0, math.inf, -math.inf]) == [0.0, 0.0, 1.0, 1.0, 0.0]
    assert ScoreNormalizer.min_max_normalize([math.nan, math.inf]) == [0.0, 1.0]
    assert ScoreNormalizer.min_max_normalize([2.0, math.nan]) == [1.0, 0.0]
    for score, expected in ((math.nan, 0.0), (-math.inf, 0.0), (math.inf, 1.0)):
        assert ScoreNormalizer.min_max_normalize([score]) == [expected]
    assert ScoreNormalizer.z_score_normalize([1.0, math.nan, 3.0]) == pytest.approx([-(0.5**0.5), -(0.5**0.5), 2**0.5])
    ranks = ScoreNormalizer.reciprocal_rank_normalize([math.nan, 2.0, 1.0])
    assert ranks == pytest.approx([1 / 61, 1 / 60, 1 / 62])


def test_search_004_a_spread_beyond_floats() -> None:
    assert ScoreNormalizer.min_max_normalize([-1e308, 0.0, 1e308]) == [0.0, 0.5, 1.0]


@settings(max_examples=100)
@given(WILD)
def test_search_004_normalised_scores_are_finite_and_as_many(scores: list[float]) -> None:
    for normalize in NORMALIZERS.values():
        normalized = normalize(scores)
        assert len(normalized) == len(scores)
        assert all(map(math.isfinite, normalized))
    assert all(0.0 <= value <= 1.0 for value in ScoreNormalizer.min_max_normalize(scores))
    assert all(0.0 < value <= 1 / 60 for value in ScoreNormalizer.reciprocal_rank_normalize(scores))


@pytest.mark.parametrize("name", NORMALIZERS)
@settings(max_examples=60)
@given(scores=SCORES)
def test_search_004_order_is_kept(name: str, scores: list[float]) -> None:
    normalized = NORMALIZERS[name](scores)
    for i, one in enumerate(scores):
        for j, other in enumerate(scores):
            assert not one > other or normalized[i] >= normalized[j]


def test_fusion_by_hand() -> None:
    fused = fuse({"a": 4.0, "b": 2.0, "c": 0.0}, {"b": 0.9, "d": 0.5}, lexical_weight=0.5, vector_weight=0.5)
    assert fused == pytest.approx({"a": 0.5, "b": 0.75, "c": 0.0, "d": 0.0})


def test_fusion_brings_the_weights_to_one() -> None:
    sides = ({"a": 4.0, "b": 2.0}, {"b": 0.9, "a": 0.5})
    assert fuse(*sides, lexical_weight=6, vector_weight=2) == pytest.approx({"a": 0.75, "b": 0.25})


@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.0, 1.0), (1.0, 0.0)])
def test_without_one_retriever_the_other_decides(weights: tuple[float, float]) -> None:
    one = {"a": 4.0, "b": 2.0, "c": 3.0}
    expected = {"a": 1.0, "b": 0.0, "c": 0.5}
    assert fuse(one, None, lexical_weight=weights[0], vector_weight=weights[1]) == expected
    assert fuse(None, one, lexical_weight=weights[0], vector_weight=weights[1]) == expected
    assert fuse(None, None, lexical_weight=weights[0], vector_weight=weights[1]) == {}


def test_a_retriever_without_results_counts_nothing_and_keeps_its_weight() -> None:
    assert fuse({"a": 4.0, "b": 2.0}, {}, lexical_weight=0.7, vector_weight=0.3) == pytest.approx({"a": 0.7, "b": 0.0})


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@settings(max_examples=40)
@given(SIDE, SIDE, st.floats(0, 5), st.floats(0, 5), st.randoms(use_true_random=False))
def test_fusion_does_not_depend_on_the_order_and_lies_in_0_1(  # noqa: PLR0917 - hypothesis fills them
    method: str,
    normalization: str,
    lexical: dict[str, float] | None,
    vector: dict[str, float] | None,
    one: float,
    other: float,
    dice: random.Random,
) -> None:
    assume(one + other > 0.01)
    shuffled = [
        None if side is None else dict(dice.sample(list(side.items()), len(side))) for side in (lexical, vector)
    ]
    how: dict[str, Any] = {"normalization": normalization, "method": method}
    fused = fuse(lexical, vector, lexical_weight=one, vector_weight=other, **how)
    assert fused == fuse(*shuffled, lexical_weight=one, vector_weight=other, **how)
    assert set(fused) == set(lexical or ()) | set(vector or ())
    assert all(0.0 <= score <= 1.0 + 1e-12 for score in fused.values())
    mirrored = fuse(vector, lexical, lexical_weight=other, vector_weight=one, **how)
    assert fused == pytest.approx(mirrored)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_candidates_that_a_retriever_misses_rank_below_those_that_it_returned(normalization: str) -> None:
    fused = fuse({"a": 0.8, "b": 0.4}, {"c": 0.1}, lexical_weight=1, vector_weight=0, normalization=normalization)
    assert fused["a"] > fused["b"] >= fused["c"] >= 0.0


def test_reciprocal_rank_fusion_by_hand() -> None:
    fused = reciprocal_rank_fusion({"a": 9.0, "b": 5.0}, {"b": 0.3, "c": 0.2})
    assert fused == pytest.approx({"a": 1 / 61, "b": 1 / 62 + 1 / 61, "c": 1 / 62})
    assert reciprocal_rank_fusion({"b": 1.0, "a": 1.0}, k=1) == pytest.approx({"a": 1 / 2, "b": 1 / 3})
    assert reciprocal_rank_fusion({"a": 1.0}, {"b": 1.0}, weights=[3, 1]) == pytest.approx({"a": 3 / 61, "b": 1 / 61})


def test_by_ranks_the_first_of_both_lists_has_1_and_only_the_order_counts() -> None:
    close, far = {"a": 1.01, "b": 1.0}, {"a": 900.0, "b": 0.0}
    for lexical in (close, far):
        fused = fuse(lexical, {"a": 0.9, "b": 0.8}, lexical_weight=1, vector_weight=1, method="rrf")
        assert fused == pytest.approx({"a": 1.0, "b": 61 / 62})


def test_search_005_scores_that_are_normalised_are_only_weighed() -> None:
    """D13."""
    fusion = HybridScoreFusion(0.5, 0.5, "min_max")
    assert fusion.fuse_scores([0.8, 0.6, 0.4], [0.7, 0.9, 0.5]) == pytest.approx([0.75, 0.75, 0.45])
    assert fusion.fuse_scores([], []) == []
    with pytest.raises(InvalidInput, match="2 lexical and 1 vector"):
        fusion.fuse_scores([0.1, 0.2], [0.1])


@settings(max_examples=100)
@given(st.lists(st.tuples(ANY, ANY), max_size=8), st.floats(0, 9), st.floats(0.1, 9))
def test_search_005_hybrid_scores_lie_in_0_1(pairs: list[tuple[float, float]], one: float, other: float) -> None:
    fusion = HybridScoreFusion(one, other)
    assert fusion.bm25_weight + fusion.vector_weight == pytest.approx(1.0)
    fused = fusion.fuse_scores([lexical for lexical, _ in pairs], [vector for _, vector in pairs])
    assert all(0.0 <= score <= 1.0 + 1e-12 for score in fused)


def test_z_scores_are_weighed_as_they_are() -> None:
    assert HybridScoreFusion(1, 1, "z_score").fuse_scores([-2.0, math.nan], [1.0, 4.0]) == [-0.5, 2.0]


@pytest.mark.parametrize(
    "weights", [(0, 0), (-1, 2), (2, -1), (math.nan, 1), (math.inf, 1), (True, 1), ("1", 1), (None, 1)]
)
def test_invalid_weights_are_refused(weights: tuple[Any, Any]) -> None:
    with pytest.raises(InvalidInput, match="weights"):
        shares(*weights)
    with pytest.raises(InvalidInput, match="weights"):
        HybridScoreFusion(*weights)


@pytest.mark.parametrize("name", ["", "minmax", None, 5])
def test_an_unknown_normalization_is_refused_with_the_known_names(name: Any) -> None:
    with pytest.raises(InvalidInput, match="min_max, z_score, reciprocal_rank"):
        HybridScoreFusion(normalization=name)


@pytest.mark.parametrize(
    ("like", "weights", "expected"),
    [
        ({"length": 1, "exact_terms": True, "semantic_complexity": 0.0}, (0.5, 0.5), (0.7, 0.3)),
        ({"length": 4, "exact_terms": True, "semantic_complexity": 0.0}, (0.5, 0.5), (0.5, 0.5)),
        ({"length": 3, "exact_terms": (), "semantic_complexity": 0.7}, (0.5, 0.5), (0.5, 0.5)),
        ({"length": 9, "exact_terms": (), "semantic_complexity": 0.71}, (0.5, 0.5), (0.3, 0.7)),
        ({"length": 1, "exact_terms": ("X1",), "semantic_complexity": 0.9}, (0.7, 0.3), (0.8, 0.2)),
        ({"length": 1, "exact_terms": ("X1",), "semantic_complexity": 0.0}, (0.9, 0.1), (0.9, 0.1)),
        ({"length": 9, "exact_terms": (), "semantic_complexity": 1.0}, (0.05, 0.95), (0.05, 0.95)),
    ],
)
def test_search_006_a_query_moves_the_weights_by_a_fifth_and_up_to_four_fifths(
    like: Mapping[str, Any], weights: tuple[float, float], expected: tuple[float, float]
) -> None:
    adapted = HybridScoreFusion(*weights).adapted(like)
    assert (adapted.bm25_weight, adapted.vector_weight) == pytest.approx(expected)
    fused = HybridScoreFusion(*weights).adaptive_fusion([1.0, 0.0], [0.0, 1.0], like)
    assert fused == pytest.approx(list(expected))
