"""The bounds never change a result: what is found is what summing over every passage finds."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dtrag.core.ranking import maxscore as scoring
from dtrag.core.ranking.bm25 import bm25_weight
from dtrag.core.ranking.maxscore import Postings, best, damped_lengths, stretch
from dtrag.core.ranking.posting_table import PassageTerms, PostingTable
from dtrag.core.ranking.segments import FREQUENCY_UNIT, ForwardRow, Segment, build, merged, quantised

MEANS = {"en": 7.0, "ko": 12.0}


def collection(chance: random.Random, size: int, vocabulary: int) -> list[ForwardRow]:
    """Passages in documents of up to three; the lower a term, the more passages hold it."""
    rows: list[ForwardRow] = []
    while len(rows) < size:
        document = uuid.UUID(int=chance.getrandbits(128))
        for _ in range(chance.randint(1, 3)):
            held = sorted({int(vocabulary * chance.random() ** 3) for _ in range(chance.randint(0, 9))})
            counts = np.array([chance.choice((1.0, 1.0, 2.0, 5.5)) for _ in held], np.float32)
            length = max(1, round(float(counts.sum())) + chance.randint(0, 20))
            terms = np.array(held, np.int32)
            rows.append(ForwardRow(document, 0, 1, chance.choice(("en", "ko")), length, terms, quantised(counts)))
    return rows


def terms_of(rows: Sequence[ForwardRow], numbers: Sequence[int]) -> PassageTerms:
    """The terms of the passages with these numbers."""
    chosen = [rows[number] for number in numbers]
    return PassageTerms(
        np.array(numbers, np.int32),
        np.array([len(row.terms) for row in chosen], np.int32),
        np.concatenate([np.empty(0, np.int32), *(row.terms for row in chosen)]),
        np.concatenate([np.empty(0, np.uint8), *(row.frequencies for row in chosen)]),
    )


def table_of(rows: Sequence[ForwardRow]) -> tuple[Segment, PostingTable]:
    segment = build(uuid.uuid4(), rows)
    table = PostingTable.empty(segment)
    table.take(segment, terms_of(rows, range(len(rows))))
    return segment, table


def lists(segment: Segment, table: PostingTable, weights: dict[int, float]) -> list[tuple[float, Postings]]:
    ranked = sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))
    found = table.lists(segment, np.array([term for term, _ in ranked], np.int32))
    return [(weight, listed) for (_, weight), listed in zip(ranked, found, strict=True) if listed is not None]


def brute(rows: list[ForwardRow], weights: dict[int, float]) -> list[float]:
    scores = []
    for row in rows:
        there = dict(zip(row.terms.tolist(), row.frequencies.tolist(), strict=True))
        scores.append(
            sum(
                weight * bm25_weight(there[term] * FREQUENCY_UNIT, row.length, MEANS[row.language])
                for term, weight in weights.items()
                if term in there
            )
        )
    return scores


@given(
    seed=st.integers(0, 10_000),
    weights=st.dictionaries(st.integers(0, 40), st.sampled_from([0.25, 0.5, 1.0, 3.0]), min_size=1, max_size=8),
    wanted=st.integers(1, 30),
    share=st.sampled_from([1.0, 0.5, 0.05]),
)
@settings(max_examples=150)
def test_the_best_passages_equal_brute_force(seed: int, weights: dict[int, float], wanted: int, share: float) -> None:
    chance = random.Random(seed)
    rows = collection(chance, chance.choice((1, 20, 300)), 40)
    segment, table = table_of(rows)
    seen = np.array([chance.random() < share for _ in rows])

    def visible(numbers: NDArray[np.intp]) -> NDArray[np.bool_]:
        return seen[numbers]

    damped, growth = damped_lengths(segment, MEANS), stretch(table.means, MEANS)
    found = best(lists(segment, table, weights), damped, wanted, visible, stretch=growth)
    expected = [score for score, there in zip(brute(rows, weights), seen, strict=True) if there and score]
    assert len(found.numbers) >= min(wanted, len(expected))
    assert sorted(found.scores, reverse=True)[:wanted] == pytest.approx(sorted(expected, reverse=True)[:wanted])
    assert all(seen[found.numbers])
    everyone = brute(rows, weights)
    for number, score in zip(found.numbers, found.scores, strict=True):
        assert score == pytest.approx(everyone[number])


def test_common_terms_are_only_looked_up_when_rare_terms_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """The common word's postings are never added to all passages, and its share is in the scores nevertheless."""
    rows = [
        ForwardRow(
            uuid.UUID(int=number),
            0,
            1,
            "en",
            7,
            np.array([1, 2] if number < 20 else [1], np.int32),
            quantised(np.ones(2 if number < 20 else 1, np.float32)),
        )
        for number in range(2_000)
    ]
    segment, table = table_of(rows)
    added: list[int] = []
    looked: list[int] = []
    add: Callable[..., None] = Postings.add
    at: Callable[..., NDArray[np.float32]] = Postings.at

    def adding(self: Postings, *rest: object) -> None:
        added.append(self.count)
        add(self, *rest)

    def looking(self: Postings, numbers: NDArray[np.int32], damped: NDArray[np.float32]) -> NDArray[np.float32]:
        looked.append(len(numbers))
        return at(self, numbers, damped)

    monkeypatch.setattr(Postings, "add", adding)
    monkeypatch.setattr(Postings, "at", looking)
    found = best(
        lists(segment, table, {2: 5.0, 1: 0.1}), damped_lengths(segment, MEANS), 10, stretch=stretch(table.means, MEANS)
    )
    assert added == [20]
    assert looked == [20]
    assert set(found.numbers.tolist()) == set(range(20))
    assert found.scores == pytest.approx(5.1 * bm25_weight(1, 7, 7.0))


def test_all_ties_with_the_last_result_are_returned() -> None:
    rows = [
        ForwardRow(uuid.UUID(int=n), 0, 1, "en", 5, np.array([3], np.int32), quantised(np.ones(1, np.float32)))
        for n in range(30)
    ]
    segment, table = table_of(rows)
    found = best(
        lists(segment, table, {3: 1.0}), damped_lengths(segment, MEANS), 4, stretch=stretch(table.means, MEANS)
    )
    assert len(found.numbers) == 30


@given(seed=st.integers(0, 10_000))
@settings(max_examples=60)
def test_a_merge_equals_the_segment_of_the_remaining_documents(seed: int) -> None:
    """Several segments without some documents equal one segment of the rest; before its table, but for frequencies."""
    chance = random.Random(seed)
    parts = [collection(chance, chance.choice((0, 3, 40)), 25) for _ in range(chance.randint(1, 4))]
    heads = [build(uuid.UUID(int=number), rows) for number, rows in enumerate(parts)]
    known = [(row.document_id, head.segment_id) for head, rows in zip(heads, parts, strict=True) for row in rows]
    gone = set(chance.sample(known, len(known) // 3))
    left = [
        row
        for head, rows in zip(heads, parts, strict=True)
        for row in rows
        if (row.document_id, head.segment_id) not in gone
    ]
    expected = build(uuid.UUID(int=99), left)
    counted = merged(uuid.UUID(int=99), heads, [head.rows_of(gone) for head in heads])
    for term in range(25):
        before = sum(head.statistics().document_frequency(term) for head in heads)
        assert counted.statistics().document_frequency(term) == before
    table = PostingTable.empty(counted)
    table.take(counted, terms_of(left, range(len(left))))
    head, table = table.without_absent(counted)
    assert head.term_ids.tolist() == expected.term_ids.tolist()
    assert head.frequencies.tolist() == expected.frequencies.tolist() == table.counts.tolist()
    assert head.chunks["length"].tolist() == expected.chunks["length"].tolist()
    assert [head.languages[n] for n in head.chunks["language"]] == [row.language for row in left]
    assert head.documents["document_id"].tolist() == expected.documents["document_id"].tolist()


def test_common_terms_take_one_byte_per_passage() -> None:
    assert scoring.DENSE_SHARE * 5 <= 1
