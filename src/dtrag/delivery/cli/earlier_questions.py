"""The lines about earlier questions of the case memory, in the language of the question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtrag.core.text.analysis import language
from dtrag.delivery.cli.console import safe

if TYPE_CHECKING:
    from dtrag.core.documents import Answer, EarlierQuestion


def earlier_question_lines(answer: Answer) -> list[str]:
    """The earlier question that asked the same, then similar ones: when they were answered, and what people said."""
    is_korean = language(answer.question) == "ko"
    same, similar = ("이미 답한 질문", "이전에 비슷한 질문") if is_korean else ("Answered before", "Asked before")
    lines = [] if answer.answered_before is None else [_line(same, answer.answered_before, is_korean=is_korean)]
    return [*lines, *(_line(similar, each, is_korean=is_korean) for each in answer.offered)]


def _line(label: str, earlier: EarlierQuestion, *, is_korean: bool) -> str:
    question, votes = " ".join(safe(earlier.question).split()), earlier.votes
    quoted = f": “{question}”" if question else ""
    counts = f"찬성 {votes.up:,} · 반대 {votes.down:,}" if is_korean else f"{votes.up:,} up, {votes.down:,} down"
    return f"{label}{quoted} ({earlier.date}, {counts})"
