"""The line about an earlier question that asked the same, in the language of the question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtrag.core.text.analysis import language
from dtrag.delivery.cli.console import safe

if TYPE_CHECKING:
    from dtrag.core.documents import Answer


def answered_before_line(answer: Answer) -> str:
    """Which earlier question asked the same, when it was answered, and what people said of it; "" for none."""
    before = answer.answered_before
    if before is None:
        return ""
    question, votes = " ".join(safe(before.question).split()), before.votes
    if language(answer.question) == "ko":
        quoted = f" “{question}”" if question else ""
        return f"이미 답한 질문{quoted} ({before.date}, 찬성 {votes.up:,} · 반대 {votes.down:,})"
    quoted = f": “{question}”" if question else ""
    return f"Answered before{quoted} ({before.date}, {votes.up:,} up, {votes.down:,} down)"
