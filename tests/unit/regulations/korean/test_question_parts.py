"""Questions that ask two things: where they are split, and how the articles of both parts are ordered."""

from __future__ import annotations

import pytest

from dtrag.regulations.korean.lexicon import built_in
from dtrag.regulations.korean.question_concepts import parts_of, read, with_best_of_parts


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            "기숙사 통금은 몇 시고 벌점 점수가 몇 점이면 쫓겨나요?",
            ("기숙사 통금은 몇 시고", "벌점 점수가 몇 점이면 쫓겨나요?"),
        ),
        ("휴학 신청은 언제 해요? 복학 서류는 어디에 내나요?", ("휴학 신청은 언제 해요?", "복학 서류는 어디에 내나요?")),
        (
            "휴학 기간은 몇 학기예요 그리고 재입학 신청은 언제 하나요",
            ("휴학 기간은 몇 학기예요", "재입학 신청은 언제 하나요"),
        ),
        (
            "입원할 때 보증금을 내야 하고 입원비 정산은 며칠마다 하나요?",
            ("입원할 때 보증금을 내야 하고", "입원비 정산은 며칠마다 하나요?"),
        ),
        (
            "How long is the library loan and what is the parking fee?",
            ("How long is the library loan", "what is the parking fee?"),
        ),
        ("휴학 그리고 복학", ("휴학", "복학")),
        ("휴학과 복학", ("휴학", "복학")),
        ("교수 승진 요건과 연구년 신청 방법 알려줘", ("교수 승진 요건", "연구년 신청 방법 알려줘")),
        (
            "등록금이랑 장학금 신청은 어떻게 해요?",
            ("등록금 신청은 어떻게 해요?", "장학금 신청은 어떻게 해요?"),
        ),
        ("조교 근무 시간과 혜택", ("조교 근무 시간", "조교 혜택")),
        (
            "연구년 때 월급은 나오는지, 다른 학교 강의해도 되는지",
            ("연구년 때 월급은 나오는지", "다른 학교 강의해도 되는지"),
        ),
        (
            "연구년 승인 절차가 어떻게 되고 기간은 얼마나 돼?",
            ("연구년 승인 절차가 어떻게 되고", "연구년 기간은 얼마나 돼?"),
        ),
        (
            "휴학은 몇 학기까지 돼요? 복학은 언제 해요? 자퇴 서류는 어디에 내나요?",
            ("휴학은 몇 학기까지 돼요?", "복학은 언제 해요?", "자퇴 서류는 어디에 내나요?"),
        ),
    ],
)
def test_a_question_that_asks_several_things_has_parts(question: str, expected: tuple[str, str]) -> None:
    assert parts_of(question) == expected
    assert [part.question for part in read(question, built_in()).parts] == list(expected)


@pytest.mark.parametrize(
    "question",
    [
        "휴학하고 싶어요",
        "졸업 시험을 보고 있는데 언제 끝나나요?",
        "전동킥보드 타고 다녀도 되나",
        "애 낳고 키우느라 학교를 쉬려는데 얼마나 쉴 수 있죠",
        "졸업논문 안 쓰고 자격증으로 때울 수 있나요",
        "컴퓨터공학과 한 학기 등록금이 몇 만 원이에요",
        "교육학과 학생은 얼마나 오래 휴학할 수 있나요?",
        "룸메이트랑 안 맞는데 방을 바꿀 수 있을까요?",
        "자격증이 전공이랑 맞으면 몇 점까지 주나요?",
        "기관 지침이랑 학교 규정이 달라요, 뭘 따르죠?",
        "실험 장비가 제대로 있는지 몇 년에 한 번 세어 보나요?",
        "서류는 몇 년 동안 안 버리고 둬야 하나요?",
        "채용 공고 지원 마감은 언제인가요?",
        "F 받은 과목 말고 몇 점 이하까지 다시 들을 수 있어요?",
        "학칙 제21조",
        "휴학은 몇 학기까지 돼요?",
        "",
    ],
)
def test_other_questions_have_none(question: str) -> None:
    assert parts_of(question) == ()
    assert read(question, built_in()).parts == ()


def test_the_best_article_of_each_part_follows_the_first_one() -> None:
    order = [("a", 0.9), ("b", 0.8), ("c", 0.7), ("d", 0.2)]
    parts = [[("a", 1.0), ("d", 0.5)], [("d", 0.6), ("a", 0.5)]]
    assert with_best_of_parts(order, parts) == [("a", 0.9), ("d", 0.8), ("b", 0.8), ("c", 0.7)]
    assert with_best_of_parts(order, [[("c", 1.0)], [("b", 1.0)]]) == [("a", 0.9), ("c", 0.8), ("b", 0.8), ("d", 0.2)]
    assert with_best_of_parts(order, [[("a", 1.0)], [("a", 1.0)]]) == order
    assert with_best_of_parts(order, [[], [("unknown", 1.0)]]) == order
