"""The table of the words of questions, and the kind of value that a question asks for."""

from __future__ import annotations

import pytest

from dtrag.core.text.question_words import asks, counted_answer, table, words_for
from tests.cases import each


@each("meaning", sorted(table()))
def test_a_meaning_finds_and_refuses_its_examples(meaning: str) -> None:
    row = table()[meaning]
    assert row["finds"] and row["refuses"] and words_for(meaning)
    assert len(set(words_for(meaning))) == len(words_for(meaning)), "a word is listed twice"
    assert all(asks(text, meaning) for text in row["finds"]), row
    assert not any(asks(text, meaning) for text in row["refuses"]), row


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("책을 몇 권까지 빌릴 수 있나요", "학부생은 10권까지", "2회까지 연장한다"),
        ("재수강은 몇 번까지", "재수강은 통산 3회로 한다", "3학점을 넘지 못한다"),
        ("며칠 안에 내야 하나요", "종료 후 7일 이내", "제7조에 따른다"),
        ("연체료가 얼마예요", "1일 100원", "7일 이내"),
        ("위원은 몇 명인가요", "위원 5인 이상", "위원회를 둔다"),
        ("도서관은 몇 시에 닫나요", "오후 9시에 닫는다", "9시간 동안 연다"),
        ("몇 시까지 들어와야 하나요", "23:00부터 제한한다", "3일 전에 신청한다"),
        ("연구년은 얼마나 쓸 수 있나요", "기간은 6개월 또는 1년으로 한다", "6년 이상 계속하여 근무한 교원이 신청한다"),
        ("휴직은 얼마 동안 할 수 있나요", "휴직은 2년 이내로 한다", "수당은 20만원으로 한다"),
        ("임기는 얼마나 되나요", "임기는 2년으로 한다", "정년까지 2년 미만인 사람은 제외한다"),
        ("출장비는 얼마나 받나요", "1일 5만원을 지급한다", "3일 이내에 신청한다"),
        ("계약이 끝나기 얼마 전에 알려 주나요", "만료 4월 전까지 통지한다", "수당은 4만원이다"),
        ("How long is parental leave?", "It lasts 20 weeks.", "It is paid."),
        ("How much notice must I give?", "Ask three working days before.", "Ask your manager."),
        ("What time does the office open?", "It opens at 8:30.", "It opens in 30 days."),
        ("What is the price of a licence?", "A licence is €40.", "A licence lasts 40 days."),
        ("How much does the company pay?", "It pays 25 euros a month.", "It pays every month."),
    ],
)
def test_a_counter_of_the_question_is_recognised_in_answers(question: str, answer: str, other: str) -> None:
    counted = counted_answer(question)
    assert counted is not None
    assert counted.search(answer)
    assert not counted.search(other)


def test_other_questions_have_no_counter() -> None:
    assert counted_answer("휴학은 어떻게 하나요") is None
    assert counted_answer("How many books?") is None
