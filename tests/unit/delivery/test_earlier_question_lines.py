"""The lines of the terminal about earlier questions."""

from __future__ import annotations

from dtrag.core.documents import Answer, CaseVotes, EarlierQuestion
from dtrag.delivery.cli.ask import earlier_question_lines

LEAVE = EarlierQuestion("c", "휴학은 몇 학기까지 되나요?", "2030-01-31", CaseVotes(2, 1))
TERMS = EarlierQuestion("d", "휴학 기간은 얼마인가요?", "2030-02-01", CaseVotes(1, 0))


def lines(question: str, before: EarlierQuestion | None, *offered: EarlierQuestion) -> list[str]:
    answer = Answer(question, "Text.", (), 0.9, "answer", {}, answered_before=before, offered=offered)
    return earlier_question_lines(answer)


def test_the_question_that_asked_the_same_comes_first_in_one_line_each() -> None:
    before = EarlierQuestion("c", "How long\x1b[2J\nis leave?", "2030-01-31", CaseVotes(2, 1))
    [same, similar] = lines("How long is leave?", before, TERMS)
    assert same.startswith("Answered before: “How long")
    assert same.endswith("is leave?” (2030-01-31, 2 up, 1 down)")
    assert "\x1b" not in same
    assert "\n" not in same
    assert similar == "Asked before: “휴학 기간은 얼마인가요?” (2030-02-01, 1 up, 0 down)"


def test_in_korean_for_a_korean_question() -> None:
    assert lines(LEAVE.question, LEAVE, TERMS) == [
        "이미 답한 질문: “휴학은 몇 학기까지 되나요?” (2030-01-31, 찬성 2 · 반대 1)",
        "이전에 비슷한 질문: “휴학 기간은 얼마인가요?” (2030-02-01, 찬성 1 · 반대 0)",
    ]


def test_without_a_text_and_without_a_case() -> None:
    assert lines("How long?", None) == []
    before = EarlierQuestion("c", "", "2030-01-31", CaseVotes(1, 0))
    assert lines("How long?", before) == ["Answered before (2030-01-31, 1 up, 0 down)"]
