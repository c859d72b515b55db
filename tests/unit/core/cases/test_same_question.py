"""Whether two questions ask the same: own sentences by kind of difference, and properties for any text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.core.cases.same_question import LONGEST, compact, normal_form, same_question

NEAR = [
    tuple(line.split("\t")) for line in Path(__file__).with_name("near_questions.tsv").read_text("utf-8").splitlines()
]
"""Pairs that look alike and ask something else."""
SAME = [
    # case, punctuation, hyphens, compounds written apart
    ("When does the library close?", "when does the library close"),
    ("Is the help-desk open?", "Is the help desk open??"),
    ("Where is my payslip?", "where is my pay slip?"),
    ("장학금을받으려면 성적이 필요한가요?", "장학금을 받으려면 성적이 필요한가요?"),
    ("지원금은 얼마 이상인가요?", "지원금은 얼마이상인가요?"),
    # contractions and numbers
    ("What is the fee?", "What's the fee?"),
    ("Can I not enter?", "Can I not enter, please?"),
    ("I cannot log in, what now?", "I can't log in, what now?"),
    ("Is a permit needed for fees below twenty euros?", "Is a permit needed for fees below 20 euros?"),
    ("Is the limit 1,000 euros?", "Is the limit 1000 euros?"),
    ("Does the pool close at 9pm?", "Does the pool close at 9 p.m.?"),
    ("위원은 세 명인가요?", "위원은 3명이에요?"),
    # one typing error in a long word
    ("Where do I report harassment?", "Where do I report harrassment?"),
    ("Do I keep the receipts for a week?", "Do I keep the reciepts for a week?"),
    ("강의실은 어떻게 예약하나요?", "강의실은 어떻개 예약하나요?"),
    # greetings and thanks
    ("When does the library close?", "Hi, quick question: when does the library close? Thanks!"),
    ("도서 연체료는 하루에 얼마인가요?", "안녕하세요, 혹시 도서 연체료는 하루에 얼마인지 알려주실 수 있나요?"),
    ("물품 폐기 절차가 궁금합니다.", "항상 도움 주셔서 감사합니다. 물품 폐기 절차를 알려 주세요ㅠㅠ"),
    # Korean endings
    ("교환학생 신청 자격이 궁금합니다.", "교환학생신청자격을 알려 주세요."),
    ("제가 아프면 선배가 발표하나요?", "혹시 제가 아프면 선배가 발표하는 건가요?"),
    ("휴학은 언제 끝나나요?", "휴학은 언제 끝납니까"),
    ("승인이 필요한가요?", "승인이 필요할까요?"),
    ("승인이 필요한가요?", "승인이 필요한지 궁금합니다"),
    ("수수료 얼마", "수수료는 얼마예요?"),
    # a clause that a comma sets apart
    ("For a broken chair, whom do I contact?", "Whom do I contact for a broken chair?"),
    ("Who pays if I lose my key?", "If I lose my key, who pays?"),
    ("장학금 받다가 휴학하면 어떻게 되나요?", "어떻게 되나요, 장학금 받다가 휴학하면?"),
]
DIFFERENT = [
    # a name in capitals, a word that greets or asks within a question
    ("What does IT cost?", "What does it cost?"),
    ("Can U.S. staff vote?", "Can us staff vote?"),
    ("Urgent repairs: who pays?", "Repairs: who pays?"),
    ("Where is the help desk?", "Where is the desk?"),
    # numbers do not run together, and the first is not one
    ("Is it 3-5 days?", "Is it 35 days?"),
    ("제3조 (2)항은?", "제32항은?"),
    ("Is 1.5 enough?", "Is 15 enough?"),
    ("한 학기 쉬나요?", "1학기 쉬나요?"),
    # letters that make another word
    ("Who signs the contract?", "Who signs the contact?"),
    ("Who handles the complaint?", "Who handles the compliant?"),
    ("Who repeats the training?", "Who repeats the trailing?"),
    ("Is the filing paid?", "Is the filling paid?"),
    ("Does Ms Phillips sign?", "Does Ms Philips sign?"),
    ("Where do I resign?", "Where do I re-sign?"),
    ("Will we be ill?", "We'll be ill?"),
    ("연구기관은 어디인가요?", "연구기간은 어디인가요?"),
    ("담당 전무인가요?", "담당 전문가인가요?"),
    # tense, voice and case of Korean
    ("신청하나요?", "신청했나요?"),
    ("성적은 보나요?", "성적은 보여요?"),
    ("학생이 평가하나요?", "학생을 평가하나요?"),
    # a clause that belongs to another one
    ("In May, do I tell HR what I earned?", "Do I tell HR what I earned in May?"),
    ("Hello", "Thanks!"),
]


@pytest.mark.parametrize(("base", "other"), SAME)
def test_a_paraphrase_is_the_same(base: str, other: str) -> None:
    assert same_question(base, other).same, same_question(base, other).reason
    assert same_question(other, base).same


@pytest.mark.parametrize(("base", "other"), DIFFERENT)
def test_a_trap_is_not_the_same(base: str, other: str) -> None:
    decision = same_question(base, other)
    assert not decision.same
    assert decision.reason and decision.reason.isprintable()


def test_near_questions_are_not_the_same() -> None:
    assert [pair for pair in NEAR if same_question(*pair).same or same_question(*pair[::-1]).same] == []
    assert len(NEAR) > 300


def test_the_reason_names_the_difference() -> None:
    assert same_question("May I stay for 3 nights?", "May I stay for 4 nights?").reason == "number differs: 3 / 4"
    assert same_question("Who cleans the gym?", "Who cleans the sauna?").reason == "only in one: gym"
    assert same_question("Can a tutor report a student?", "Can a student report a tutor?").reason == "order differs"
    assert same_question("휴학은?", "What is leave?").reason == "another language"


def test_a_blank_stays_where_it_tells_words_apart() -> None:
    assert compact(normal_form("on site, 2 3 days at 4 %")) == "on site | 2 3days at4 %"


WORDS = [word for pair in (*SAME, *DIFFERENT, *NEAR) for question in pair for word in question.split()]
questions = st.one_of(
    st.text(max_size=200),
    st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join),
    st.sampled_from([question for pair in (*SAME, *NEAR) for question in pair]),
)


@settings(max_examples=150)
@given(questions, questions)
def test_it_is_symmetric_and_total(left: str, right: str) -> None:
    assert same_question(left, right).same == same_question(right, left).same


@settings(max_examples=80)
@given(questions)
def test_it_is_reflexive_whatever_the_spacing(question: str) -> None:
    assert same_question(question, question).same
    assert same_question(question, f"  {question} ").same


@pytest.mark.parametrize("piece", ["안 되", "1", "a-", "수 있", "how ", "가나다 ", "((", "\ud800", "not ", "나요 "])
def test_long_repetitions_are_bounded(piece: str) -> None:
    text = piece * (LONGEST // len(piece))
    assert not same_question(text, "how do I get a key?").same
    assert same_question(piece * 10_000, piece * 10_000).same
    assert not same_question(piece * 10_000, piece * 9_000).same
