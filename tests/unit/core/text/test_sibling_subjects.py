"""Which of several like things a sentence is about."""

from __future__ import annotations

import pytest

from dtrag.core.text.sibling_subjects import about_siblings, compounds_of, subject_of


@pytest.mark.parametrize(
    ("question", "own", "sibling"),
    [
        ("군휴학은 몇 학기까지 되나요?", "② 군휴학의 기간은 의무복무기간으로 한다.", "① 일반휴학은 2학기까지 한다."),
        ("군 휴학은 얼마나 하나요?", "2. 군휴학: 3년", "1. 육아휴학: 1년"),
        ("부장 임기는 몇 년이에요?", "④ 부장의 임기는 1년으로 한다.", "② 소장은 총장이 임명한다."),
        ("대학원생은 책을 몇 권 빌리나요?", "대학원생은 20권으로 한다.", "학부생은 10권으로 한다."),
        ("성적장학금은 얼마인가요?", "성적장학금 | 100만원", "근로장학금 | 50만원"),
        (
            "How much leave do part-time staff get?",
            "If you work part time, it is less.",
            "A full-time employee has 26 days.",
        ),
        ("What is the short term rate?", "The short-term rate is 3 %.", "A long-term loan costs 5 %."),
    ],
)
def test_a_sentence_about_another_thing_of_the_kind_is_recognised(question: str, own: str, sibling: str) -> None:
    compounds = compounds_of(question)
    assert about_siblings(compounds, [sibling, own]) == {0}
    assert about_siblings(compounds, [sibling]) == frozenset()  # nothing is about the question's


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("군휴학과 일반휴학은 어떻게 다른가요?", ["일반휴학은 2학기까지 한다.", "군휴학은 3년으로 한다."]),
        ("대학원생은 책을 몇 권 빌리나요?", ["학생은 책을 빌릴 수 있다.", "대학원생은 20권으로 한다."]),
        ("휴학 기간은 얼마인가요?", ["일반휴학은 2학기까지 한다.", "휴학은 통산 6학기로 한다."]),
        ("What is the notice period?", ["The notice period is a month.", "A full-time employee has two."]),
        ("", ["일반휴학은 2학기까지 한다.", ""]),
    ],
)
def test_other_sentences_are_no_siblings(question: str, texts: list[str]) -> None:
    assert about_siblings(compounds_of(question), texts) == frozenset()


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("① 일반휴학은 한 번에", "일반휴학은"),
        ("2. 군휴학: 병역의무", "군휴학"),
        ("Parental leave, for both.", "parental leave"),
        ("", ""),
    ],
)
def test_the_subject_is_what_a_sentence_begins_with(text: str, subject: str) -> None:
    assert subject_of(text) == subject
