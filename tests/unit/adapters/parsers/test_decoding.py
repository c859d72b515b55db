"""Encodings are told apart, and what cannot be stored never gets into a text."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrag.adapters.parsers.blocks import TextBuilder, paragraphs, title_of
from dtrag.adapters.parsers.decoding import clean, clean_line, decode, encoding_of
from dtrag.errors import ParseFailed

KOREAN = "휴학 기간은 통산하여 여섯 학기를 넘을 수 없다.\n다만, 군 복무 기간은 넣지 않는다. (제15조 2항)\n"
ENCODINGS = ["utf-8", "utf-8-sig", "cp949", "euc-kr", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_korean_text_is_read_in_every_usual_encoding(encoding: str, tmp_path: Path) -> None:
    data = KOREAN.encode(encoding)
    assert clean(decode(data)).text == KOREAN
    path = tmp_path / "file"
    path.write_bytes(data)
    assert clean(data.decode(encoding_of(path))).text == KOREAN


def test_english_in_utf16_without_a_mark() -> None:
    assert decode("Leave of absence, section 3.".encode("utf-16-le")) == "Leave of absence, section 3."


def test_a_declared_encoding_is_tried_before_cp949() -> None:
    assert decode("学則第一条".encode("shift_jis"), "shift_jis") == "学則第一条"
    assert decode("größe".encode("latin-1"), "iso-8859-1") == "größe"
    assert decode("한글".encode("cp949"), "no-such-encoding") == "한글"


def test_undecodable_bytes_name_the_encodings_tried(tmp_path: Path) -> None:
    data = b"caf\xe9 \xff\xff ol\xe9 \xfe"
    with pytest.raises(ParseFailed, match=r"UTF-8, UTF-16, CP949/EUC-KR"):
        decode(data)
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(ParseFailed, match="UTF-8"):
        encoding_of(tmp_path / "f")


def test_binary_data_is_called_binary() -> None:
    with pytest.raises(ParseFailed, match="binary"):
        decode(bytes(range(256)) * 20 + b"\x00\x00\x01\x02" * 400)


def test_a_stray_nul_in_ascii_is_dropped_and_not_read_as_utf16() -> None:
    assert clean(decode(b"abc\x00def and so on, with more words")).text == "abcdef and so on, with more words"
    assert clean(decode(b"ab\x00cd")).text == "abcd"


def test_surrogates_encoded_in_utf8_are_dropped() -> None:
    assert clean(decode(b"one \xed\xa0\x80two")).text == "one two"
    assert clean("a\ud83dz").text == "az"


def test_line_ends_and_form_feeds_become_newlines() -> None:
    assert clean("a\r\nb\rc\x0cd\x0be\u2028f\x85g").text == "a\nb\nc\nd\ne\nf\ng"


def test_decomposed_korean_is_composed() -> None:
    assert clean(unicodedata.normalize("NFD", "학사 규정")).text == "학사 규정"


def test_tag_characters_are_taken_out_and_counted() -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "ignore")
    cleaned = clean(f"visible{hidden} text")
    assert cleaned.text == "visible text"
    assert cleaned.tag_characters == 6


def test_clean_line_is_one_line() -> None:
    assert clean_line(" a\n\tb\x00 \u3000c ") == "a b c"


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_clean_text_can_always_be_stored_and_stays_as_it_is(text: str) -> None:
    cleaned = clean(text).text
    cleaned.encode("utf-8")
    assert "\x00" not in cleaned
    assert "\r" not in cleaned
    assert clean(cleaned).text == cleaned


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=()), max_size=30), max_size=8))
def test_the_builder_keeps_spans_true(pieces: list[str]) -> None:
    builder = TextBuilder()
    for piece in pieces:
        builder.add(piece)
    if not len(builder):
        with pytest.raises(ParseFailed):
            builder.document(title="t", content_type="text/plain")
        return
    document = builder.document(title="t", content_type="text/plain")
    assert len(document.text) == len(builder)
    spans = [document.text[block.start : block.end] for block in document.blocks]
    assert "\n\n".join(spans) == document.text
    assert all(span == span.strip() for span in spans)


@given(st.text(alphabet="ab \n\t\u3000"))
def test_paragraphs_cover_everything_but_white_space(text: str) -> None:
    position = 0
    for block in paragraphs(text):
        assert not text[position : block.start].strip()
        assert text[block.start : block.end] == text[block.start : block.end].strip()
        position = block.end
    assert not text[position:].strip()


def test_titles_fall_back_to_the_name_of_the_file() -> None:
    assert title_of("  A\nB ", "x.md") == "A B"
    assert title_of(None, unicodedata.normalize("NFD", "한글 이름.hwpx")) == "한글 이름"
    assert title_of("", "C:\\folder\\report.final.pdf") == "report.final"
    assert title_of("\ud800", "") == "untitled"
    assert len(title_of("x" * 1000, "n")) == 300
