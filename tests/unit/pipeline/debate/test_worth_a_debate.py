"""A debate is for answers in doubt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.pipeline.debate.engine import SURE, worth_a_debate


@pytest.mark.parametrize(
    ("confidence", "decision", "expected"),
    [
        (0.99, "abstain", False),
        (0.0, "abstain", False),
        (0.99, "review", True),
        (0.1, "review", True),
        (SURE, "answer", False),
        (SURE - 0.01, "answer", True),
    ],
)
def test_when_a_debate_is_worth_its_cost(confidence: float, decision: str, expected: bool) -> None:
    assert worth_a_debate(confidence, decision) is expected


@given(st.floats(0, 1), st.floats(0, 1))
def test_less_confidence_never_makes_a_debate_less_worth(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert worth_a_debate(low, "answer") >= worth_a_debate(high, "answer")
