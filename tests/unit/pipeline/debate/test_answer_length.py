"""Lengths are never below the number of words, and a cut keeps its limit, whatever the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.text.token_counts import answer_tokens
from dtrag.pipeline.debate.agent import cut, statements

TEXTS = st.text(st.sampled_from("ab 가나.\n[1]?! 漢かー"), max_size=300)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("  \n ", 0),
        ("Retrieval-Augmented Generation, as it is called.", 6),
        ("a" * 240, 10),
        ("휴학은", 2),
        ("휴학은 통산 네 학기를 초과할 수 없다.", 2 + 1 + 1 + 2 + 2 + 1 + 1),
        ("가" * 1_000, 500),
    ],
)
def test_a_word_is_a_token_and_two_syllables_are_one(text: str, expected: int) -> None:
    assert answer_tokens(text) == expected


@given(TEXTS, st.integers(1, 40))
def test_a_cut_text_keeps_the_limit_and_is_a_beginning(text: str, limit: int) -> None:
    kept = cut(text, limit)

    assert len(kept.split()) <= limit
    assert answer_tokens(kept.removesuffix("…")) <= limit
    assert text.strip().startswith(kept.removesuffix("…").strip())
    if answer_tokens(text) <= limit:
        assert kept == text.strip()


def test_whole_sentences_are_kept_where_they_are_most_of_it() -> None:
    assert (
        cut("One two three. [1] Four five six. [2] Seven eight nine ten.", 10)
        == "One two three. [1] Four five six. [2]"
    )


def test_words_are_kept_where_the_only_sentence_is_short() -> None:
    assert cut("Yes. " + "word " * 50, 20) == "Yes. " + " ".join(["word"] * 19) + "…"


def test_one_endless_word_is_cut_inside() -> None:
    assert cut("가" * 5_000, 500) == "가" * 1_000 + "…"


def test_a_statement_keeps_the_numbers_that_follow_it() -> None:
    assert statements("It is so. [1][2] It is not. [3]\n[4] Third one [5].") == [
        "It is so. [1][2]",
        "It is not. [3] [4]",
        "Third one [5].",
    ]


def test_numbers_without_a_sentence_before_them_stay_with_what_follows() -> None:
    assert statements("[1] First.") == ["[1] First."]
