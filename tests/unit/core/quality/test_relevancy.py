"""Replies to a question by words, and answers that decline."""

from __future__ import annotations

import pytest

from dtrag.core.quality.relevancy import AskedConcept, is_refusal, relevance


@pytest.mark.parametrize(
    ("query", "good", "vague"),
    [
        ("How many days of leave are there?", "26 days", "Leave is granted under the rules of the handbook."),
        ("How many days of leave are there?", "There are 26 days of leave.", "There are days of leave for everyone."),
        ("When did the oil crisis begin?", "In October 1973.", "The oil crisis had wide effects on the economy."),
        ("Who founded the city of Rome?", "It was founded by Romulus.", "The city of rome has a long history."),
        ("휴학은 최대 몇 학기까지 할 수 있나요?", "통산 6학기까지입니다.", "휴학은 규정에 따라 할 수 있습니다."),
        ("책을 늦게 반납하면 연체료가 하루에 얼마인가요?", "하루 100원입니다.", "연체료는 책을 늦게 반납하면 냅니다."),
        ("회의는 언제 열리나요?", "매월 첫째 월요일에 열립니다.", "회의는 위원들이 모여 엽니다."),
    ],
)
def test_an_answer_without_the_value_asked_for_is_not_relevant(query: str, good: str, vague: str) -> None:
    assert relevance(query, good).score >= 0.5 > relevance(query, vague).score
    assert relevance(query, good).reason == ""
    assert relevance(query, vague).reason.startswith("it lacks the")


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("시험 기간에 도서관을 써도 되나요?", "네, 도서관을 쓸 수 있습니다."),
        ("Can I stay at home when I am ill?", "Yes, you can stay at home."),
        ("Is the person who founded Rome buried there?", "Yes, he is buried there."),
    ],
)
def test_yes_answers_a_question_that_mentions_a_time_or_person(query: str, answer: str) -> None:
    assert relevance(query, answer).score >= 0.5


@pytest.mark.parametrize(
    "query", ["언제 휴학할 수 있나요?", "휴학 기간은 어떻게 되나요?", "휴학은 몇 학기 할 수 있나요?"]
)
def test_a_question_for_a_value_is_not_answered_by_yes(query: str) -> None:
    assert relevance(query, "네, 휴학을 할 수 있습니다.").reason.startswith("it lacks the")


def test_an_answer_about_something_else_is_not_relevant() -> None:
    query = "How do I apply for parental leave?"
    other = "The cafeteria on the second floor offers vegetarian sandwiches and soup every day of the week."
    assert relevance(query, other).score < 0.2
    assert relevance(query, "You apply for parental leave in writing, three months before it begins.").score > 0.5


def test_a_reply_in_other_wordings_of_the_question_is_relevant() -> None:
    query, reply = (
        "학교 그만두려면 뭘 해야 해요?",
        "자퇴하려는 학생은 자퇴원을 소속 학과장을 거쳐 총장에게 제출하여야 한다.",
    )
    concepts = [AskedConcept(("학교", "그만두려면"), ("자퇴", "퇴학")), AskedConcept(("뭘",))]
    assert relevance(query, reply).score == 0.0
    assert relevance(query, reply, concepts).score == 0.8
    other = "도서관의 열람실은 오전 6시부터 밤 12시까지 열며 시험기간에는 24시간 연다."
    assert relevance(query, other, concepts).score == 0.0
    assert relevance(query, other, [AskedConcept(concept.words) for concept in concepts]) == relevance(query, other)


def test_a_korean_sentence_is_no_bare_value() -> None:
    answer = "③ 석차가 같으면 취득학점이 많은 학생을 먼저 선발한다."
    assert relevance("집이 어려운데 생활비 도와주는 제도 있나요?", answer).score == 0.0


def test_a_repeated_question_is_no_answer() -> None:
    assert (
        relevance("Describe the parental leave", "parental leave").reason == "it repeats the question and adds nothing"
    )


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I don't know.",
        "The documents do not contain an answer to this question.",
        "I could not find this in the passages. They are about leave.",
        "There is no information about dental insurance in the documents.",
        "문서에서 답을 찾을 수 없습니다.",
        "해당 내용은 규정에 없습니다.",
        "제공된 자료만으로는 알 수 없습니다.",
        "죄송하지만 답변할 수 없습니다.",
        "죄송합니다. 문서에서 해당 내용을 찾지 못했습니다.",
        "이 문서에는 수수료가 명시되어 있지 않습니다.",
        "규정에서 관련 내용을 확인할 수 없으며, 담당 부서에 문의하시기 바랍니다.",
        "제공된 문서에는 관련 정보가 없는 것으로 보입니다.",
        "I am sorry. I don’t know.",
        "We could not find the answer.",
        "The deposit is not mentioned in the provided passages.",
        "The answer cannot be determined from the context.",
        "None is known: the passages provided do not say how long it takes.",
        "There is not enough information to answer.",
    ],
)
def test_refusals(answer: str) -> None:
    assert is_refusal(answer)
    assert relevance("Which dental insurance is there?", answer).score == 0.0


@pytest.mark.parametrize(
    "answer",
    [
        "26 days.",
        "Leave cannot be carried over after March.",
        "Employees do not have to give a reason.",
        "Students are not allowed to park on the campus.",
        "휴학은 통산 6학기를 초과할 수 없다.",
        "졸업 학기에는 휴학할 수 없습니다.",
        "수수료는 없습니다.",
        "이 규정에 규정되지 않은 사항은 총장이 따로 정한다.",
        "이 세칙에 명시되지 않은 사항은 학칙을 준용한다.",
        "정당한 근거 없이 결석한 사람은 제적한다.",
        "사유를 확인할 수 없는 경우에는 허가하지 아니한다.",
        "Employees who do not provide a receipt are not reimbursed.",
        "If you do not know the password, call 1234.",
        "The deposit was not included in the rent.",
        "A key that cannot be found is replaced for 20 euros.",
        "No documents are required in the first year.",
        "An application with insufficient information is rejected.",
        "We do not provide parking.",
        "Food is not provided.",
    ],
)
def test_answers_with_a_negation_are_no_refusals(answer: str) -> None:
    assert not is_refusal(answer)
