"""What a question is about: Korean endings and particles go, content stays, English is left alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.core.query import ASKING_WEIGHT, content, content_terms, weighted_terms
from dtrag.core.text import term_id, terms


@pytest.mark.parametrize(
    ("question", "about"),
    [
        ("휴학은 최대 몇 학기까지 할 수 있나요?", "휴학 최대 학기"),
        ("졸업 요건에 대해 알려주세요", "졸업 요건"),
        ("도서관이 어디에 있나요?", "도서관"),
        ("등록금을 반환하려면", "등록금 반환"),
        ("기숙사에서 퇴사되나요?", "기숙사 퇴사"),
        ("제12조의2는 무엇인가요?", "제12조의2"),
        ("BM25와 벡터의 관계", "BM25 벡터 관계"),
    ],
)
def test_korean_endings_and_particles_go_and_content_stays(question: str, about: str) -> None:
    assert terms(content(question)) == terms(about)
    assert content_terms(question) == [term_id(term) for term in terms(about)]


@pytest.mark.parametrize("question", ["어떻게 하나요?", "무엇인가요?", "왜?", "있나요", "???", ""])
def test_a_question_that_only_asks_stays_as_it_is(question: str) -> None:
    assert content(question) == question


@pytest.mark.parametrize(
    "question", ["How many days of parental leave are there?", "who wrote C++ and when", "text-embedding-3-small"]
)
def test_english_is_left_alone(question: str) -> None:
    assert terms(content(question)) == terms(question)
    assert {weight for _, weight in weighted_terms(question)} == {1.0}


def test_a_term_that_only_asks_weighs_less() -> None:
    weights = dict(weighted_terms("휴학은 최대 몇 학기까지 할 수 있나요?"))
    assert weights[term_id("휴학")] == weights[term_id("학기")] == 1.0
    assert weights[term_id("있나")] == weights[term_id("나요")] == ASKING_WEIGHT


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            "휴학 은 이 최대 몇 학기까지 할 수 있나요? 어떻게 하나요 알려 BM25 leave 한 ① . , \ud800".split()
        ),
        max_size=9,
    ).map(" ".join)
    | st.text(st.characters(), max_size=40)
)
def test_content_never_empties_and_weights_lie_in_0_1(question: str) -> None:
    weighted = weighted_terms(question)
    assert [term for term, _ in weighted] == [term_id(term) for term in terms(question)]
    assert all(0 < weight <= 1 for _, weight in weighted)
    assert bool(content_terms(question)) == bool(terms(question))
