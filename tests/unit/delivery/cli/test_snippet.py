"""The part of a passage that is shown for a query."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dtrag.delivery.cli.snippet import LENGTH, Snippet, snippet


def marked(found: Snippet) -> list[str]:
    return [found.text[start:end] for start, end in found.matches]


def test_marks_words_by_their_stems_and_leaves_stop_words() -> None:
    found = snippet("The kettles are boiling in the kitchen.", "a boiled kettle in the house")
    assert marked(found) == ["kettles", "boiling"]


def test_marks_the_syllable_pairs_of_korean_words() -> None:
    found = snippet("군휴학의 기간은 의무복무기간으로 한다.", "휴학 기간")
    assert marked(found) == ["휴학", "기간", "기간"]


def test_marks_identifiers_whole() -> None:
    assert marked(snippet("학칙 제12조의2에 따른다.", "제12조의2")) == ["제12조의2"]


def test_shows_the_stretch_where_the_words_stand_together() -> None:
    passage = "tea " + "nothing of note here " * 40 + "green tea with lemon " + "and nothing else " * 40
    found = snippet(passage, "green tea lemon")
    assert found.text.startswith("… ") and found.text.endswith(" …")
    assert {"green", "tea", "lemon"} <= set(marked(found))
    assert len(found.text) <= LENGTH + 4


def test_a_short_passage_is_shown_whole_on_one_line() -> None:
    assert snippet("one\n  two\tthree", "none").text == "one two three"


@given(st.text(max_size=600), st.text(max_size=40))
def test_the_spans_lie_inside_and_in_order(passage: str, query: str) -> None:
    found = snippet(passage, query)
    assert len(found.text) <= LENGTH + 4
    ends = [0]
    for start, end in found.matches:
        assert ends[-1] <= start < end <= len(found.text)
        ends.append(end)
