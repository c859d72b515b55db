"""BM25 against a second implementation, term statistics that add up, normalised scores and their fusion."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dtrag.core.scoring import (
    ALL_TERMS_BELOW,
    K1,
    LexicalQuery,
    LexicalStatistics,
    ScoreNormalizer,
    bm25_weight,
    bm25_weights,
    fuse,
    idf,
    reweigh,
)

SCORES = st.lists(st.floats(-1e6, 1e6), max_size=12)
WILD = st.lists(st.floats() | st.sampled_from([math.inf, -math.inf, math.nan, 1e308, -1e308, 5e-324]), max_size=12)
NORMALIZERS: dict[str, Callable[[Sequence[float]], list[float]]] = {
    "min-max": ScoreNormalizer.min_max_normalize,
    "z-score": ScoreNormalizer.z_score_normalize,
    "reciprocal rank": ScoreNormalizer.reciprocal_rank_normalize,
}

Passage = list[int]
PASSAGES = st.lists(st.lists(st.integers(0, 12), max_size=10), max_size=8)


def _statistics(passages: Sequence[Passage], language: str = "en") -> LexicalStatistics:
    frequencies = Counter(term for passage in passages for term in set(passage))
    ids = sorted(frequencies)
    return LexicalStatistics(
        np.array(ids, np.int64),
        np.array([frequencies[term] for term in ids], np.int64),
        len(passages),
        {language: (len(passages), sum(map(len, passages)))} if passages else {},
    )


def _same(one: LexicalStatistics, other: LexicalStatistics) -> bool:
    return (
        one.term_ids.tolist() == other.term_ids.tolist()
        and one.frequencies.tolist() == other.frequencies.tolist()
        and one.chunks == other.chunks
        and dict(one.lengths) == dict(other.lengths)
    )


def _score(query: LexicalQuery, passage: Passage, mean: float) -> float:
    counts = Counter(passage)
    return sum(
        weight * bm25_weight(counts[term], len(passage), mean) for term, weight in query.weights.items() if counts[term]
    )


def _okapi(query: Passage, passage: Passage, corpus: Sequence[Passage]) -> float:
    """BM25 as the paper writes it, counting everything from the passages."""
    average = sum(len(other) for other in corpus) / len(corpus)
    score = 0.0
    for term in query:
        df = sum(1 for other in corpus if term in other)
        tf = passage.count(term)
        weight = math.log((len(corpus) - df + 0.5) / (df + 0.5) + 1)
        score += weight * tf * (1.2 + 1) / (tf + 1.2 * (1 - 0.75 + 0.75 * len(passage) / average))
    return score


def test_bm25_is_that_of_an_independent_implementation() -> None:
    dice = random.Random(7)
    corpus = [[dice.randrange(30) for _ in range(dice.randrange(1, 40))] for _ in range(60)]
    statistics = _statistics(corpus)
    mean = sum(map(len, corpus)) / len(corpus)
    for _ in range(20):
        words = [dice.randrange(35) for _ in range(dice.randrange(1, 6))]
        query = LexicalQuery.of([(word, 1.0) for word in words], statistics)
        for passage in corpus:
            assert _score(query, passage, mean) == pytest.approx(_okapi(words, passage, corpus), abs=1e-9)


def test_bm25_by_hand() -> None:
    assert idf(1, 3) == pytest.approx(math.log(8 / 3))
    assert bm25_weight(2, 10, 10) == pytest.approx(2 * 2.2 / 3.2)
    assert bm25_weight(0, 10, 10) == 0.0


def test_a_rarer_term_weighs_more_and_none_weighs_less_than_nothing() -> None:
    values = [idf(df, 1_000) for df in range(1_001)]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) == len(values)
    assert values[-1] > 0


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 1_000), st.integers(0, 5_000), st.floats(1, 1_000))
def test_more_occurrences_weigh_more_and_a_longer_passage_less(frequency: int, more: int, mean: float) -> None:
    length = frequency + more
    weight = bm25_weight(frequency, length, mean)
    assert 0 < weight < K1 + 1
    assert bm25_weight(frequency + 1, length, mean) > weight > bm25_weight(frequency, length + 1, mean)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(1, 200), min_size=1, max_size=8), st.integers(0, 2_000), st.floats(5, 800), st.floats(5, 800)
)
def test_reweighing_equals_weighing_anew(counts: list[int], rest: int, old: float, new: float) -> None:
    frequencies = np.array(counts, np.float32)
    length = sum(counts) + rest
    moved = reweigh(bm25_weights(frequencies, length, old), length, old, new)
    np.testing.assert_allclose(moved, bm25_weights(frequencies, length, new), rtol=1e-4)
    np.testing.assert_allclose(moved, [bm25_weight(count, length, new) for count in counts], rtol=1e-4)


def test_document_frequency_of_known_unknown_and_deleted_terms() -> None:
    statistics = LexicalStatistics(np.array([3, 7, 9]), np.array([2, -1, 5]), 6)
    assert [statistics.document_frequency(term) for term in (0, 3, 7, 8, 9, 10)] == [0, 2, 0, 0, 5, 0]
    assert LexicalStatistics().document_frequency(3) == 0


@settings(max_examples=80, deadline=None)
@given(PASSAGES, PASSAGES, PASSAGES)
def test_merged_statistics_are_those_of_the_union_in_any_grouping(
    a: list[Passage], b: list[Passage], c: list[Passage]
) -> None:
    parts = [_statistics(a), _statistics(b, "ko"), _statistics(c)]
    whole = LexicalStatistics.merged(parts)
    counted = _statistics([*a, *b, *c])
    assert whole.term_ids.tolist() == counted.term_ids.tolist()
    assert whole.frequencies.tolist() == counted.frequencies.tolist()
    assert whole.chunks == len(a) + len(b) + len(c)
    assert sum(count for count, _ in whole.lengths.values()) == whole.chunks
    assert whole.lengths.get("en", (0, 0))[1] == sum(map(len, a + c))
    assert _same(whole, LexicalStatistics.merged(parts[::-1]))
    left = LexicalStatistics.merged([LexicalStatistics.merged(parts[:2]), parts[2]])
    right = LexicalStatistics.merged([parts[0], LexicalStatistics.merged(parts[1:])])
    assert _same(whole, left)
    assert _same(whole, right)


def test_a_segment_of_deletions_takes_its_terms_away() -> None:
    there = _statistics([[1, 2], [2, 3]])
    gone = LexicalStatistics(np.array([1, 2]), np.array([-1, -1]), -1, {"en": (-1, -2)})
    left = LexicalStatistics.merged([there, gone])
    assert _same(left, LexicalStatistics(np.array([2, 3]), np.array([1, 1]), 1, {"en": (1, 2)}))


def test_nothing_merged_is_nothing() -> None:
    assert _same(LexicalStatistics.merged([]), LexicalStatistics())


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=10), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 15), st.sampled_from([0.25, 1.0])), min_size=1, max_size=6),
)
def test_no_passage_scores_more_than_the_ceiling(corpus: list[Passage], asked: list[tuple[int, float]]) -> None:
    query = LexicalQuery.of(asked, _statistics(corpus))
    mean = sum(map(len, corpus)) / len(corpus)
    assert set(query.weights) == set(query.frequencies) == {t for t, _ in asked} & {t for p in corpus for t in p}
    for passage in [*corpus, [term for term, _ in asked] * 500]:
        assert 0 <= _score(query, passage, mean) <= query.ceiling


def test_an_unknown_term_raises_the_ceiling_and_nothing_else() -> None:
    statistics = _statistics([[1], [2]])
    known = LexicalQuery.of([(1, 1.0)], statistics)
    more = LexicalQuery.of([(1, 1.0), (99, 1.0)], statistics)
    assert more.weights == known.weights
    assert more.ceiling > known.ceiling
    assert LexicalQuery.of([(5, 1.0)], LexicalStatistics()).weights == {}


def test_every_term_generates_candidates_in_a_small_collection() -> None:
    query = LexicalQuery({3: 1.0, 1: 1.0}, {3: 20_000, 1: 5}, 9.0)
    assert query.candidates(ALL_TERMS_BELOW) == [1, 3]


def test_rarer_terms_generate_candidates_in_a_large_collection_and_all_where_none_is_rare() -> None:
    chunks = 100_000
    assert LexicalQuery({3: 1.0, 1: 1.0, 2: 1.0}, {3: 10_001, 1: 10_000, 2: 7}, 9.0).candidates(chunks) == [1, 2]
    assert LexicalQuery({3: 1.0, 1: 1.0}, {3: 60_000, 1: 90_000}, 9.0).candidates(chunks) == [1, 3]
    assert LexicalQuery({}, {}, 0.0).candidates(chunks) == []


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
    assert ScoreNormalizer.z_score_normalize([1.0, math.nan, 3.0]) == pytest.approx([-(0.5**0.5), -(0.5**0.5), 2**0.5])
    ranks = ScoreNormalizer.reciprocal_rank_normalize([math.nan, 2.0, 1.0])
    assert ranks == pytest.approx([1 / 61, 1 / 60, 1 / 62])


def test_search_004_a_spread_beyond_floats() -> None:
    assert ScoreNormalizer.min_max_normalize([-1e308, 0.0, 1e308]) == [0.0, 0.0, 1.0]


@settings(max_examples=100, deadline=None)
@given(WILD)
def test_search_004_normalised_scores_are_finite_and_as_many(scores: list[float]) -> None:
    for normalize in NORMALIZERS.values():
        normalized = normalize(scores)
        assert len(normalized) == len(scores)
        assert all(map(math.isfinite, normalized))
    assert all(0.0 <= value <= 1.0 for value in ScoreNormalizer.min_max_normalize(scores))
    assert all(0.0 < value <= 1 / 60 for value in ScoreNormalizer.reciprocal_rank_normalize(scores))


@pytest.mark.parametrize("name", NORMALIZERS)
@settings(max_examples=60, deadline=None)
@given(scores=SCORES)
def test_search_004_order_is_kept(name: str, scores: list[float]) -> None:
    normalized = NORMALIZERS[name](scores)
    for i, one in enumerate(scores):
        for j, other in enumerate(scores):
            assert not one > other or normalized[i] >= normalized[j]


LIST = st.dictionaries(st.sampled_from("abcdefg"), st.floats(0, 50), max_size=7)


def test_fusion_by_hand() -> None:
    fused = fuse({"a": 4.0, "b": 2.0, "c": 0.0}, {"b": 0.9, "d": 0.5}, lexical_weight=0.5, vector_weight=0.5)
    assert fused == pytest.approx({"a": 0.5, "b": 0.75, "c": 0.0, "d": 0.0})


def test_fusion_brings_the_weights_to_one() -> None:
    sides = ({"a": 4.0, "b": 2.0}, {"b": 0.9, "a": 0.5})
    assert fuse(*sides, lexical_weight=6, vector_weight=2) == pytest.approx({"a": 0.75, "b": 0.25})


@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.0, 1.0), (1.0, 0.0)])
def test_with_one_side_empty_the_other_decides(weights: tuple[float, float]) -> None:
    one = {"a": 4.0, "b": 2.0, "c": 3.0}
    expected = {"a": 1.0, "b": 0.0, "c": 0.5}
    assert fuse(one, {}, lexical_weight=weights[0], vector_weight=weights[1]) == expected
    assert fuse({}, one, lexical_weight=weights[0], vector_weight=weights[1]) == expected
    assert fuse({}, {}, lexical_weight=weights[0], vector_weight=weights[1]) == {}


@settings(max_examples=100, deadline=None)
@given(LIST, LIST, st.floats(0, 5), st.floats(0, 5), st.randoms(use_true_random=False))
def test_fusion_does_not_depend_on_the_order_and_lies_in_0_1(
    lexical: dict[str, float], vector: dict[str, float], one: float, other: float, dice: random.Random
) -> None:
    assume(one + other > 0.01)
    shuffled = [dict(dice.sample(list(side.items()), len(side))) for side in (lexical, vector)]
    fused = fuse(lexical, vector, lexical_weight=one, vector_weight=other)
    assert fused == fuse(*shuffled, lexical_weight=one, vector_weight=other)
    assert set(fused) == set(lexical) | set(vector)
    assert all(0.0 <= score <= 1.0 + 1e-12 for score in fused.values())
    mirrored = fuse(vector, lexical, lexical_weight=other, vector_weight=one)
    assert fused == pytest.approx(mirrored)
