"""The signals of sentences: what each says, their ranges, and the weights that are shipped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.answers.sentence_signals import (
    NAMES,
    OF_VECTORS,
    Candidate,
    QuestionTerms,
    model_name,
    probabilities,
    sentence_signals,
    weights,
    weights_of,
)
from dtrag.core.documents import SearchResult
from dtrag.core.ranking.bm25 import LexicalStatistics
from dtrag.core.text.analysis import term_id
from dtrag.core.text.sentences import analysed_sentences

STATISTICS = LexicalStatistics(chunks=100)
WORDS = st.sampled_from(
    ["valve", "boiler", "closes", "nine", "1952", "휴학", "기간은", "2년", "이내", "He", "Ada Bell"]
)


def _candidates(passages: Sequence[SearchResult]) -> list[Candidate]:
    return [
        Candidate(number, one.start, one.end, one.text, one.terms, one.start)
        for number, passage in enumerate(passages)
        for one in analysed_sentences(passage.text)
    ]


def _values(question: str, *texts: str, title: str = "") -> list[dict[str, float]]:
    """The signals of each sentence of one passage."""
    passages = [SearchResult("c", " ".join(texts), title=title, bm25_score=0.5)]
    rows = sentence_signals(QuestionTerms(question, STATISTICS), passages, _candidates(passages))
    assert len(rows) == len(texts)
    return [dict(zip(NAMES, map(float, row), strict=True)) for row in rows]


@pytest.mark.parametrize(
    ("question", "signal", "wanted", "other"),
    [
        ("When are valves made?", "date", "They were made in 1952.", "They were made by hand."),
        ("How many valves?", "number", "There are 14 valves.", "There are good valves."),
        ("How many valves are in 14 houses?", "number", "There are 20 valves.", "There are 14 houses."),
        ("How many valves are there?", "counted", "There are 14 valves.", "There are 14 doors."),
        ("책은 몇 권까지 빌리나요?", "counter", "책은 10권을 빌린다.", "책은 10일을 빌린다."),
        ("What is the limit of valves?", "limit", "Up to ten valves.", "Ten valves."),
        ("Who closes valves?", "person", "Ada Bell closes valves.", "A porter closes valves."),
        ("Which colour is the valve?", "focus", "Its colour is red.", "The valve is red."),
        ("휴학 신청 기간은?", "focus", "그 기간은 2년이다.", "휴학은 허가를 받는다."),
        ("휴학 신청 기간은?", "last", "그 기간은 2년이다.", "휴학은 허가를 받는다."),
        ("Is the boiler valve red?", "phrase", "A boiler valve is red.", "A valve and a boiler."),
        ("Is the valve red?", "pronoun", "It is red.", "The valve is red."),
    ],
)
def test_a_signal_tells_two_sentences_apart(question: str, signal: str, wanted: str, other: str) -> None:
    for texts in ((wanted, other), (other, wanted)):
        values = dict(zip(texts, _values(question, *texts), strict=True))
        assert values[wanted][signal] > values[other][signal]


def test_kinds_that_are_not_asked_for_are_zero() -> None:
    (values,) = _values("Is the valve red?", "In 1952 Ada Bell had up to 14 valves.")
    assert {
        name: values[name] for name in ("date", "number", "counter", "counted", "limit", "person")
    } == dict.fromkeys(("date", "number", "counter", "counted", "limit", "person"), 0.0)


def test_words_that_few_sentences_of_a_passage_hold_weigh_more() -> None:
    values = _values("What of valves at night?", "Valves close.", "Valves open.", "Valves rust at night.")
    assert values[2]["local"] > values[1]["local"] == values[0]["local"] > 0.0
    assert values[2]["best_covered"] == 1.0
    assert values[1]["window"] == values[2]["window"] > values[0]["window"]


def test_the_title_counts_for_the_sentence_after_it() -> None:
    values = _values("When does the boiler close?", "It closes at nine.", "It opens at ten.", title="Boiler")
    assert values[0]["title"] == values[1]["title"] == values[0]["before_pronoun"] > 0.0
    assert values[1]["before_pronoun"] == values[0]["coverage"]


def test_relevance_is_the_share_of_the_best_passage() -> None:
    passages = [SearchResult("a", "Red.", bm25_score=0.2), SearchResult("b", "Wet.", vector_score=0.8)]
    rows = sentence_signals(QuestionTerms("valves", STATISTICS), passages, _candidates(passages))
    assert rows[:, NAMES.index("relevance")].tolist() == [0.25, 1.0]


def test_cosines_of_the_passage_and_of_neighbours() -> None:
    passages = [SearchResult("a", "One valve. Two valves. Three valves.", bm25_score=0.2)]
    candidates = _candidates(passages)
    rows = sentence_signals(QuestionTerms("valves", STATISTICS), passages, candidates, [0.1, 0.3, 0.9])
    named = {name: rows[:, NAMES.index(name)].tolist() for name in OF_VECTORS}
    assert named == {
        "cosine": [0.1, 0.3, 0.9],
        "near": [0.3, 0.9, 0.9],
        "closest": [0.9, 0.9, 0.9],
        "is_closest": [0.0, 0.0, 1.0],
    }
    without = sentence_signals(QuestionTerms("valves", STATISTICS), passages, candidates)
    assert not without[:, [NAMES.index(name) for name in OF_VECTORS]].any()


@given(st.lists(st.lists(WORDS, min_size=1, max_size=12), max_size=6), st.lists(WORDS, max_size=8))
def test_every_signal_stays_in_its_range(texts: list[list[str]], question: list[str]) -> None:
    passages = [SearchResult(str(n), ". ".join(words) + ".", bm25_score=0.3) for n, words in enumerate(texts)]
    candidates = _candidates(passages)
    rows = sentence_signals(QuestionTerms(" ".join(question), STATISTICS), passages, candidates)
    assert rows.shape == (len(candidates), len(NAMES))
    assert ((rows >= 0.0) & (rows <= 1.3 + 1e-9)).all()


def test_official_words_count_like_own_ones() -> None:
    extra = [(term_id("휴학"), 0.8)]
    asked = QuestionTerms("학교 쉬기", STATISTICS, extra)
    assert asked.weights[term_id("휴학")] > 0.0
    assert term_id("휴학") not in QuestionTerms("학교 쉬기", STATISTICS).weights


@pytest.mark.parametrize(
    ("question", "with_vectors", "name"),
    [("휴학은?", False, "korean"), ("휴학은?", True, "korean"), ("when", True, "vectors"), ("when", False, "words")],
)
def test_each_model_has_weights(question: str, with_vectors: bool, name: str) -> None:
    assert model_name(question, with_vectors=with_vectors) == name
    shipped = weights(name)
    assert shipped.shape == (len(NAMES),)
    vectors = shipped[[NAMES.index(signal) for signal in OF_VECTORS]]
    assert bool(vectors.any()) == (name == "vectors")


def test_an_unknown_signal_is_refused() -> None:
    with pytest.raises(ValueError, match="no signal 'charm'"):
        weights_of({"charm": 1.0})


@given(st.lists(st.floats(-800, 800), max_size=9))
def test_probabilities_add_up_to_one(scores: list[float]) -> None:
    chances = probabilities(np.array(scores))
    assert len(chances) == len(scores)
    if scores:
        assert chances.sum() == pytest.approx(1.0)
        assert chances[int(np.argmax(scores))] == chances.max()
