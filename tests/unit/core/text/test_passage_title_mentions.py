"""Titles and their mentions: the same form on both sides, and nothing that is a mere word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.text.passage_title_mentions import MOST_WORDS, mentions, title_key, title_number


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("The Silver Lantern", "It was filmed before The Silver Lantern came out."),
        ("Orla Quist (painter)", "She married the painter Orla Quist in 1931."),
        ("O'Hara-Webb", "a friend of O'Hara-Webb, it seems"),
        ("Harbour of the Nine", "near the Harbour of the Nine."),
        ("휴학규정", "이 경우에는 휴학규정을 따른다."),
        ("도서관 운영 규정", "세부 사항은 도서관 운영 규정에 따른다."),
        ("７th Street", "on 7th Street"),
    ],
)
def test_a_mention_matches_its_title(title: str, text: str) -> None:
    assert title_key(title) in mentions(text)


@pytest.mark.parametrize("text", ["the silver lantern", "", "of the", "The end."])
def test_words_without_a_capital_are_not_mentions(text: str) -> None:
    assert title_key("The Silver Lantern") not in mentions(text)


@pytest.mark.parametrize(
    "title", ["", "It", "휴학", "!?", "one two three four five six seven eight", "(only brackets)"]
)
def test_too_short_and_too_long_titles_are_ignored(title: str) -> None:
    assert title_key(title) == ""
    assert title_number(title_key(title)) == 0


def test_title_numbers_are_stable_and_distinct() -> None:
    assert title_number("silver lantern") == 1215897036181808954
    assert len({title_number(f"title {number}") for number in range(10_000)}) == 10_000


@given(st.text(max_size=200))
def test_any_text_is_accepted(text: str) -> None:
    found = mentions(text)
    assert len(found) == len(set(found))
    assert all(1 <= len(key.split()) <= MOST_WORDS for key in found)
    assert title_key(title_key(text)) == title_key(text) or title_key(text) == ""
