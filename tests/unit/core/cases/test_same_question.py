"""Whether two questions ask the same: own sentences by kind of difference, and properties for any text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.core.cases.reading import LONGEST
from dtrag.core.cases.same_question import same_question

SAME = [
    # light, English
    ("When does the library close?", "when does the libary close"),
    ("When does the library close?", "Hi, quick question: when does the library close? Thanks!"),
    ("How many guests may I bring to the summer party?", "How many guests am I allowed to bring to the summer party?"),
    ("Can a deposit be refunded?", "Could you please tell me if a deposit can be refunded?"),
    ("For a broken chair, whom do I contact?", "Whom do I contact for a broken chair?"),
    ("Is the two week notice binding?", "Is the 2-week notice binding?"),
    ("Does the team lead approve overtime?", "Is overtime approved by the team lead?"),
    ("Can I carry it over?", "hey, can I carry it over by any chance?"),
    ("How many shifts do we work per year?", "How many shifts do we work per yr?"),
    ("Does the shop open late?", "Does the shop open late or not?"),
    # heavy, English
    ("Where do I hand in a sick note?", "Where must the doctor's note be submitted?"),
    ("What is the deadline for expense claims?", "By when must expense claims be in?"),
    # light, Korean
    ("도서 연체료는 하루에 얼마인가요?", "도서 연체료는 하루에 얼마에요"),
    ("도서 연체료는 하루에 얼마인가요?", "안녕하세요, 혹시 도서 연체료는 하루에 얼마인지 알려주실 수 있나요?"),
    ("교환학생 신청 자격이 궁금합니다.", "교환학생신청자격을 알려 주세요."),
    ("총장은 학과장을 임명하나요?", "학과장을 총장은 임명하나요?"),
    ("결석을 세 번 하면 어떻게 되나요?", "결석을 3회 하면 어떻게 됩니까?"),
    ("강의실은 어떻게 예약하나요?", "강의실은 어떻개 예약하나요?"),
    ("조기취업자는 시험을 안 봐도 되나요?", "조기 취업자는 시험을 보지 않아도 되나요?"),
    ("장학금을받으려면 성적이 필요한가요?", "장학금을 받으려면 성적이 필요한가요?"),
    ("도서 대출 결과는 누구에게 알리나요?", "도서 대출결과는 누구한테 알리나요?"),
    ("실습비는 누가 받아요?", "실습비는 누가 받아?"),
    ("남은 거 반납되나요?", "남은거 반납됨?"),
    ("수업 빠질 때 서류 제출해야 하나요?", "수업 빠질때 서류 제출해야 하나요? 걱정되네요"),
    # heavy, Korean
    ("연구비 정산 기한", "연구비를 정산하려면 언제까지 해야 하나요?"),
    ("학생증을 분실하면 어디에 신고하나요?", "학생증을 잃어버리면 어디에 신고해요?"),
    ("물품 구매 절차", "물품을 사려면 어떤 절차를 거치나요?"),
]
DIFFERENT = [
    # reversal
    ("Can a tutor report a student?", "Can a student report a tutor?"),
    ("How do I move from Lyon to Madrid?", "How do I move from Madrid to Lyon?"),
    ("학생이 조교를 평가하나요?", "조교가 학생을 평가하나요?"),
    ("본교에서 분교로 옮길 수 있나요?", "분교에서 본교로 옮길 수 있나요?"),
    # negation
    ("Which visits need a permit?", "Which visits do not need a permit?"),
    ("실험실을 밤에 쓸 수 있나요?", "실험실을 밤에 쓸 수 없나요?"),
    # number, date, article
    ("May I stay for 3 nights?", "May I stay for 4 nights?"),
    ("What changed in March?", "What changed in May and March?"),
    ("결석 두 번이면 감점인가요?", "결석 세 번이면 감점인가요?"),
    ("박물관규정 제4조 내용", "박물관규정 제14조 내용"),
    ("What does section 3(a) say?", "What does section 3(b) say?"),
    # entity, audience
    ("Who cleans the gym?", "Who cleans the sauna?"),
    ("Do nurses get a uniform?", "Do porters get a uniform?"),
    ("강사의 연구실 배정 기준", "조교의 연구실 배정 기준"),
    # quantifier, modality
    ("Do all rooms have a phone?", "Do some rooms have a phone?"),
    ("Must I wear a helmet?", "May I wear a helmet?"),
    ("회의에 모두 참석해야 하나요?", "회의에 일부만 참석해야 하나요?"),
    ("최대 몇 명까지 신청하나요?", "최소 몇 명까지 신청하나요?"),
    # condition, direction in time
    ("What do I pay before the trial ends?", "What do I pay after the trial ends?"),
    ("졸업 전 취업하면 출석은?", "졸업 후 취업하면 출석은?"),
    ("Can I fly without a visa?", "Can I fly with a visa?"),
    # a word that also asks, greets or obliges is content elsewhere
    ("Which mandatory trainings exist?", "Which trainings exist?"),
    ("How quickly must a leak be reported?", "How must a leak be reported?"),
    ("Can I take the test again?", "Can I take the test?"),
    ("수강은 어떻게 신청하나요?", "수강은 어떻게 취소하나요?"),
    ("시험을 안 봐도 되나요?", "시험을 안 내도 되나요?"),
    ("감사 결과 공개 범위는?", "결과 공개 범위는?"),
    ("대체 과목은 언제 신청하나요?", "과목은 언제 신청하나요?"),
    ("필수 과목은 무엇인가요?", "과목은 무엇인가요?"),
    # who does it, with attributes, objects and clauses
    ("Which team does Anna support?", "Which team supports Anna?"),
    ("Who reports to the head of sales?", "Whom does the head of sales report to?"),
    ("Can I swap a weekday shift for a weekend one?", "Can I swap a weekend shift for a weekday one?"),
    ("초청받은 강사의 숙박비", "초청한 강사의 숙박비"),
    ("정년 전에 퇴직하면 수당은?", "정년에 퇴직하면 수당은?"),
    ("돈을 빌려주나요?", "돈을 빌리나요?"),
    ("추천을 받는 교수", "추천을 하는 교수"),
    ("장학금을 받는 사람은 누구인가요?", "장학금을 주는 사람은 누구인가요?"),
    # superset, other aspect, two questions
    ("What are the gym rules?", "What are the gym rules for minors?"),
    ("Where is the tax office?", "When is the tax office open?"),
    ("Where and when is the exam?", "When is the exam?"),
    # a word directly before a noun belongs to it
    ("다른 학과 조교가 우리 학과 실험 도와도 되나요?", "우리 학과 조교가 다른 학과 실험 도와도 되나요?"),
    ("낡은 강당 새 의자 구매 절차", "새 강당 낡은 의자 구매 절차"),
    ("학교 셔틀 시간표는 어디 있나요?", "셔틀 시간표는 어디 있나요?"),
    ("Can a Paris nurse use a Rome badge?", "Can a Rome nurse use a Paris badge?"),
    ("Can a UK driver rent a US van?", "Can a US driver rent a UK van?"),
    # every negation leaves a trace
    ("설문 안 한 사람은 언제 볼 수 있나요?", "설문 한 사람은 언제 볼 수 있나요?"),
    ("접종 못 한 사람은 언제 오나요?", "접종 한 사람은 언제 오나요?"),
    ("못 받은 물품은 언제 받나요?", "받은 물품은 언제 못 받나요?"),
    # numbers, dates and clauses keep their words
    ("1학년 조교가 4학년 시험 감독하나요?", "4학년 조교가 1학년 시험 감독하나요?"),
    ("하나만 골라도 되나요?", "골라도 되나요?"),
    ("Can 2 tutors book a hall?", "Can a tutor book 2 halls?"),
    ("Can I arrive Tuesday and leave Thursday?", "Can I arrive Thursday and leave Tuesday?"),
    ("Do I sign first and scan later?", "Do I scan first and sign later?"),
    ("회의 전에 켜고 수업 후에 끄나요?", "수업 후에 켜고 회의 전에 끄나요?"),
    # the two sides of one action
    ("예치금은 언제 돌려주나요?", "예치금은 언제 돌려받나요?"),
    ("May I lend a tutor my key?", "May I borrow a tutor's key?"),
    ("How do I switch it on?", "How do I switch it off?"),
    ("What is owed by us?", "What is owed to us?"),
    ("Who can edit slides I present?", "Who can present slides I edit?"),
    ("조교님이 고른 학생 명단은?", "조교님을 고른 학생 명단은?"),
    ("도장 대신 서명 되나요?", "도장 대신 세 명 되나요?"),
    ("며칠 쉬나요?", "며칠 일하나요?"),
    ("사물함은 어디서 신청하나요?", "사물함은 언제 신청하나요?"),
    ("사물함 신청 방법은?", "사물함 신청 방법과 기간은?"),
]


@pytest.mark.parametrize(("base", "other"), SAME)
def test_a_paraphrase_is_the_same(base: str, other: str) -> None:
    assert same_question(base, other).same, same_question(base, other).reason


@pytest.mark.parametrize(("base", "other"), DIFFERENT)
def test_a_trap_is_not_the_same(base: str, other: str) -> None:
    decision = same_question(base, other)
    assert not decision.same
    assert decision.reason and decision.reason.isprintable()


def test_the_reason_names_the_difference() -> None:
    assert same_question("May I stay for 3 nights?", "May I stay for 4 nights?").reason.startswith("number differs: 3")
    assert same_question("Who cleans the gym?", "Who cleans the sauna?").reason == "only in one: gym"
    assert same_question("휴학은?", "What is leave?").reason == "another language"


WORDS = [word for pair in (*SAME, *DIFFERENT) for question in pair for word in question.split()]
questions = st.one_of(
    st.text(max_size=200),
    st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join),
    st.sampled_from([question for pair in (*SAME, *DIFFERENT) for question in pair]),
)


@settings(max_examples=150)
@given(questions, questions)
def test_it_is_symmetric_and_total(left: str, right: str) -> None:
    assert same_question(left, right).same == same_question(right, left).same


@settings(max_examples=80)
@given(questions)
def test_it_is_reflexive_whatever_the_spacing_and_case(question: str) -> None:
    assert same_question(question, question).same
    assert same_question(question, f"  {question} ").same


@pytest.mark.parametrize(
    "piece", ["안 되", "1", "a-", "수 있", "how ", "⟦when⟧", "⟪0⟫", "가나다 ", "((", "\ud800", "not "]
)
def test_long_repetitions_are_bounded(piece: str) -> None:
    text = piece * (LONGEST // len(piece))
    assert not same_question(text, "how do I get a key?").same
    assert same_question(piece * 10_000, piece * 10_000).same
    assert not same_question(piece * 10_000, piece * 9_000).same
