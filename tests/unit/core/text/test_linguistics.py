"""What kind of value a question asks for."""

from __future__ import annotations

import pytest

from dtrag.core.text.linguistics import counted_answer


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("책을 몇 권까지 빌릴 수 있나요", "학부생은 10권까지", "2회까지 연장한다"),
        ("재수강은 몇 번까지", "재수강은 통산 3회로 한다", "3학점을 넘지 못한다"),
        ("며칠 안에 내야 하나요", "종료 후 7일 이내", "제7조에 따른다"),
        ("연체료가 얼마예요", "1일 100원", "7일 이내"),
        ("위원은 몇 명인가요", "위원 5인 이상", "위원회를 둔다"),
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
