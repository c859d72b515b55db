"""Similarity as the acceptance texts compute it; the index is exact after every change, and cached until the next."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from dtrag.core.cases.case import Case, CaseQuery, QuestionVector, SimilarityMethod
from dtrag.core.cases.index import CaseEntry, CaseIndex, cosine, similarity, with_words
from dtrag.errors import InvalidInput
from tests.builders import case
from tests.contract.test_case_stores import brute_force, random_case, random_query


def entry(stored: Case) -> CaseEntry:
    return CaseEntry(
        stored.case_id,
        stored.query,
        stored.query_hash,
        stored.category_path,
        stored.node_id,
        stored.quality_score,
        stored.usage_count,
        stored.status == "active",
        stored.vector,
    )


def test_it_equals_comparing_every_case_through_many_changes() -> None:
    random_source, index = random.Random(7), CaseIndex(vectors=True)
    cases: dict[str, Case] = {}
    for step in range(6_000):
        changed = random_case(random_source, random_source.randrange(800))
        if random_source.random() < 0.2:
            cases.pop(changed.case_id, None)
            index.remove(changed.case_id)
        else:
            cases[changed.case_id] = changed
            index.put(entry(changed))
        if step % 60 == 0:
            query = random_query(random_source)
            assert index.nearest(query, None, query.limit) == brute_force(list(cases.values()), query)
    assert len(index) == len(cases)


def test_ids_that_begin_alike_are_ordered_by_the_rest() -> None:
    index = CaseIndex()
    for number in (30, 4, 200, 1):
        index.put(entry(case(f"a long common beginning {number:04}", "same")))
    nearest = index.nearest(CaseQuery(text="same", limit=2), None, 2)
    assert [case_id[-4:] for case_id, _ in nearest] == ["0001", "0004"]


def test_only_nodes_in_scope() -> None:
    index = CaseIndex()
    for name, node in (("a", 1), ("b", 2), ("c", None)):
        index.put(entry(case(name, "same", node_id=node)))
    query = CaseQuery(text="same", limit=9)
    assert index.nearest(query, frozenset({2, 3}), 9) == [("b", 1.0)]
    assert index.nearest(query, frozenset(), 9) == []
    assert CaseIndex().nearest(query, None, 9) == []


def test_results_are_cached_until_a_change_or_their_time_is_over() -> None:
    now = [0.0]
    index = CaseIndex(cache_seconds=10, clock=lambda: now[0])
    index.put(entry(case("a", "same")))
    query = CaseQuery(text="same", limit=1)
    first = index.nearest(query, None, 1)
    assert index.nearest(query, None, 1) is first
    now[0] = 10.0
    again = index.nearest(query, None, 1)
    assert (again, again is first) == (first, False)
    index.put(entry(case("a", "other words")))
    assert index.nearest(query, None, 1) == [("a", 0.0)]


def vector(values: Sequence[float]) -> QuestionVector:
    return QuestionVector("toy", np.array(values, np.float32).tobytes())


@pytest.mark.parametrize("method", [SimilarityMethod.COSINE, SimilarityMethod.JACCARD])
def test_words_in_common(method: SimilarityMethod) -> None:
    assert similarity("Machine learning algorithms", "deep learning", method) == 1 / 4
    assert similarity("휴가는 며칠", "며칠 휴가는", method) == 1.0
    assert similarity("", " ", method) == 0.0
    assert similarity("a", "", method) == 0.0


def test_distance_of_word_counts() -> None:
    assert similarity("pay pay day", "pay day", SimilarityMethod.EUCLIDEAN) == 0.5
    assert similarity("a b", "c", SimilarityMethod.EUCLIDEAN) == 1 / (1 + math.sqrt(3))
    assert similarity("a b", "b A", SimilarityMethod.EUCLIDEAN) == 1.0


def test_meanings_are_compared_by_their_vectors() -> None:
    one, other, opposite, none = map(vector, ([3, 0], [1, 1], [-1, 0], [0, 0]))
    assert cosine(one, other) == pytest.approx(math.sqrt(0.5), abs=1e-6)
    assert cosine(one, opposite) == 0.0
    assert cosine(one, None) == cosine(one, vector([3])) == cosine(none, one) == 0.0
    assert cosine(one, replace(one, space="another model")) == 0.0
    assert (with_words(1.0, 0.5), with_words(None, 0.5)) == (0.95, 0.5)
    with pytest.raises(InvalidInput, match="vectors"):
        similarity("a", "b", SimilarityMethod.SEMANTIC)
