"""The one analyzer: what becomes a term, what counts as the same text, where sentences end."""

from __future__ import annotations

import gc
import random
import re
import tracemalloc
import unicodedata
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrag.core.text.analysis import (
    STOP_WORDS,
    TERM_SPACE,
    Analyzer,
    clean,
    language,
    normalise,
    sentences,
    term_id,
    term_ids,
    terms,
)

ANYTHING = st.text(st.characters(), max_size=60)
"""Every code point, lone surrogates included."""
WRITTEN = st.text(st.sampled_from("ab Z.!?…\"')]”①②가나제조12의\n\t 　。,-"), max_size=80)
"""Dense in what sentence ends are made of."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BM25", ["bm25"]),
        ("제12조의2", ["제12조의2"]),
        ("제12조", ["제12조"]),
        ("C++", ["c++", "c"]),
        ("C#", ["c#", "c"]),
        ("R&D", ["r&d", "r", "d"]),
        ("node.js", ["node.js", "node", "js"]),
        ("text-embedding-3-small", ["text-embedding-3-small", "text", "embed", "3", "small"]),
        ("2024-03-01", ["2024-03-01", "2024", "03", "01"]),
    ],
)
def test_an_identifier_gives_itself_and_its_parts(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize("spelling", ["제12조의2", "제 12 조의 2", "제12조의 2", "제 12조의2", "제１２조의２"])
def test_every_spelling_of_an_article_is_one_term(spelling: str) -> None:
    assert terms(spelling) == ["제12조의2"]


def test_an_article_and_its_branch_are_different_terms() -> None:
    assert set(terms("제12조")).isdisjoint(terms("제12조의2"))
    assert terms("제12조제1항")[0] == "제12조"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("한글", ["한글"]),
        ("대학교", ["대학", "학교"]),
        ("도서관은", ["도서", "서관", "관은"]),
        ("한", ["한"]),
        ("등록금 납부", ["등록", "록금", "납부"]),
        ("東京都", ["東京", "京都"]),
        ("AI대학원", ["ai", "대학", "학원"]),
    ],
)
def test_hangul_and_cjk_become_bigrams(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_english_words_are_stemmed_in_order_with_repetitions() -> None:
    assert terms("Libraries and the library: running, runs") == ["librari", "librari", "run", "run"]


def test_stop_words_are_never_terms() -> None:
    assert terms(" ".join(STOP_WORDS) + " " + " ".join(STOP_WORDS).upper()) == []


def test_a_possessive_is_its_noun_and_a_hyphenated_word_its_parts() -> None:
    assert terms("the user's well-known e-mail") == ["user", "well", "known", "e", "mail"]
    assert terms("user’s") == terms("user")


def test_other_scripts_give_words() -> None:
    assert terms("Привет, мир") == ["привет", "мир"]


@pytest.mark.parametrize("text", ["", " \n\t", "?!…", "👩‍🔬🧪", "' -- ;", "& | ! <->", "\x00", "___"])
def test_a_text_without_words_has_no_terms(text: str) -> None:
    assert terms(text) == []


@pytest.mark.parametrize("text", ["휴학은 최대 몇 학기까지", "제12조의2(등록)", "café Ångström", "한국어 BM25"])
def test_decomposed_text_has_the_terms_of_composed_text(text: str) -> None:
    decomposed = unicodedata.normalize("NFD", text)
    assert decomposed != text
    assert terms(decomposed) == terms(text)


def test_full_width_and_half_width_forms_are_equal() -> None:
    assert normalise("ＢＭ２５　Ａｉ") == normalise("BM25 AI") == "bm25 ai"
    assert terms("ＢＭ２５") == ["bm25"]
    assert normalise("ﾃｽﾄ") == normalise("テスト")


@pytest.mark.parametrize(("one", "other"), [("straße", "STRASSE"), ("K", "k"), ("ﬁne", "FINE"), ("Σίσυφος", "ΣΊΣΥΦΟΣ")])
def test_case_is_folded_for_every_script(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


def test_normalise_reduces_white_space_to_single_spaces() -> None:
    assert normalise(" a \t\n b　　c\u00a0") == "a b c"


@settings(max_examples=100)
@given(ANYTHING)
def test_normalise_is_idempotent(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
    assert once == once.strip()
    assert "  " not in once


@settings(max_examples=100)
@given(ANYTHING)
def test_any_text_has_terms_that_have_ids_and_are_those_of_its_folded_form(text: str) -> None:
    found = terms(text)
    assert found == terms(normalise(text))
    assert all(0 <= term_id(term) < TERM_SPACE for term in found)
    assert all(term and not re.search(r"\s", term) for term in found)


@settings(max_examples=60)
@given(ANYTHING, ANYTHING)
def test_terms_of_two_paragraphs_are_the_terms_of_each(one: str, other: str) -> None:
    assert terms(f"{one} .\n. {other}") == terms(one) + terms(other)


@settings(max_examples=100)
@given(WRITTEN | ANYTHING)
def test_counts_are_those_of_the_ids_of_the_terms(text: str) -> None:
    assert Analyzer().counts(text) == Counter(map(term_id, terms(text)))
    more = Analyzer("m", terms)
    assert more.counts(text) == Counter(map(term_id, more.terms(text)))


@settings(max_examples=100)
@given(st.text(st.characters(max_codepoint=127), max_size=60) | st.text("aB1 .-_'#+&/", max_size=60))
def test_a_text_in_ascii_has_the_same_terms_beside_another_script(text: str) -> None:
    assert terms(f"{text}\n漢字") == [*terms(text), "漢字"]


def test_term_ids_do_not_change_between_versions_and_machines() -> None:
    assert [term_id(term) for term in ("bm25", "제12조의2", "librari", "한글")] == [
        465834405,
        855770842,
        98691496,
        620031593,
    ]


def test_clean_drops_only_what_a_database_cannot_store() -> None:
    assert clean("a\x00b\ud800c\udfff") == "abc"
    text = "가\u200b① \U0001f600\x01"
    assert clean(text) == text


@settings(max_examples=60)
@given(ANYTHING)
def test_clean_text_can_be_encoded(text: str) -> None:
    assert b"\x00" not in clean(text).encode("utf-8")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("휴학은 최대 몇 학기까지 할 수 있나요?", "ko"),
        ("BM25와 벡터 search 차이", "ko"),
        ("How many days of leave are there?", "en"),
        ("The word 한글 names the script of the Korean language.", "en"),
        ("Привет, мир", "und"),
        ("東京都", "und"),
        ("café", "en"),
        ("2024. 3. 1.", "und"),
        ("", "und"),
        ("👩‍🔬", "und"),
    ],
)
def test_language_is_detected_by_script(text: str, expected: str) -> None:
    assert language(text) == expected


def test_a_text_with_a_quarter_of_hangul_letters_is_korean() -> None:
    assert language("한" + "a" * 3) == "ko"
    assert language("한" + "a" * 4) == "en"


def _split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("끝이다. 다음이다. 또 있다", ["끝이다.", "다음이다.", "또 있다"]),
        ("Dr. Smith came. He left.", ["Dr. Smith came.", "He left."]),
        ("J. K. Lee wrote it. It sold.", ["J. K. Lee wrote it.", "It sold."]),
        ("See e.g. Kim, No. 127. Next.", ["See e.g. Kim, No. 127.", "Next."]),
        ("2024. 3. 1. 시행한다. 이후에는 없다.", ["2024. 3. 1. 시행한다.", "이후에는 없다."]),
        ("제1조 ① 가나다 ② 라마바", ["제1조", "① 가나다", "② 라마바"]),
        ("1. First item\n2. Second item", ["1. First item", "2. Second item"]),
        ("가. 학부\n나. 대학원", ["가. 학부", "나. 대학원"]),
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        ("He left (at six.) She came.", ["He left (at six.)", "She came."]),
        ("그는 “가라.” 하고 말했다.", ["그는 “가라.”", "하고 말했다."]),
        ("Version 2.5 is out. it is", ["Version 2.5 is out. it is"]),
        ("  padded  \n\n  lines  ", ["padded", "lines"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_sentences_end_at_sentence_boundaries(text: str, expected: list[str]) -> None:
    assert _split(text) == expected


@settings(max_examples=200)
@given(WRITTEN | ANYTHING)
def test_sentences_are_trimmed_spans_in_order_that_cover_everything_but_white_space(text: str) -> None:
    covered, last = [False] * len(text), 0
    for start, end in sentences(text):
        assert last <= start < end <= len(text)
        assert text[start:end] == text[start:end].strip()
        covered[start:end] = [True] * (end - start)
        last = end
    assert all(done or character.isspace() for done, character in zip(covered, text, strict=True))


def test_a_long_run_of_initials_is_one_sentence_however_long() -> None:
    text = "A. " * 100_000
    assert list(sentences(text)) == [(0, len(text) - 1)]


def test_terms_of_long_runs_are_not_remembered() -> None:
    """A corpus in Chinese, whose runs are as long as a passage, would fill the memory of the process."""
    alphabet = [chr(0x4E00 + number) for number in range(40)]
    runs = ["".join(random.Random(seed).choices(alphabet, k=2_000)) for seed in range(100)]
    assert all(list(term_ids(run)) == [term_id(term) for term in terms(run)] for run in runs)
    gc.collect()
    tracemalloc.start()
    try:
        for run in runs:
            assert Analyzer().counts(f"{run}丁").total() == len(terms(f"{run}丁")) == 2_000
        gc.collect()
        remembered, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert remembered < 1_000_000
