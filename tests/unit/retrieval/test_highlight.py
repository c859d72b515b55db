"""Highlights: the characters of a passage that match the query."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.core.text.analysis import Analyzer, normalise, terms
from dtrag.core.text.questions import content
from dtrag.retrieval.highlight import highlights


def marked(query: str, text: str) -> list[str]:
    return [text[start:end] for start, end in highlights(query, text)]


@pytest.mark.parametrize(
    ("query", "text", "words"),
    [
        ("run", "Running runs; the runner ran.", ["Running", "runs"]),
        ("a boiled kettle in the house", "The kettles are boiling in the kitchen.", ["kettles", "boiling"]),
        ("휴학 기간", "군휴학의 기간은 의무복무기간으로 한다.", ["휴학", "기간", "기간"]),
        ("휴학기간", "휴학기간의 연장", ["휴학기간"]),
        ("대학원생", "대학생과 대학원", ["대학", "대학원"]),
        ("제12조의2", "학칙 제 12조의2에 따라 제12조는", ["제 12조의2"]),
        ("BM25", "A bm25-based ranker, BM25; not bm250.", ["bm25", "BM25"]),
        ("text-embedding-3-small", "Use text-embedding-3-small here.", ["text-embedding-3-small"]),
        ("yaml", "It stands in config.yaml.", ["yaml"]),
        ("state", "a state-of-the-art state", ["state", "state"]),
        ("c++", "C++ and D#", ["C++"]),
        ("kettle", "The Kettle\u2019s lid", ["Kettle"]),
        ("O'Neil", "an O'Neil-like figure", ["O'Neil"]),
        ("don't", "I don't, dont", ["don't", "dont"]),
        ("Straße", "STRASSE, straße", ["STRASSE", "straße"]),
        ("office", "the o\ufb03ce", ["o\ufb03ce"]),
        ("BM25", "\uff22\uff2d\uff12\uff15!", ["\uff22\uff2d\uff12\uff15"]),
        ("café", "a cafe\u0301 and a CAF\u00c9", ["cafe\u0301", "CAF\u00c9"]),
        ("東京都", "東京都庁", ["東京都"]),
        ("Привет", "привет мир", ["привет"]),
    ],
)
def test_words_of_the_query_are_highlighted(query: str, text: str, words: list[str]) -> None:
    assert marked(query, text) == words


def test_question_words_and_particles_are_not_highlighted() -> None:
    text = "휴학은 할 수 있다. 등록금은 반환할 수 있나요라는 물음과 관련한 장학금은 따로 정한다."
    assert marked("휴학은 어떻게 할 수 있나요?", text) == ["휴학"]
    assert marked("the of and", "the end of the road and more") == []


def test_decomposed_text_is_highlighted_in_its_own_characters() -> None:
    text = unicodedata.normalize("NFD", "육아휴학은 1년까지")
    (span,) = highlights("휴학", text)
    assert unicodedata.normalize("NFC", text[span[0] : span[1]]) == "휴학"
    assert unicodedata.normalize("NFC", text[: span[0]]) == "육아"


@pytest.mark.parametrize(("query", "text"), [("", "text"), ("  ", "text"), ("word", ""), ("🦜", "a 🦜"), ("%", "5 %")])
def test_nothing_to_highlight(query: str, text: str) -> None:
    assert highlights(query, text) == ()


def test_terms_of_another_analyzer_are_highlighted_too() -> None:
    synonyms = Analyzer("with-synonyms", lambda _: ["kettl"])
    assert highlights("teapot", "a kettle", synonyms) == ((2, 8),)


PIECES = "run|Running|휴학|기간은|제12조|제 3 조의2|BM25-x|o'neil's|the|ﬃ|\u1112\u1172|\u11a8|\u0301|\u3131\u314f"
MORE = "\uff76\uff9e|か\u3099|İ|ẞ|ŉ|東京|\n| |\u00a0|\ufdfa|x's-y|c++|bosses'|v2.0's|제  7\n조"
WORDS = st.sampled_from(f"{PIECES}|{MORE}".split("|"))
TEXTS = st.lists(WORDS | st.text(max_size=4), max_size=30).map("".join) | st.text(max_size=200)
PLAIN = TEXTS.filter(
    lambda text: not set("'’") & set(normalise(text))
)  # what stands before an apostrophe depends on it


@given(TEXTS, TEXTS)
def test_spans_are_inside_the_text_sorted_and_disjoint(query: str, text: str) -> None:
    last = -1
    for start, end in highlights(query, text):
        assert last < start < end <= len(text)
        last = end


@given(TEXTS, TEXTS)
def test_there_are_highlights_exactly_when_a_term_is_shared(query: str, text: str) -> None:
    shared = set(terms(content(query))) & set(terms(text))
    assert bool(highlights(query, text)) == bool(shared)


@given(PLAIN, PLAIN)
def test_the_highlights_contain_every_shared_term(query: str, text: str) -> None:
    found = marked(query, text)
    shared = set(terms(content(query))) & set(terms(text))
    assert shared <= {term for word in found for term in terms(word)}


@given(PLAIN, PLAIN)
def test_highlighted_text_is_highlighted_as_a_whole(query: str, text: str) -> None:
    for word in marked(query, text):
        assert marked(query, word) == [word]


@given(TEXTS)
def test_the_same_query_gives_the_same_spans(text: str) -> None:
    assert highlights("휴학 run", text) == highlights("휴학 run", text)
    composed = unicodedata.normalize("NFC", text)
    loose_letters = any("\u1100" <= character <= "\u11ff" for character in text)  # letters that no syllable has
    if composed == text and not loose_letters:
        assert len(highlights("휴학", text)) == len(highlights("휴학", unicodedata.normalize("NFD", text)))
