"""The arrays of a table are the postings of the passages it was made from, with bounds that no impact exceeds."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from dtrag.core.ranking import posting_table
from dtrag.core.ranking.maxscore import DENSE_SHARE, damped_lengths, impacts, stretch
from dtrag.core.ranking.posting_table import PassageTerms, PostingTable
from dtrag.core.ranking.segments import ForwardRow, build, merged
from tests.rounds import seeds
from tests.unit.core.ranking.test_maxscore import collection, table_of, terms_of


def postings(rows: Sequence[ForwardRow], term: int) -> dict[int, int]:
    """Number of the passage -> occurrences, of the passages that contain the term."""
    pairs = [dict(zip(row.terms.tolist(), row.frequencies.tolist(), strict=True)) for row in rows]
    return {number: held[term] for number, held in enumerate(pairs) if term in held}


@pytest.mark.parametrize("seed", seeds(4))
def test_a_table_is_the_postings_of_passages_in_parts_of_any_size(seed: int) -> None:
    chance = random.Random(seed)
    rows = collection(chance, chance.choice((1, 20, 300)), 40)
    segment = build(uuid.uuid4(), rows)
    gone = {number for number in range(len(rows)) if chance.random() < chance.choice((0.0, 0.3))}
    table = PostingTable.empty(segment)
    numbers = [number for number in range(len(rows)) if number not in gone]
    step = chance.choice((1, 7, 1_000))
    for start in range(0, len(numbers), step):
        table.take(segment, terms_of(rows, numbers[start : start + step]))
    terms = np.arange(-1, 42, dtype=np.int32)
    kinds = set()
    whole, shortened = table.without_absent(segment)
    assert whole.term_ids.tolist() == [term for term in range(42) if postings(rows, term).keys() - gone]
    for head, made in ((segment, table), (whole, shortened)):
        for term, listed in zip(terms.tolist(), made.lists(head, terms), strict=True):
            expected = {number: count for number, count in postings(rows, term).items() if number not in gone}
            if listed is None:
                assert not expected
                continue
            assert listed.count == len(expected)
            dense = len(postings(rows, term)) > DENSE_SHARE * len(segment)
            assert (listed.chunks is None) == dense
            chunks = listed.frequencies.nonzero()[0] if listed.chunks is None else listed.chunks
            frequencies = listed.frequencies[listed.frequencies > 0]
            assert dict(zip(chunks.tolist(), frequencies.tolist(), strict=True)) == expected
            assert (np.diff(chunks) > 0).all()
            kinds.add(dense)
            for means in (table.means, {"en": chance.uniform(1, 40), "ko": chance.uniform(1, 40)}, {"ko": 3.0}):
                highest = impacts(frequencies, damped_lengths(segment, means)[chunks]).max()
                assert highest <= listed.highest * stretch(table.means, means) * 1.000001
                assert means is not table.means or highest == listed.highest
    assert len(segment) < 300 or kinds == {True, False}


@pytest.mark.parametrize("seed", seeds(8))
def test_tables_are_joined_to_the_table_of_all_passages(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(posting_table, "PART_POSTINGS", chance.choice((1, 50, 10_000)))
    parts = [collection(chance, chance.choice((1, 40, 300)), 40) for _ in range(chance.randint(1, 4))]
    tables = [table_of(rows) for rows in parts]
    whole, expected = table_of([row for rows in parts for row in rows])
    head = merged(uuid.uuid4(), [segment for segment, _ in tables], [np.empty(0, np.intp)] * len(parts))
    joined, first = PostingTable.empty(head), 0
    for rows, (segment, table) in zip(parts, tables, strict=True):
        if chance.random() < 0.7:
            joined.append(head, segment, table, first)
        else:
            passages = terms_of(rows, range(len(rows)))
            joined.take(head, replace(passages, numbers=passages.numbers + np.int32(first)))
        first += len(rows)
    assert head.term_ids.tolist() == whole.term_ids.tolist()
    assert head.frequencies.tolist() == whole.frequencies.tolist() and joined.means == expected.means
    for name in ("starts", "counts", "chunks", "frequencies", "dense", "highest"):
        assert getattr(joined, name).tobytes() == getattr(expected, name).tobytes(), name


def test_terms_above_16_bits_are_in_order() -> None:
    chance = random.Random(1)
    held = [np.array(sorted(chance.sample(range(1_000_000_000), 50)), np.int32) for _ in range(30)]
    rows = [ForwardRow(uuid.UUID(int=n), 0, 1, "en", 9, held[n], np.ones(50, np.uint8)) for n in range(30)]
    segment, table = table_of(rows)
    assert (table.counts == segment.frequencies).all()
    for row, terms in enumerate(held):
        for listed in table.lists(segment, terms):
            assert listed is not None and listed.chunks is not None and row in listed.chunks.tolist()


def test_the_table_of_a_segment_without_passages_has_no_postings() -> None:
    segment, table = table_of([])
    assert table.lists(segment, np.array([1, 2], np.int32)) == [None, None]


@pytest.mark.parametrize("terms", [[3], [1, 1], [2]], ids=["unknown", "too many", "between"])
def test_passages_that_the_segment_does_not_count_are_refused(terms: list[int]) -> None:
    rows = [ForwardRow(uuid.UUID(int=1), 0, 1, "en", 1, np.array([1, 4], np.int32), np.ones(2, np.uint8))]
    table, segment = PostingTable.empty(build(uuid.uuid4(), rows)), build(uuid.uuid4(), rows)
    wrong = PassageTerms(
        np.zeros(len(terms), np.int32),
        np.ones(len(terms), np.int32),
        np.array(terms, np.int32),
        np.ones(len(terms), np.uint8),
    )
    with pytest.raises(ValueError, match="does not count"):
        table.take(segment, wrong)
    with pytest.raises(ValueError, match="other numbers"):
        table.take(segment, replace(wrong, frequencies=np.ones(9, np.uint8)))
