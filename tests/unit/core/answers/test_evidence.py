"""Each signal against passages in which it can be counted by hand."""

from __future__ import annotations

import random
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.core.answers.evidence import SIGNALS, signals
from dtrag.core.documents import SearchResult
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.text.analysis import term_id, terms

WORDS = "kettle boiler valve ticket harbour lantern winter garden 기숙사 장학금 1984".split()
SENTENCES = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)


def statistics_of(*texts: str) -> LexicalStatistics:
    counts = Counter(term for text in texts for term in set(map(term_id, terms(text))))
    ids = sorted(counts)
    return LexicalStatistics(np.array(ids, np.int64), np.array([counts[i] for i in ids], np.int64), len(texts))


def passage(
    text: str, score: float = 0.0, title: str = "", breadcrumb: tuple[str, ...] = (), cosine: float = 0.0
) -> SearchResult:
    return SearchResult("c", text, title=title, breadcrumb=breadcrumb, bm25_score=score, vector_score=cosine)


STATISTICS = statistics_of("kettle boiler valve", "kettle ticket", "kettle harbour lantern", "winter", "garden")


def test_scores_are_compared_with_the_following_ones() -> None:
    found = signals("kettle", [passage("kettle", 0.9), passage("kettle", 0.45)], STATISTICS)
    assert found["lexical"] == 0.9
    assert found["lead"] == pytest.approx(0.9 - 0.45 / 9)
    assert found["drop"] == 1.0
    even = signals("kettle", [passage("kettle", 0.5)] * 10, STATISTICS)
    assert (even["lead"], even["drop"]) == (0.0, 0.0)


def test_coverage_is_the_share_by_idf_of_the_best_passage_with_title_and_headings() -> None:
    rare, common = np.log(1 + 4.5 / 1.5), np.log(1 + 2.5 / 3.5)
    found = signals("kettle valve", [passage("kettle"), passage("a valve", 0.4)], STATISTICS)
    assert found["coverage"] == pytest.approx(rare / (rare + common))
    headed = signals("kettle valve", [passage("nothing", title="Kettle", breadcrumb=("The valves",))], STATISTICS)
    assert headed["coverage"] == pytest.approx(1.0)
    sixth = signals("kettle valve", [*[passage("x")] * 5, passage("kettle valve")], STATISTICS)
    assert sixth["coverage"] == 0.0


def test_phrase_counts_neighbours_and_sentence_tells_one_from_the_next() -> None:
    together = signals("kettle valve", [passage("The kettle valve leaks. Winter came.")], STATISTICS)
    apart = signals("kettle valve", [passage("A kettle was sold in the old harbour. The valve leaks.")], STATISTICS)
    assert (together["phrase"], apart["phrase"]) == (1.0, 0.0)
    assert together["sentence"] == pytest.approx(1.0)
    assert 0.0 < apart["sentence"] < 1.0
    twice = signals("kettle valve", [passage("The kettle valve leaks. A kettle valve drips.")], STATISTICS)
    assert twice["sentence"] == 0.0


def test_numbers_and_names_of_the_question_are_looked_for_in_the_best_passage() -> None:
    best = passage("In 1984 the Harbour Board met.", 0.9, title="Minutes")
    assert signals("What did the Harbour Board do in 1984?", [best], STATISTICS)["numbers"] == 0.0
    assert signals("What did the Harbour Board do in 1985?", [best], STATISTICS)["numbers"] == 1.0
    assert signals("What did the Harbour Board do?", [best], STATISTICS)["names"] == 0.0
    assert signals("What did the Lantern Board do?", [best], STATISTICS)["names"] == 0.5
    assert signals("What did it do?", [best], STATISTICS)["names"] == 0.0


def test_kind_tells_whether_a_requested_number_occurs() -> None:
    with_number, without = passage("The kettle holds 3 litres."), passage("The kettle is old.")
    assert signals("How much does the kettle hold?", [with_number], STATISTICS)["kind"] == 1.0
    assert signals("How much does the kettle hold?", [without], STATISTICS)["kind"] == -1.0
    assert signals("What is the kettle?", [with_number], STATISTICS)["kind"] == 0.0
    assert signals("기숙사는 몇 명을 뽑나요?", [passage("기숙사는 3명을 뽑는다.")], STATISTICS)["kind"] == 1.0


def test_vector_signals_are_set_when_there_are_vectors() -> None:
    none = signals("kettle", [passage("kettle", 0.9)], STATISTICS)
    assert (none["cosine"], none["together"]) == (0.0, 0.0)
    some = signals("kettle", [passage("kettle", 0.9, cosine=0.7), passage("x", 0.0, cosine=0.3)], STATISTICS)
    assert some["cosine"] == 0.7
    assert some["together"] == pytest.approx(0.8 - 0.15 / 9)


@pytest.mark.parametrize("question", ["", "???", "the of and", "휴학"])
def test_without_passages_no_signal_is_set(question: str) -> None:
    assert set(signals(question, [], LexicalStatistics()).values()) == {0.0}


@settings(max_examples=150)
@given(SENTENCES, st.lists(st.tuples(SENTENCES, st.floats(0, 1), st.floats(-1, 1)), max_size=12))
def test_signals_keep_their_ranges(question: str, passages: list[tuple[str, float, float]]) -> None:
    found = signals(f"When {question}?", [passage(t, s, cosine=c) for t, s, c in passages], STATISTICS)
    assert list(found) == list(SIGNALS)
    for name, value in found.items():
        assert (-1.0 if name == "kind" else 0.0) <= value <= 1.0 + 1e-9, name


@settings(max_examples=60)
@given(st.lists(st.tuples(SENTENCES, st.floats(0, 1)), min_size=2, max_size=5), st.randoms())
def test_the_order_of_passages_does_not_matter(rows: list[tuple[str, float]], chance: random.Random) -> None:
    shuffled = rows[:]
    chance.shuffle(shuffled)
    distinct = len({score for _, score in rows}) == len(rows)
    names = set(SIGNALS) - (set() if distinct else {"numbers", "names"})
    question = "kettle valve winter 1984"
    one = signals(question, [passage(*row) for row in rows], STATISTICS)
    other = signals(question, [passage(*row) for row in shuffled], STATISTICS)
    assert {name: one[name] for name in names} == pytest.approx({name: other[name] for name in names})


def test_ten_passages_take_a_few_milliseconds() -> None:
    chance = random.Random(3)
    texts = [" ".join(" ".join(chance.choices(WORDS, k=12)) + "." for _ in range(12)) for _ in range(10)]
    found = [passage(text, 0.5) for text in texts]
    statistics = statistics_of(*texts)
    taken = []
    for _ in range(20):
        started = time.perf_counter()
        signals("What is the kettle of the winter garden in 1984?", found, statistics)
        taken.append(time.perf_counter() - started)
    assert min(taken) < 0.02
