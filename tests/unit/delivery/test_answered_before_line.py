"""The line of `dtrag ask` about an earlier answer."""

from __future__ import annotations

from dtrag.core.documents import Answer, AnsweredBefore, CaseVotes
from dtrag.delivery.cli.answered_before import answered_before_line


def answer(question: str, before: AnsweredBefore | None) -> Answer:
    return Answer(question, "Text.", (), 0.9, "answer", "", {}, answered_before=before)


def test_it_is_in_the_language_of_the_question() -> None:
    before = AnsweredBefore("c", "How long\x1b[2J\nis leave?", "2030-01-31", CaseVotes(2, 1))
    line = answered_before_line(answer("How long is leave?", before))
    assert line.startswith("Answered before: “How long")
    assert line.endswith("(2030-01-31, 2 up, 1 down)")
    assert "\x1b" not in line
    assert "\n" not in line
    korean = AnsweredBefore("c", "휴학은 몇 학기까지 되나요?", "2030-01-31", CaseVotes(2, 1))
    line = answered_before_line(answer("휴학은 몇 학기까지 되나요?", korean))
    assert line == "이미 답한 질문 “휴학은 몇 학기까지 되나요?” (2030-01-31, 찬성 2 · 반대 1)"


def test_without_a_case_there_is_none_and_without_text_no_question() -> None:
    assert answered_before_line(answer("How long?", None)) == ""
    before = AnsweredBefore("c", "", "2030-01-31", CaseVotes(1, 0))
    assert answered_before_line(answer("How long?", before)) == "Answered before (2030-01-31, 1 up, 0 down)"
