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
