"""A confidence lies in [0, 1], grows with each of its signals, and decides by its thresholds."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.core.confidence import ABSTAIN_BELOW, REVIEW_BELOW, confidence_of, signals
from dtrag.core.documents import SearchResult
from dtrag.core.scoring import LexicalStatistics
from dtrag.core.text import term_id, terms

WORDS = "kettle boiler valve ticket harbour lantern winter garden".split()
SENTENCES = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
SHARES = st.floats(0, 1)
ORDER = {"abstain": 0, "review": 1, "answer": 2}


def _statistics(*texts: str) -> LexicalStatistics:
    counts = Counter(term for text in texts for term in set(map(term_id, terms(text))))
    ids = sorted(counts)
    return LexicalStatistics(np.array(ids, np.int64), np.array([counts[i] for i in ids], np.int64), len(texts))


STATISTICS = _statistics("kettle boiler valve", "kettle ticket", "kettle harbour lantern", "winter", "garden")


def _passage(text: str, score: float = 0.0, title: str = "", breadcrumb: tuple[str, ...] = ()) -> SearchResult:
    return SearchResult("c", text, title=title, breadcrumb=breadcrumb, bm25_score=score)


def test_without_passages_there_is_nothing_to_say() -> None:
    confidence = confidence_of("kettle valve", [], STATISTICS)
    assert (confidence.value, confidence.decision) == (0.0, "abstain")


def test_coverage_is_the_share_by_idf_of_the_best_passage() -> None:
    passages = [_passage("kettle"), _passage("a valve", 0.4)]
    found = signals("kettle valve", passages, STATISTICS)
    rare, common = np.log(1 + 4.5 / 1.5), np.log(1 + 2.5 / 3.5)
    assert found == pytest.approx({"lexical": 0.4, "coverage": rare / (rare + common)})


def test_title_and_headings_count_as_covered_and_only_five_passages_are_read() -> None:
    whole = _passage("nothing", title="Kettle", breadcrumb=("The valves",))
    assert signals("kettle valve", [whole], STATISTICS)["coverage"] == pytest.approx(1.0)
    assert signals("kettle valve", [_passage("x")] * 5 + [whole], STATISTICS)["coverage"] == 0.0


def test_a_question_without_words_covers_nothing() -> None:
    assert signals("???", [_passage("kettle")], STATISTICS) == {"lexical": 0.0, "coverage": 0.0}
    assert confidence_of("???", [_passage("kettle")], LexicalStatistics()).decision == "abstain"


def test_full_evidence_answers_little_evidence_is_weak_none_abstains() -> None:
    answer = confidence_of("kettle valve", [_passage("The kettle has a valve.", 0.8)], STATISTICS)
    weak = confidence_of("kettle valve", [_passage("A kettle.", 0.4)], STATISTICS)
    nothing = confidence_of("kettle valve", [_passage("garden")], STATISTICS)
    assert [answer.decision, weak.decision, nothing.decision] == ["answer", "review", "abstain"]
    assert "100%" in answer.reason
    assert "Weak evidence" in weak.reason
    assert "Too little evidence" in nothing.reason


@settings(max_examples=100, deadline=None)
@given(SENTENCES, SENTENCES, SHARES, SHARES, st.sampled_from(WORDS))
def test_confidence_lies_in_0_1_and_grows_with_both_signals(
    question: str, text: str, one: float, other: float, word: str
) -> None:
    low, high = sorted((one, other))
    base = confidence_of(question, [_passage(text, low)], STATISTICS)
    scored = confidence_of(question, [_passage(text, high)], STATISTICS)
    covered = confidence_of(question, [_passage(f"{text} {word}", low)], STATISTICS)
    for more in (scored, covered):
        assert 0.0 <= base.value <= more.value <= 1.0
        assert ORDER[base.decision] <= ORDER[more.decision]


@settings(max_examples=60, deadline=None)
@given(SENTENCES, SENTENCES, SHARES)
def test_the_decision_follows_from_the_value(question: str, text: str, score: float) -> None:
    confidence = confidence_of(question, [_passage(text, score)], STATISTICS)
    slack = 0.0005  # the value is rounded for people, the decision is not
    if confidence.decision == "abstain":
        assert confidence.value <= ABSTAIN_BELOW + slack
    elif confidence.decision == "review":
        assert ABSTAIN_BELOW - slack <= confidence.value <= REVIEW_BELOW + slack
    else:
        assert confidence.value >= REVIEW_BELOW - slack
