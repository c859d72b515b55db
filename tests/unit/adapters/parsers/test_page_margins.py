"""Running headers, footers and page numbers are recognised; repeated lines of the text are not."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each
from tests.growth import grows_linearly

from dtrag.adapters.parsers.page_margins import PageLine, without_margins

BODY = ("첫 줄이다.", "둘째 줄이다.", "셋째 줄이다.", "넷째 줄이다.")


def page(*lines: str, top: float = 800.0) -> list[PageLine]:
    """Lines from the top of a page."""
    return [PageLine(text, 10.0, top - 20.0 * number) for number, text in enumerate(lines)]


def texts(pages: Sequence[Sequence[PageLine]]) -> list[list[str]]:
    return [[line.text for line in lines] for lines in without_margins(pages)]


@each(
    "header, footer",
    [
        ("규정집", "- {0} -"),
        ("규정집 {0}", "2024. 3. 1."),
        ("한빛대학교 규정집", "{0} / 12"),
        ("제3편 학사", "{0}"),
        ("Handbook", "Page {0} of 12"),
    ],
)
def test_headers_and_page_numbers_are_left_out(header: str, footer: str) -> None:
    pages = [
        page(header.format(number), *(f"{line} {number * 7}" for line in BODY), footer.format(number))
        for number in range(11, 15)
    ]
    assert texts(pages) == [[f"{line} {number * 7}" for line in BODY] for number in range(11, 15)]


def test_facing_pages_have_headers_of_their_own() -> None:
    pages = [page(["왼쪽", "오른쪽"][number % 2], *(f"{line} {number * 7}" for line in BODY)) for number in range(6)]
    assert all(len(lines) == len(BODY) for lines in texts(pages))


@each(
    "line",
    [
        "{1}학년도 {2}명",  # a row of a long table
        "제{0}조(목적)",
        "{0}. 항목",
        "내용 {2}",
    ],
)
def test_lines_of_the_text_stay(line: str) -> None:
    pages = [page(line.format(number, number * 3, number * number), *BODY[:2]) for number in range(2)]
    pages += [page(line.format(number, number * 3, number * number), *BODY[2:]) for number in range(2, 4)]
    assert [lines[0] for lines in texts(pages)] == [lines[0].text for lines in pages]


def test_a_heading_below_the_name_of_each_regulation_stays() -> None:
    pages = [page(name, "제1장 총칙", f"제1조(목적) {name}을 정한다.", "끝") for name in ("가규정", "나규정", "다규정")]
    assert all("제1장 총칙" in lines for lines in texts(pages))


def test_two_pages_have_no_header() -> None:
    pages = [page("보고서", "내용", "1"), page("보고서", "다른 내용", "2")]
    assert texts(pages) == [["보고서", "내용"], ["보고서", "다른 내용"]]


lines = st.lists(st.text(alphabet="가나12 .-", max_size=8), max_size=6)


@given(st.lists(lines, max_size=6))
def test_what_remains_is_a_part_of_the_page_in_its_order(pages: list[list[str]]) -> None:
    before = [page(*lines) for lines in pages]
    for lines_before, lines_after in zip(before, without_margins(before), strict=True):
        positions = [lines_before.index(line) for line in lines_after]
        assert positions == sorted(positions)


def test_many_pages_take_linear_time() -> None:
    assert grows_linearly(lambda size: without_margins([page("1 2 3 4 5", *BODY, "9" * 6)] * size), 1_000)
