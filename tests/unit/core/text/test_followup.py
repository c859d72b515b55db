"""Follow-up questions by rules, on conversations made by hand: what is carried over, and what is left alone."""

from __future__ import annotations

import time

import pytest

from dtrag.core.text.analysis import terms
from dtrag.core.text.followup import LONGEST, MOST_WORDS, content_words, kind_of, standing_alone

LEAVE_KO = "학부생은 휴학을 최대 몇 학기까지 할 수 있나요?"
LEAVE = "How many vacation days do full-time employees get?"

FOLLOW_UPS: list[tuple[list[str], str, str]] = [
    # the questions before, the question, words that must be searched for
    ([LEAVE_KO], "그럼 대학원생은?", "휴학 학기 대학원생"),
    ([LEAVE_KO], "대학원생의 경우는요?", "휴학 학기 대학원생"),
    ([LEAVE_KO], "외국인 학생도?", "휴학 외국인"),
    ([LEAVE_KO], "그건 언제까지 신청해?", "휴학 신청"),
    ([LEAVE_KO], "신청은 어디에 하나요?", "휴학 신청"),
    ([LEAVE_KO], "왜?", "휴학"),
    ([LEAVE_KO, "그럼 대학원생은?"], "박사과정은?", "휴학 박사과정"),
    ([LEAVE_KO, "그럼 대학원생은?"], "기한은 언제까지야?", "휴학 대학원생 기한"),
    (["출장비는 어떻게 신청하나요?"], "그건 며칠이야?", "출장비"),
    (["도서관 연체료는 얼마인가요?"], "이 경우 예외가 있나요?", "연체료 예외"),
    (["징계위원회는 누가 소집하나요?"], "거기에는 몇 명이 참석해?", "징계위원회 참석"),
    ([LEAVE], "and for part-time staff?", "vacation days part-time staff"),
    ([LEAVE], "What about contractors?", "vacation days contractors"),
    ([LEAVE], "How about during probation?", "vacation days probation"),
    ([LEAVE], "Who approves it?", "vacation approves"),
    ([LEAVE], "Do they expire?", "vacation expire"),
    ([LEAVE], "Why?", "vacation"),
    ([LEAVE, "and for part-time staff?"], "and for interns?", "vacation interns"),
    (["When was the ferry line opened?"], "How much does that cost?", "ferry cost"),
    (["Who may borrow the telescope?"], "for how long?", "telescope"),
    (["Where is the archive?"], "Is there a deadline?", "archive deadline"),
]
ALONE = [
    (LEAVE_KO, "연차는 며칠이야?"),
    (LEAVE_KO, "도서관 대출 권수는 몇 권인가요?"),
    (LEAVE_KO, "총장은 누가 임명하는가?"),
    (LEAVE_KO, "많은 논의 끝에 위원회가 지원금을 지급하기로 하였는데 그 시기는 언제인가?"),
    (LEAVE_KO, "학교 앞 셔틀버스 첫차는 몇 시에 출발해?"),
    (LEAVE_KO, "제12조의2는 무엇을 정하고 있나요?"),
    (LEAVE, "What is photosynthesis?"),
    (LEAVE, "How long does it take to get a parking permit?"),
    (LEAVE, "Is it possible to rent the sports hall?"),
    (LEAVE, "Who is the chair of the ethics board?"),
    (LEAVE, "What did the city council decide after its members met in Busan?"),
    (LEAVE, "Which documents does the visa office ask for?"),
    (LEAVE, "error code E1234"),
]


@pytest.mark.parametrize(("before", "question", "wanted"), FOLLOW_UPS, ids=[one[1] for one in FOLLOW_UPS])
def test_a_follow_up_question_gets_the_subject_of_the_one_before(before: list[str], question: str, wanted: str) -> None:
    found, kind = standing_alone(question, before)
    assert kind != "alone"
    assert set(terms(wanted)) <= set(terms(found))
    assert set(terms(question)) - set(terms(found)) <= set(terms("그럼 and what about how"))


@pytest.mark.parametrize(
    ("before", "question", "replaced", "carried"),
    [
        (LEAVE, "And for part time?", "full-time", "vacation days part"),
        ("군휴학은 몇 학기까지 되나요?", "그럼 육아휴학은?", "군휴학", "학기 육아휴학"),
        ("What is the limit for hotels in North America?", "And in Asia?", "north", "limit hotels Asia"),
        ("What is the limit for hotel costs in Europe?", "and for meals?", "hotel", "limit Europe meals"),
        ("소장 임기는 몇 년이에요?", "부장은?", "소장", "임기 부장"),
        ("학부생은 책을 몇 권까지 빌릴 수 있나요?", "대학원생은?", "학부생", "책 대학원생"),
    ],
)
def test_a_contrast_replaces_the_thing_of_the_same_kind(
    before: str, question: str, replaced: str, carried: str
) -> None:
    found, kind = standing_alone(question, [before])
    assert kind == "contrast"
    assert replaced not in found
    assert set(terms(carried)) <= set(terms(found))


def test_what_a_contrast_replaced_does_not_come_back_after_the_next_one() -> None:
    found, _ = standing_alone("And in Europe?", ["What is the limit for hotels in America?", "And in Asia?"])
    assert set(terms(found)) == set(terms("limit hotels Europe"))


@pytest.mark.parametrize(("before", "question"), ALONE, ids=[question for _, question in ALONE])
def test_a_self_contained_question_stays_unchanged(before: str, question: str) -> None:
    assert standing_alone(question, [before]) == (question, "alone")


def test_the_next_contrast_replaces_the_last() -> None:
    found, kind = standing_alone("박사과정은?", [LEAVE_KO, "그럼 대학원생은?"])
    assert (kind, "대학원생" in found) == ("contrast", False)


def test_a_self_contained_question_starts_a_new_context() -> None:
    found, _ = standing_alone("그럼 교직원은?", [LEAVE_KO, "도서관 대출 권수는 몇 권인가요?"])
    assert "휴학" not in found
    assert "대출" in found


def test_without_earlier_questions_nothing_is_added() -> None:
    for before in ([], [""], ["?"], ["왜?"]):
        assert standing_alone("그럼 대학원생은?", before) == ("그럼 대학원생은?", "alone")


def test_words_of_the_question_are_not_repeated() -> None:
    found, _ = standing_alone("그럼 대학원생 휴학은?", [LEAVE_KO])
    assert found.count("휴학") == 1
    assert standing_alone("vacation days for it?", ["vacation days?"])[0] == "vacation days for it?"


def test_the_number_of_added_words_is_limited() -> None:
    long = " ".join(f"subject{number}" for number in range(40)) + "?"
    found, _ = standing_alone("and why is it?", [long])
    assert len(found.split()) <= MOST_WORDS + 4


@pytest.mark.parametrize("odd", ["", " ", "?", "🙂", "그", "it", "and", "\x00", "().()", "그럼"])
def test_unusual_questions_are_accepted(odd: str) -> None:
    kind_of(odd)
    content_words(odd)
    found, _ = standing_alone(odd, [odd, LEAVE, odd])
    assert isinstance(found, str)


@pytest.mark.parametrize("piece", ["it ", "그 ", "and ", "휴학은 ", "it to ", "((((", "? ", "for "])
def test_long_questions_are_fast(piece: str) -> None:
    question = piece * (10_000 // len(piece))
    started = time.thread_time()
    assert standing_alone(question, [question] * 6) == (question, "alone")
    standing_alone(question[:LONGEST], [question] * 6)
    assert time.thread_time() - started < 2
