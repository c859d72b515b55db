"""Light paraphrases: seeded, never equal, and close to the question."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from dtrag.evaluation.case_memory import light_paraphrase
from tests.cases import each

QUESTIONS = (
    "휴학은 최대 몇 학기까지 할 수 있나요?",
    "장학금 신청 기한은 언제인가?",
    "How many days of annual leave does an employee have?",
    "리더?",
    "x",
)


@each("question", QUESTIONS)
def test_the_same_seed_gives_the_same_words(question: str) -> None:
    first = [light_paraphrase(question, random.Random(seed)) for seed in range(50)]
    assert first == [light_paraphrase(question, random.Random(seed)) for seed in range(50)]
    assert all(text != question for text in first)
    assert len(set(first)) > 1


@given(st.text(max_size=200), st.integers(0, 1000))
def test_any_text_has_one(question: str, seed: int) -> None:
    assert light_paraphrase(question, random.Random(seed)) != question
