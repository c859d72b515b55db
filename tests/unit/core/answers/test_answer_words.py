"""Which words of a quotation are marked as the answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.answers.answer_words import MAX_SPANS, answer_words


@pytest.mark.parametrize(
    ("question", "quotation", "words"),
    [
        ("휴학은 최대 몇 학기까지 할 수 있나요?", "① 일반휴학은 한 번에 2학기까지 할 수 있다.", ["2학기"]),
        ("책은 며칠 빌리나요?", "제12조에 따라 10권을 14일간 빌린다.", ["14일"]),
        ("외박은 며칠까지 되나요?", "외박은 통산 5일을 넘을 수 없다.", ["5일"]),
        ("등록금을 얼마나 돌려받나요?", "30일이 지나기 전에는 3분의 2를 반환한다.", ["30일", "3분의 2"]),
        ("축제는 언제 해요?", "축제는 매년 10월 3일에 연다.", ["10월 3일"]),
        ("누가 허가하나요?", "외출은 한방병원장의 허가를 받아야 한다.", ["한방병원장"]),
        ("외박해도 되나요?", "사감의 허가 없이 외박할 수 없다.", ["할 수 없다"]),
        ("How many days of leave are there?", "There are 26 days in a year of 12 months.", ["26 days", "12 months"]),
        ("When does the boiler open?", "It opens on 3 May 2024 at 9:30.", ["3 May 2024", "9:30"]),
        ("Who approves it?", "It is approved by Ada Bell and the porter.", ["Ada Bell"]),
        ("May I bring a dog?", "Dogs are not allowed in the hall.", ["are not allowed"]),
        ("May staff on probation take leave when they wish?", "Staff of 6 months may not take leave.", ["may not"]),
        ("Who signs?", "On Monday Morning the Director signs with Ada Bell.", ["Ada Bell"]),
        ("이사회는 몇 번 열리나요?", "이사회는 연 2회 연다.", ["2회"]),
        ("회비는 얼마인가요?", "평일만 여는 곳의 회비는 3만 원이다.", ["3만 원"]),
        ("수업은 몇 시에 시작하나요?", "주 40시간 근무하고 오전 9시에 연다.", ["9시"]),
        ("In 2024, how many days do I get?", "You get 20 days at most.", ["20 days"]),
        ("What does it cost?", "It is paid by the member.", []),
        ("휴학이란?", "휴학은 2학기까지 한다.", []),
    ],
)
def test_the_value_that_is_asked_for_is_marked(question: str, quotation: str, words: list[str]) -> None:
    assert [quotation[start:end] for start, end in answer_words(question, quotation)] == words


def test_a_value_of_the_question_is_not_its_answer() -> None:
    text = "10명 이상이 신청하면 5일 안에 정한다."
    assert [text[a:b] for a, b in answer_words("10명이 신청하면 며칠 안에 정하나요?", text)] == ["5일"]


def test_marks_of_items_and_amendments_are_not_values() -> None:
    text = "2. 학부과정 - 10권 14일 <개정 2007. 3. 1.>"
    assert [text[a:b] for a, b in answer_words("책을 얼마나 오래 빌리나요?", text)] == ["14일"]


def test_numbers_of_articles_are_not_values() -> None:
    text = "제3조제2항과 제15조에 따른다."
    assert answer_words("몇 개인가요?", text) == ()


@given(st.text(max_size=80), st.text(max_size=200))
def test_spans_are_ordered_disjoint_and_inside(question: str, quotation: str) -> None:
    spans = answer_words(f"언제 누가 몇 개 {question} 되나요?", quotation)
    assert len(spans) <= MAX_SPANS
    ends = 0
    for start, end in spans:
        assert ends <= start < end <= len(quotation)
        ends = end
