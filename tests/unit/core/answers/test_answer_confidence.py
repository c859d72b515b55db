"""The probability that the quotations of an answer are right, and what forbids the decision `answer`."""

from __future__ import annotations

import pytest

from dtrag.core.answers.answer_confidence import (
    ANSWER_SIGNALS,
    answer_confidence,
    answer_signals,
    lacking,
    model_name,
    models,
)
from dtrag.core.answers.passage_confidence import Confidence
from dtrag.core.documents import Citation, PackFindings, SearchResult
from dtrag.core.ranking.bm25 import LexicalStatistics

PASSAGES = [
    SearchResult(f"d:{number}", text, title="Library rules", bm25_score=score)
    for number, (text, score) in enumerate(
        [
            ("Undergraduates may borrow ten books for 14 days.", 0.9),
            ("The library opens at nine.", 0.3),
            ("Lost cards are replaced at the desk.", 0.2),
        ]
    )
]
SURE = Confidence(0.95, "answer", ())


def citation(place: int) -> Citation:
    text = PASSAGES[place].text
    marked = ((0, len(text)),)
    return Citation(1, "Library rules", f"d:{place}", "d", "", text, 0, len(text), display=text, marked=marked)


def signals(question: str, place: int = 0, documents: float = 0.9) -> dict[str, float]:
    return answer_signals(
        question, [citation(place)], PASSAGES, statistics=LexicalStatistics(), documents=documents, pack=None
    )


def test_the_signals_are_those_of_the_models() -> None:
    values = signals("How many books may undergraduates borrow?")
    assert values.keys() == ANSWER_SIGNALS.keys()
    assert all(row.model.weights.keys() == ANSWER_SIGNALS.keys() for row in models().values())
    assert models().keys() == {"regulations", "korean", "other"}


def test_a_quotation_that_shows_more_of_the_question_has_more_signal() -> None:
    right, other = (signals("How many books may undergraduates borrow?", place) for place in (0, 1))
    assert right["shown"] > other["shown"]
    assert right["lead"] > other["lead"]


def test_a_value_of_the_kind_asked_for_counts_for_and_its_absence_against_an_answer() -> None:
    assert signals("How long may undergraduates borrow books?")["value"] == 1.0
    assert signals("How long is the library open?", 1)["value"] == -1.0
    assert signals("Who may borrow books?")["value"] == 0.0


@pytest.mark.parametrize("documents", [0.0, 1.0])
def test_a_confidence_at_its_limit_stays_finite(documents: float) -> None:
    assert abs(signals("Who may borrow books?", documents=documents)["documents"]) < 1.0


@pytest.mark.parametrize(
    ("question", "lacks"),
    [
        ("May undergraduates borrow 12 books?", "12"),
        ("May undergraduates of Oxford borrow ten books?", "Oxford"),
        ("Which books may undergraduates not borrow?", "denies"),
        ("May undergraduates borrow ten books?", ""),
        ("학부생은 책을 15권 빌릴 수 있나요?", "15"),
    ],
)
def test_a_number_a_name_or_a_negation_that_no_quotation_has_forbids_an_answer(question: str, lacks: str) -> None:
    reason = lacking(question, [citation(0)], PASSAGES)
    assert lacks in str(reason) if lacks else reason is None
    found = answer_confidence(
        question,
        [citation(0)],
        PASSAGES,
        statistics=LexicalStatistics(),
        documents=SURE,
        pack=None,
        policy="eager",
    )
    assert not (lacks and found.sure)
    assert 0.0 < found.value < 1.0


def test_the_pack_has_a_model_of_its_own() -> None:
    assert model_name("휴학은 몇 학기까지 되나요?", PackFindings({}, ())) == "regulations"
    assert model_name("휴학은 몇 학기까지 되나요?", None) == "korean"
    assert model_name("How long is the leave?", None) == "other"
