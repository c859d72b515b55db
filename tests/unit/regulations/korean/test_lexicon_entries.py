"""Own entries of the lexicon: what is accepted, how they are stored and exported, their weight beside built-in ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.lexicon_entry import LexiconEntry
from dtrag.errors import InvalidInput
from dtrag.regulations.korean.lexicon import OWN_FIELD, Entry, Lexicon, built_in
from dtrag.regulations.korean.lexicon_entries import (
    MAX_FORMS,
    MAX_LENGTH,
    as_stored,
    checked_words,
    for_matching,
    from_stored,
    from_toml,
    next_number,
    to_toml,
)
from dtrag.regulations.korean.question_concepts import read

ENTRY = LexiconEntry(3, ("책을 잃어버",), ("도서분실", "변상"))


def test_forms_are_normalised_and_each_once() -> None:
    assert checked_words([" 책을  잃어버 ", "책을 잃어버", "WiFi 안돼"], "도서분실") == (
        ("책을 잃어버", "wifi 안돼"),
        ("도서분실",),
    )


@pytest.mark.parametrize(
    ("spoken", "official", "message"),
    [
        ([], ["휴학"], "needs 1 to 20 spoken forms"),
        (["쉬는 거"], [" "], "needs 1 to 10 official words"),
        (["쉬"], ["휴학"], "would match nearly every question"),
        (["?!"], ["휴학"], "would match nearly every question"),
        (["과 바꾸"], ["전과"], "'과를', which matches the whole word only"),
        (["방 바꾸"], ["호실"], "'방을', which"),
        (["쉬는 거"], ["휴"], "official word '휴' is too short"),
        (["쉬는 거"], ["…!"], "official word '…!' is too short"),
        (["쉬는\x00거"], ["휴학"], "control characters"),
        (["쉬는 거"], ["휴\ud800학"], "control characters"),
        (["가나" * MAX_LENGTH], ["휴학"], f"over {MAX_LENGTH} characters"),
        ([f"말{number}" for number in range(MAX_FORMS + 1)], ["휴학"], "this one has 21"),
        ([3], ["휴학"], "must be a text"),
    ],
)
def test_entries_that_would_match_everything_or_nothing_are_refused(
    spoken: list[str], official: list[str], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        checked_words(spoken, official)


def test_a_syllable_with_its_particle_and_a_stem_at_the_end_are_accepted() -> None:
    assert checked_words(["과를 바꾸", "학교 쉬"], "전과")[0] == ("과를 바꾸", "학교 쉬")


def test_what_is_stored_is_read_again() -> None:
    stored = as_stored([ENTRY], 9)
    assert from_stored(stored) == [ENTRY]
    assert next_number(stored, [ENTRY]) == 9
    assert next_number(None, []) == 1
    assert next_number({"next": "x"}, [ENTRY]) == 4


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "entries",
        {"entries": 3},
        {"entries": [None, 3, {}, {"number": 1}, {"number": 1, "spoken": 5, "official": ["휴학"]}]},
        {"entries": [{"number": 1, "spoken": ["쉬"], "official": ["휴학"]}]},
        {"entries": [{"number": 1, "spoken": [["쉬는 거"]], "official": {"휴학": 1}}]},
    ],
)
def test_a_damaged_setting_has_no_entries_and_raises_nothing(value: object) -> None:
    assert from_stored(value) == []


WORDS = st.lists(
    st.text(st.characters(categories=("L", "N", "P", "S", "Zs")), min_size=2, max_size=20), min_size=1, max_size=4
)


@given(WORDS, WORDS)
def test_an_export_is_read_again(spoken: list[str], official: list[str]) -> None:
    try:
        words = checked_words(spoken, official)
    except InvalidInput:
        return
    assert from_toml(to_toml([LexiconEntry(1, *words), ENTRY])) == [words, (ENTRY.spoken, ENTRY.official)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("entries = [", "not a TOML file"),
        ("", r"no \[\[entries\]\]"),
        ("entries = 3", r"no \[\[entries\]\]"),
        ('[[entries]]\nspoken = "책"\nofficial = ["변상"]', "Entry 1 of the file"),
        ('[[entries]]\nspoken = ["책을"]\nofficial = ["변상"]\nwords = 1', "Entry 1 of the file"),
        (
            '[[entries]]\nspoken = ["책을"]\nofficial = ["변상"]\n[[entries]]\nspoken = ["책"]\nofficial = ["변상"]',
            "Entry 2",
        ),
    ],
)
def test_the_first_wrong_entry_of_a_file_is_named(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        from_toml(text)


def test_own_entries_leave_the_synonyms_as_they_are() -> None:
    larger = built_in().with_entries(for_matching([ENTRY]))
    assert larger.synonyms == built_in().synonyms
    assert len(larger.entries) == len(built_in().entries) + 1
    assert not [entry for entry in built_in().entries if entry.field == OWN_FIELD]


def test_the_official_words_of_an_own_entry_come_before_those_of_a_built_in_one_with_the_same_form() -> None:
    lexicon = Lexicon.of([Entry(("책을 잃어버",), ("변제",))]).with_entries(
        for_matching([LexiconEntry(1, ("책을 잃어버",), ("도서분실", "망실", "배상"))])
    )
    assert read("책을 잃어버렸어요", lexicon).official == ("도서분실", "망실", "배상", "변제")
