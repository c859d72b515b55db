"""PDF: lines flow back into paragraphs, and every page is known by the first of its characters."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pdf_writer import Placed, write_pdf

from dtrag.adapters.parsers.pdf import join_lines, parse, reflow
from dtrag.core.documents import ParsedDocument


def test_lines_become_paragraphs() -> None:
    page = """Leave of absence
A student may take leave for no more than six terms. Infor-
mation on how to apply is kept by the office of student affairs, which
answers.
The next paragraph begins here and goes on for a full line of text, with
some more behind it
- an item of a list
2) another

제15조 휴학은 통산하여 여섯 학기를 넘을 수 없다."""
    assert list(reflow(page.splitlines())) == [
        "Leave of absence A student may take leave for no more than six terms. Information on how to apply is kept by "
        "the office of student affairs, which answers.",
        "The next paragraph begins here and goes on for a full line of text, with some more behind it",
        "- an item of a list",
        "2) another",
        "제15조 휴학은 통산하여 여섯 학기를 넘을 수 없다.",
    ]


def test_lines_of_a_regulation_book() -> None:
    page = """휴학규정 3-1-1
복학규정 3-1-2
학칙 ………………… 12
제정 2001. 3. 1.
제1장 총칙
제1조(목적) 이 규정은 학생이 학업을 쉬려고 할 때 필요한 사항을 정함을 목적으로 하며 학칙 제
12조에 따른다. <개정 2010. 3. 1., 2011.
3. 1.>
부 칙
이 규정은 공포한 날부터 시행한다.
[별표 1] <개정 2010. 3. 1., 2011. 3. 1., 2012. 3. 1., 2013. 3. 1.,
2014. 3. 1.>
휴학의 종류
구분 기간
[별표 2]에 따른 금액"""
    assert list(reflow(page.splitlines())) == [
        "휴학규정 3-1-1",
        "복학규정 3-1-2",
        "학칙 ………………… 12",
        "제정 2001. 3. 1.",
        "제1장 총칙",
        "제1조(목적) 이 규정은 학생이 학업을 쉬려고 할 때 필요한 사항을 정함을 목적으로 하며 학칙 제 12조에 따른다. "
        "<개정 2010. 3. 1., 2011. 3. 1.>",
        "부 칙",
        "이 규정은 공포한 날부터 시행한다.",
        "[별표 1] <개정 2010. 3. 1., 2011. 3. 1., 2012. 3. 1., 2013. 3. 1., 2014. 3. 1.>",
        "휴학의 종류",
        "구분 기간 [별표 2]에 따른 금액",
    ]


def test_blank_pages() -> None:
    assert list(reflow([])) == []
    assert list(reflow([" ", "\t"])) == []


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("", "start", "start"),
        ("infor-", "mation", "information"),
        ("the North-", "South line", "the North- South line"),
        ("pages 3-", "5 and 6", "pages 3- 5 and 6"),
        ("한글은", "띄어 쓴다", "한글은 띄어 쓴다"),
    ],
)
def test_joining(before: str, after: str, joined: str) -> None:
    assert join_lines(before, after) == joined


def read(tmp_path: Path, *pages: tuple[str, ...]) -> ParsedDocument:
    path = tmp_path / "a.pdf"
    lines = [[Placed(72, 780 - 14 * number, text) for number, text in enumerate(texts)] for texts in pages]
    path.write_bytes(write_pdf(lines))
    (document,) = parse(path, "a.pdf")
    return document


def beginnings(document: ParsedDocument) -> list[tuple[int, str]]:
    """Number of each page and the word at its start."""
    return [(number, document.text[offset:].split()[0]) for offset, number in document.page_starts]


def test_a_page_begins_inside_the_paragraph_that_continues_on_it(tmp_path: Path) -> None:
    document = read(
        tmp_path,
        ("First pump runs and", "second pump waits and"),
        ("third pump rests.", "Fourth pump is new."),
        ("Fifth pump leaks.",),
    )
    assert document.text.startswith("First pump runs and second pump waits and third pump rests.")
    assert beginnings(document) == [(1, "First"), (2, "third"), (3, "Fifth")]


def test_a_paragraph_over_many_pages_and_a_page_without_text(tmp_path: Path) -> None:
    words = ("pumps", "valves", "doors")
    document = read(tmp_path, *((f"{word} " + f"or other {word} " * 30,) for word in words), (), ("turbines.",))
    assert "\n" not in document.text
    assert beginnings(document) == [(1, "pumps"), (2, "valves"), (3, "doors"), (5, "turbines.")]


def test_a_word_that_is_divided_between_pages_continues_on_the_second(tmp_path: Path) -> None:
    document = read(tmp_path, ("The staff gets infor-",), ("mation about leave.",))
    assert document.text == "The staff gets information about leave."
    assert beginnings(document) == [(1, "The"), (2, "mation")]


def test_page_starts_count_the_text_without_the_characters_that_are_dropped(tmp_path: Path) -> None:
    document = read(
        tmp_path, ("\ufeff휴학은 두\ufeff 학기까지 할 수 있\u1103\u1161고",), ("\ufeff복학은 언제나 할 수 있다.",)
    )
    assert "\ufeff" not in document.text
    assert beginnings(document) == [(1, "휴학은"), (2, "복학은")]
