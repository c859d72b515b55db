"""A trace on the terminal: every part of it, in 80 columns."""

from __future__ import annotations

import datetime
import uuid

import pytest

from dtrag.core.trace import CallTrace, StepTrace, Trace
from dtrag.delivery.cli.console import show_result
from dtrag.delivery.cli.trace import _rows, _show

FOUND = Trace(
    trace_id=uuid.UUID(int=7),
    created_at=datetime.datetime(2030, 1, 31, 12, tzinfo=datetime.UTC),
    owner="",
    question="휴학은 최대 몇 학기까지 할 수 있나요? " * 6,
    answer="두 학기까지 할 수 있다. [1]",
    decision="review",
    confidence=0.625,
    taxonomy_version="1.0.0",
    seconds=4.25,
    degraded=("llm", "vector"),
    document_ids=("d",),
    steps=(
        StepTrace("intent", 0.0001, 0.1, "done"),
        StepTrace(
            "tools_debate",
            3.25,
            12.5,
            "timeout",
            {"tools": {"calculator": True, "web_search": False}, "names": ["a", "b"], "none": [], "score": 0.25},
        ),
    ),
    calls=(
        CallTrace(
            "debate", "openai:a-model-with-a-rather-long-name", 1.5, 12_000, 500, 3.25, "", "the prompt", "reply"
        ),
        CallTrace("compose", "m", 0.5, 0, 0, 0.0, "The language model 'm' returned no usable answer: it is away."),
    ),
    debate={
        "final_answer": "In the end: two terms.",
        "affirmative_answers": ["It is two.", "Two it is."],
        "critical_answers": ["Is it?\x1b[31m"],
        "rounds": 2,
        "calls_by_phase": {"round_1": 2},
    },
)


def test_every_part_is_shown_in_80_columns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _show(FOUND, {"d": "Leave of absence"})
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    for part in (
        "review, confidence 0.62",
        "4,250 ms",
        "llm, vector",
        "Leave of absence",
        "<1",
        "12,500",
        "timeout",
        "calculator: yes",
        "web_search: no",
        "none none",
        "score 0.25",
        "12,000+500",
        "3.25 won",
        "it is away.",
        "Call 1, prompt:\n  the prompt",
        "Round 1, affirmative:\n  It is two.",
        "Round 1, critical:\n  Is it?",
        "Round 2, affirmative:\n  Two it is.",
        "Final answer:\n  In the end: two terms.",
        "round_1: 2",
    ):
        assert part in out, part
    assert "\x1b[31m" not in out


def test_the_list_names_what_was_done_without(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    show_result(False, {}, _rows([FOUND], short=True))
    shown = capsys.readouterr()
    assert max(map(len, shown.out.splitlines())) <= 80
    assert str(FOUND.trace_id) in shown.out
    assert "review" in shown.out
    assert "without llm, vector" in " ".join(shown.out.split())
