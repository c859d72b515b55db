"""Arithmetic is found in questions, and dates, telephone numbers, articles and ranges are none."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.pipeline.planner import MAX_LENGTH, expression_of
from dtrag.tools.builtin.calculator import CalculationError, evaluate
from tests.growth import grows_linearly


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("1,200의 15%는?", "1200 * 15 / 100"),
        ("3만 원의 10%는 얼마인가요?", "3 * 10000 * 10 / 100"),
        ("정원 1,200명의 15%는 몇 명인가요?", "1200 * 15 / 100"),
        ("What is 12*(3+4)?", "12*(3+4)"),
        ("(What is 3 + 4?)", "3 + 4"),
        ("What is 15% of 1,200?", "1200 * 15 / 100"),
        ("15 percent of 80", "80 * 15 / 100"),
        ("calculate 1200 * 15%", "1200 * (15 / 100)"),
        ("(1,200 + 300) × 2 ÷ 5는 얼마야?", "(1200 + 300) * 2 / 5"),
        ("연구비 500*3+20을 계산해 줘", "500*3+20"),
        ("12 더하기 3은?", "12 + 3"),
        ("12 minus 3 please", "12 - 3"),
        ("what is 7 times 8", "7 * 8"),
        ("84 나누기 4는?", "84 / 4"),
        ("2^10은?", "2**10"),
        ("３＋４＝？", "3+4"),
        ("-5 + 3", "-5 + 3"),
        ("10/4?", "10/4"),
    ],
)
def test_arithmetic_is_found(question: str, expected: str) -> None:
    assert expression_of(question) == expected
    evaluate(expected)


@pytest.mark.parametrize(
    "question",
    [
        "",
        "휴학은 최대 몇 학기까지?",
        "제3-2조는 무엇인가요?",
        "제3조의2는?",
        "2024-03-01은 무슨 요일인가요?",
        "2024-12-25는?",
        "2024/2025 학년도는?",
        "010-1234-5678은?",
        "+82 2 123 4567",
        "24/7 support",
        "9-18시 근무인가요?",
        "9 - 18시 근무인가요?",
        "1+1 행사 기간은?",
        "What is C++ 3 + 4?",
        "BM25 - what is it?",
        "GPT-4 + 5 others",
        "전체 정원 400명의 30% 이상이 찬성해야 하나요?",
        "The rate of 5% of 200 people fell. Why?",
        "3 +",
        "1 2 3",
        "=1+",
        "5",
        "(3)",
        "1+" * 150 + "1",
    ],
)
def test_other_text_with_digits_is_not_arithmetic(question: str) -> None:
    assert expression_of(question) is None


@given(st.text(st.sampled_from("0123456789 .,()+-*/%^×÷=?는의원만계산of")), st.text(max_size=20))
def test_every_expression_is_short_and_only_arithmetic(question: str, more: str) -> None:
    found = expression_of(question + more)

    if found is not None:
        assert len(found) <= MAX_LENGTH + 20
        assert set(found) <= set("0123456789 .()+-*/%")
        with contextlib.suppress(CalculationError):  # 1/0 is arithmetic, too
            evaluate(found)


@pytest.mark.parametrize(
    "piece", ["(", "1+", "1 ", "1,1", "%", "1%", "- ", " ", "1.", "is ", "2024-1", "1 의 ", "1%of ", "값", "1 더하기 "]
)
def test_no_question_takes_long(piece: str) -> None:
    assert grows_linearly(lambda repeats: expression_of(piece * repeats), 5_000)
