"""Numbers in every spelling, and what a passage holds of a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.core.answers.grounding import claim_of, combined_support, denied, passage_sentences, support_of
from dtrag.core.text.numbers import numbers_in, spelt_numbers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,000 and 07 and 3.0", {"1000", "7", "3"}),
        ("2.5 million", {"2500000"}),
        ("250만 원", {"2500000"}),
        ("1억 5천만", {"150000000"}),
        ("twelve men, twice", {"12", "2"}),
        ("one of them", set()),
        ("２０２４년", {"2024"}),
        ("no number", set()),
    ],
)
def test_numbers_that_a_text_states(text: str, numbers: set[str]) -> None:
    assert set(spelt_numbers(text)) == numbers


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("네 학기", "4"),
        ("삼십 일", "30"),
        ("십이 개월", "12"),
        ("이 년", "2"),
        ("the fifth", "5"),
        ("once a year", "1"),
        ("2,500,000원", "2500000"),
        ("10:30", "30"),
    ],
)
def test_numbers_that_a_passage_holds_also_in_words(text: str, number: str) -> None:
    assert number in numbers_in(text)


@pytest.mark.parametrize(
    "text", ["It is not so.", "It doesn't.", "할 수 없다.", "하지 않는다.", "출입을 금지한다.", "아니다"]
)
def test_denials(text: str) -> None:
    assert denied(text)


@pytest.mark.parametrize("text", ["It is so.", "The knot is tied.", "할 수 있다.", "안내한다.", "못을 박는다."])
def test_texts_without_a_negation(text: str) -> None:
    assert not denied(text)


def test_the_first_word_of_a_heading_is_not_a_name() -> None:
    assert claim_of("# Opening of the Valve").names == {"valve": "Valve"}


def test_the_closest_sequence_of_sentences_supports_a_claim() -> None:
    text = "Boilers hum. The valve closes at nine. Students rest."
    found = support_of(claim_of("The valve closes at nine."), passage_sentences(text))
    assert (text[found.start : found.end], found.share, found.reason) == ("The valve closes at nine.", 1.0, "")
    wide = support_of(claim_of("Boilers hum while the valve closes."), passage_sentences(text))
    assert text[wide.start : wide.end] == "Boilers hum. The valve closes at nine."


def test_title_and_headings_of_a_passage_count() -> None:
    claim = claim_of("In the Valve rules of 2024 students rest.")
    assert support_of(claim, passage_sentences("Students rest.")).reason == "the number 2024 is not in the passage"
    assert support_of(claim, passage_sentences("Students rest.", "Valve rules 2024")).reason == ""


def test_a_number_must_occur_in_the_supporting_sentences() -> None:
    text = "The valve closes at 9 every day. The gate is shut by hand. Ropes are long. The door closes at 10."
    assert "is not where" in support_of(claim_of("The valve closes at 10 every day."), passage_sentences(text)).reason


def test_several_passages_support_a_claim_together() -> None:
    claim = claim_of("Ada Bell founded the library in 1904.")
    one, other = passage_sentences("Ada Bell founded it."), passage_sentences("The library is from 1904.")
    assert support_of(claim, one).reason
    assert combined_support(claim, (*one, *other)).reason == ""
    assert combined_support(claim, ()).share == 0.0


@settings(max_examples=150)
@given(st.text(max_size=80), st.text(max_size=200))
def test_any_text_has_a_support_between_0_and_1(sentence: str, passage: str) -> None:
    found = support_of(claim_of(sentence), passage_sentences(passage))
    assert 0.0 <= found.share <= 1.0 + 1e-9
    assert 0 <= found.start <= found.end <= len(passage)
