"""BM25 against a second implementation, and term statistics that add up."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.core.ranking.bm25 import K1, B, LexicalQuery, LexicalStatistics, bm25_weight, idf

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
        score += weight * tf * (K1 + 1) / (tf + K1 * (1 - B + B * len(passage) / average))
    return score


def test_bm25_equals_an_independent_implementation() -> None:
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
    assert bm25_weight(2, 10, 10) == pytest.approx(2 * (K1 + 1) / (2 + K1))
    assert bm25_weight(0, 10, 10) == 0.0


def test_a_rarer_term_weighs_more_and_no_weight_is_negative() -> None:
    values = [idf(df, 1_000) for df in range(1_001)]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) == len(values)
    assert values[-1] > 0


@settings(max_examples=60)
@given(st.integers(1, 1_000), st.integers(0, 5_000), st.floats(1, 1_000))
def test_more_occurrences_weigh_more_and_a_longer_passage_less(frequency: int, more: int, mean: float) -> None:
    length = frequency + more
    weight = bm25_weight(frequency, length, mean)
    assert 0 < weight < K1 + 1
    assert bm25_weight(frequency + 1, length, mean) > weight > bm25_weight(frequency, length + 1, mean)


def test_document_frequency_of_known_unknown_and_deleted_terms() -> None:
    statistics = LexicalStatistics(np.array([3, 7, 9]), np.array([2, -1, 5]), 6)
    assert [statistics.document_frequency(term) for term in (0, 3, 7, 8, 9, 10)] == [0, 2, 0, 0, 5, 0]
    assert LexicalStatistics().document_frequency(3) == 0


@settings(max_examples=80)
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


def test_a_segment_of_deletions_subtracts_its_terms() -> None:
    there = _statistics([[1, 2], [2, 3]])
    gone = LexicalStatistics(np.array([1, 2]), np.array([-1, -1]), -1, {"en": (-1, -2)})
    left = LexicalStatistics.merged([there, gone])
    assert _same(left, LexicalStatistics(np.array([2, 3]), np.array([1, 1]), 1, {"en": (1, 2)}))


def test_merging_no_statistics_gives_empty_statistics() -> None:
    assert _same(LexicalStatistics.merged([]), LexicalStatistics())


@settings(max_examples=100)
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
