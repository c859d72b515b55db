"""Tokens of a text, estimated."""

from __future__ import annotations

import pytest

from dtrag.core.text.token_counts import estimated_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("가나다", 3), ("가나다 abc", 4), ("연차는 26일이다.", 6 + 1)],
)
def test_a_syllable_is_one_and_four_other_characters_are_one(text: str, tokens: int) -> None:
    assert estimated_tokens(text) == tokens
