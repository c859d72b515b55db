"""PDF: lines flow back into paragraphs."""

from __future__ import annotations

import pytest

from dtrag.adapters.parsers.pdf import join_lines, reflow


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
