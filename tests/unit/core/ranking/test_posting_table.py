"""The arrays of a file give the postings of the pages, and bounds that no impact exceeds."""

from __future__ import annotations

import random
import uuid

import numpy as np
import pytest

from dtrag.core.ranking.maxscore import Postings, damped_lengths, stretch
from dtrag.core.ranking.posting_table import PostingTable
from dtrag.core.ranking.segments import build
from tests.rounds import seeds
from tests.unit.core.ranking.test_maxscore import collection


@pytest.mark.parametrize("seed", seeds(4))
def test_a_table_is_the_postings_in_parts_of_any_size(seed: int) -> None:
    chance = random.Random(seed)
    segment, run = build(uuid.uuid4(), collection(chance, chance.choice((1, 20, 300)), 40))
    table = PostingTable.empty(segment)
    for left, right in PostingTable.parts(segment, chance.choice((1, 7, 1_000))):
        table.take(segment, (left, right), run[segment.offsets[left] : segment.offsets[right]])
    terms = np.arange(-1, 42, dtype=np.int32)
    kinds = set()
    for term, postings in zip(terms.tolist(), table.lists(segment, terms), strict=True):
        start, end = segment.span(term)
        assert (postings is None) == (start == end)
        if postings is None:
            continue
        expected = Postings.of(run[start:end], len(segment))
        assert postings.count == expected.count and (postings.frequencies == expected.frequencies).all()
        assert (postings.chunks is None) == (expected.chunks is None)
        assert postings.chunks is None or (expected.chunks is not None and (postings.chunks == expected.chunks).all())
        kinds.add(postings.chunks is None)
        for means in (table.means, {"en": chance.uniform(1, 40), "ko": chance.uniform(1, 40)}, {"ko": 3.0}):
            damped = damped_lengths(segment, means)
            assert expected.bound(damped) <= postings.bound(damped) * stretch(table.means, means) * 1.000001
        assert postings.bound(damped) == expected.bound(damped_lengths(segment, table.means))
    assert len(segment) < 300 or kinds == {True, False}


def test_the_table_of_a_segment_without_passages_has_no_postings() -> None:
    segment, _ = build(uuid.uuid4(), [])
    table = PostingTable.empty(segment)
    assert not list(PostingTable.parts(segment, 5)) and table.lists(segment, np.array([1, 2], np.int32)) == [None, None]
