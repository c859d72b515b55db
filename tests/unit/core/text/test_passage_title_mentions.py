"""Titles and their mentions: the same form on both sides, and nothing that is a mere word."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.text.analysis import normalise
from dtrag.core.text.passage_title_mentions import MOST_WORDS, mentioned_numbers, mentions, title_key, title_number
from dtrag.core.text.patterns import HANGUL
from dtrag.core.text.questions import TITLE_PARTICLE


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


WORDS = "휴학 휴학규정을 화성이다 도서관 7층 AI The of Nine O'Hara-Webb Ⅳ ß é 학 ,".split()


@given(st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join) | st.text(max_size=60))
def test_mentions_are_all_runs_of_words_that_a_title_may_be(text: str) -> None:
    words = re.findall(r"[^\W_]+(?:['’.-][^\W_]+)*", text)
    borders = [word[0].isupper() or word[0].isdigit() or "가" <= word[0] <= "힣" for word in words]
    folded = [normalise(word) for word in words]
    keys: dict[str, None] = {}
    for start, word in enumerate(words):
        for end in range(start + 1, min(len(words), start + (3 if HANGUL.match(word) else 7)) + 1):
            if borders[start] and borders[end - 1]:
                last = folded[end - 1]
                for form in (last, TITLE_PARTICLE.sub("", last)):
                    key = " ".join([*folded[start : end - 1], form])
                    keys |= {key: None} if len(key) >= (3 if HANGUL.search(key) else 4) else {}
    assert mentions(text) == list(keys)
    assert mentioned_numbers(text).tolist() == [title_number(key) for key in keys]
