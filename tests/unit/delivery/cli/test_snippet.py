"""The part of a passage that is shown for a query."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dtrag.delivery.cli.search import LENGTH, Snippet, snippet
from dtrag.retrieval.highlight import highlights


def shown(passage: str, query: str) -> Snippet:
    return snippet(passage, highlights(query, passage))


def marked(found: Snippet) -> list[str]:
    return [found.text[start:end] for start, end in found.matches]


def test_marks_stay_on_their_words_when_blanks_and_control_characters_go() -> None:
    found = shown("  The\n\tkettles \x1b[31mare  boiling.\u202e\nA kettle", "boiled kettle")
    assert found.text == "The kettles [31mare boiling. A kettle"
    assert marked(found) == ["kettles", "boiling", "kettle"]


def test_marks_over_several_words_stay_whole() -> None:
    assert marked(shown("학칙  제 12\n조의2에 따른다.", "제12조의2")) == ["제 12 조의2"]


def test_shows_the_stretch_where_the_words_stand_together() -> None:
    passage = "tea " + "nothing of note here " * 40 + "green tea with lemon " + "and nothing else " * 40
    found = shown(passage, "green tea lemon")
    assert found.text.startswith("… ") and found.text.endswith(" …")
    assert {"green", "tea", "lemon"} <= set(marked(found))
    assert len(found.text) <= LENGTH + 4


def test_a_short_passage_is_shown_whole_on_one_line() -> None:
    assert snippet("one\n  two\tthree ", ()).text == "one two three"


@given(st.text(max_size=600), st.text(max_size=40))
def test_the_spans_lie_inside_and_in_order(passage: str, query: str) -> None:
    found = shown(passage, query)
    assert len(found.text) <= LENGTH + 4
    ends = [0]
    for start, end in found.matches:
        assert ends[-1] <= start < end <= len(found.text)
        ends.append(end)
