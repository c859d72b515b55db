"""The table of the words of questions: each meaning finds its examples and refuses the others."""

from __future__ import annotations

from dtrag.core.text.question_words import asks, table, words_for
from tests.cases import each


@each("meaning", sorted(table()))
def test_a_meaning_finds_and_refuses_its_examples(meaning: str) -> None:
    row = table()[meaning]
    assert row["finds"] and row["refuses"] and words_for(meaning)
    assert len(set(words_for(meaning))) == len(words_for(meaning)), "a word is listed twice"
    assert all(asks(text, meaning) for text in row["finds"]), row
    assert not any(asks(text, meaning) for text in row["refuses"]), row
