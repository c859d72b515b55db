"""Tables of PDF pages are rebuilt from positions; lists, columns of a page and tables of contents are none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from tests.pdf_writer import Placed, write_pdf

from dtrag.adapters.parsers.pdf_tables import Placed as Text
from dtrag.adapters.parsers.pdf_tables import find_tables
from dtrag.core.documents import ParsedDocument

Read = Callable[[str, bytes], list[ParsedDocument]]


def rows_of(*lines: tuple[float, Sequence[tuple[float, str]]]) -> list[tuple[str, ...]]:
    """The rows of the tables among lines: a baseline, and texts with their left edges."""
    texts = [Text(x, x + 5 * len(text), y, 10, text) for y, line in lines for x, text in line]
    return [table.rows for table in find_tables(texts)]


def grid(
    *rows: Sequence[str], columns: Sequence[float] = (72, 200, 330), distance: float = 14
) -> list[tuple[str, ...]]:
    return rows_of(
        *(
            (700 - distance * number, [(x, text) for x, text in zip(columns, row, strict=False) if text])
            for number, row in enumerate(rows)
        )
    )


def test_cells_in_columns_are_rows() -> None:
    assert grid(("Town", "Hotel", "Meals"), ("Paris", "120", "45"), ("Rome", "", "40")) == [
        ("Town | Hotel | Meals", "Paris | 120 | 45", "Rome |  | 40")
    ]


def test_lines_of_a_cell_are_joined_where_rows_are_further_apart() -> None:
    columns = (72.0, 200.0, 400.0)
    lines = [(700, ("Item", "Description", "Fee")), (676, ("Transcript", "Official record in", "1,000"))]
    lines += [(664, ("", "two languages", "")), (640, ("", "Certified copy,", ""))]
    lines += [(634, ("Diploma", "", "2,000")), (628, ("", "with a seal", ""))]
    assert rows_of(*((y, [(x, t) for x, t in zip(columns, row, strict=True) if t]) for y, row in lines)) == [
        (
            "Item | Description | Fee",
            "Transcript | Official record in two languages | 1,000",
            "Diploma | Certified copy, with a seal | 2,000",
        )
    ]


def test_a_line_of_text_below_a_cell_belongs_to_it_in_a_dense_table() -> None:
    assert grid(
        ("Item", "Note", "Fee"), ("Copy", "only for staff", "5"), ("", "of the school", ""), ("Scan", "all", "3")
    ) == [("Item | Note | Fee", "Copy | only for staff of the school | 5", "Scan | all | 3")]


def test_an_empty_first_cell_with_values_is_a_row_of_its_own() -> None:
    assert grid(("Town", "Month", "Fee"), ("Rome", "May", "5"), ("", "June", "7")) == [
        ("Town | Month | Fee", "Rome | May | 5", "| June | 7")
    ]


@pytest.mark.parametrize(
    "rows",
    [
        [("1.", "First of all the items"), ("2.", "Second of them"), ("3.", "Third")],
        [("-", "an item of a list"), ("-", "another item")],
        [("Borrowing ..........", "3"), ("Fines ..............", "5")],
        [("a column of prose on the left side of", "and another column on the right of it")] * 6,
    ],
)
def test_lists_contents_and_columns_of_a_page_are_no_tables(rows: Sequence[Sequence[str]]) -> None:
    assert grid(*rows, columns=(72, 320)) == []


def test_a_table_stands_in_its_place_between_paragraphs(read: Read) -> None:
    page = [Placed(72, 780, "여비 지급 기준", 16)]
    page += [
        Placed(72, 750, "여비는 다음 표에 따라 지급하며, 영수증은 귀임 후 삼십일 이내에 제출하여야 한"),
        Placed(72, 736, "다. 기한이 지나면 지급하지 않는다."),
    ]
    page += [Placed(400, 712, "(단위: 천원)")]
    for number, row in enumerate([("구분", "국내", "국외"), ("교수", "70", "150"), ("직원", "50", "120")]):
        page += [Placed(x, 690 - 20 * number, cell) for x, cell in zip((80, 240, 400), row, strict=True)]
    page += [Placed(72, 600, "그 밖의 사항은 총장이 정한다.")]
    (document,) = read("여비.pdf", write_pdf([page]))
    assert [(block.kind, document.text[block.start : block.end]) for block in document.blocks] == [
        ("heading", "여비 지급 기준"),
        (
            "paragraph",
            "여비는 다음 표에 따라 지급하며, 영수증은 귀임 후 삼십일 이내에 제출하여야 한다. "
            "기한이 지나면 지급하지 않는다.",
        ),
        ("paragraph", "(단위: 천원)"),
        ("table", "구분 | 국내 | 국외\n교수 | 70 | 150\n직원 | 50 | 120"),
        ("paragraph", "그 밖의 사항은 총장이 정한다."),
    ]
