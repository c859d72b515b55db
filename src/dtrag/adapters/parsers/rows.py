"""Rows of tables that are files of their own (CSV, spreadsheets): each row a sentence, documents of a limited size.

A row is the paragraph "header: value; header: value", so that it can be found and quoted by itself. A spreadsheet has a
heading for each sheet, and below it one for each range of cells, so that citations name both.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice, pairwise, zip_longest

from dtrag.adapters.parsers.blocks import LONGEST_REPEATED, TextBuilder
from dtrag.adapters.parsers.decoding import clean_line
from dtrag.core.documents import ParsedDocument, Scalar
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

MAX_COLUMNS = 2_000
LONGEST_NAME = 200
"""Characters of the name of a column, which each row repeats."""
ROWS_PER_DOCUMENT = 2_000
CHARACTERS_PER_DOCUMENT = 4_000_000
CHARACTERS_PER_RANGE = 800
"""About a passage of Korean: the headings of a passage then name its own cells."""
ROWS_PER_RANGE = 50
MAX_FILLED = 1_000_000
"""Cells of a sheet that repeat the text of a merged cell; the others are left empty."""
TOP_ROWS = 10
"""Rows of a sheet among which the header is searched; it has at most half of them."""

Cells = list[str]
Merge = tuple[tuple[int, int], tuple[int, int]]
"""Row and column of the first and the last cell, from 0."""


@dataclass(frozen=True, slots=True)
class Group:
    """Sentences of neighbouring rows under the same headings."""

    sentences: Sequence[str]
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet: its rows from row 1 and column A on, cleaned, with blank ones."""

    name: str
    rows: Iterable[Cells]
    merges: Sequence[Merge] = ()
    hidden: bool = False


def documents(
    groups: Iterable[Group], title: str, content_type: str, metadata: Mapping[str, Scalar] | None = None
) -> Iterator[ParsedDocument]:
    """One document, or several with the parts `rows-1-2000`, `rows-2001-4000` … (header rows are not counted).

    Raises `ParseFailed` when there are no rows."""
    pending = iter(groups)
    group = next(pending, None)
    if group is None:
        raise ParseFailed(stated("csv_no_rows", "no rows in it besides the header"))
    start = 1
    while group is not None:
        builder = TextBuilder()
        count = 0
        above: tuple[str, ...] = ()
        while group is not None and count < ROWS_PER_DOCUMENT and len(builder) < CHARACTERS_PER_DOCUMENT:
            for level, heading in enumerate(group.headings, 1):
                if group.headings[:level] != above[:level]:
                    builder.add(heading, "heading", level)
            above = group.headings
            for sentence in group.sentences:
                builder.add(sentence)
            count += len(group.sentences)
            group = next(pending, None)
        whole = start == 1 and group is None
        rows = f"{start}-{start + count - 1}"
        yield builder.document(
            title=title if whole else f"{title} ({rows})",
            content_type=content_type,
            part="" if whole else f"rows-{rows}",
            metadata={"rows": count, "first_row": start, **(metadata or {})},
        )
        start += count


def groups_of(sheet: Sheet) -> Iterator[Group]:
    """The rows of a sheet below its name and the range of their cells, such as `A5:D24`."""
    name = f"{sheet.name} (hidden)" if sheet.hidden else sheet.name
    rows = _rows(sheet)
    top = list(islice(rows, TOP_ROWS))
    first, last, header = _header(top)
    group: list[_Row] = []
    sentences: list[str] = []
    length = 0

    def closed() -> Group:
        filled = [column for row in group for column, cell in enumerate(row.cells) if cell]
        left, right = column_name(min(filled)), column_name(max(filled))
        return Group(tuple(sentences), (name, f"{left}{group[0].number}:{right}{group[-1].number}"))

    for row in chain(top[:first], top[last:], rows):
        text = sentence([] if row in top[:first] else header, row.cells)
        if group and (length + len(text) > CHARACTERS_PER_RANGE or len(group) == ROWS_PER_RANGE):
            yield closed()
            group, sentences, length = [], [], 0
        group.append(row)
        sentences.append(text)
        length += len(text)
    if group:
        yield closed()


@dataclass(frozen=True, slots=True)
class _Row:
    """A row that is not blank. `number` counts from 1, `header_rows` are those that a header in it would have."""

    number: int
    cells: Cells
    header_rows: int


def _rows(sheet: Sheet) -> Iterator[_Row]:
    """Rows that are not blank; each cell of a merged one has its text, if that is short."""
    merges = sorted(sheet.merges)[::-1]
    spans: list[tuple[int, int, int, str]] = []
    left = MAX_FILLED
    for number, row in enumerate(sheet.rows):
        cells, header_rows = row, 1
        while merges and merges[-1][0][0] <= number:
            (top, first), (bottom, last) = merges.pop()
            if top == number and first < len(cells) and cells[first]:
                header_rows = max(header_rows, min(bottom - top + 1, TOP_ROWS // 2))
                if len(cells[first]) <= LONGEST_REPEATED:
                    spans.append((first, min(last + 1, MAX_COLUMNS), bottom, cells[first]))
        spans = [span for span in spans if span[2] >= number] if left > 0 else []
        for first, end, _, text in spans:
            cells.extend([""] * (end - len(cells)))
            cells[first:end] = [text] * (end - first)
            left -= end - first
        if len(spans) == 1 and set(cells) - {""} == {spans[0][3]}:  # a title, or a note over the width of the table
            cells = [cell if column == spans[0][0] else "" for column, cell in enumerate(cells)]
        if any(cells[MAX_COLUMNS:]):
            text = "its sheet {sheet} has more than {limit} columns"
            raise ParseFailed(stated("sheet_columns", text, sheet=sheet.name, limit=f"{MAX_COLUMNS:,}"))
        if any(cells):
            yield _Row(number + 1, cells[:MAX_COLUMNS], header_rows)


def _header(top: Sequence[_Row]) -> tuple[int, int, Cells]:
    """The header's first row in `top`, the row behind it, and the names of the columns; (0, 0, []) without one.

    Rows above a header have one text, such as a title; merged cells make it several rows, whose names are joined.
    """
    for first, row in enumerate(top):
        if len({cell for cell in row.cells if cell}) < 2:
            continue
        rows = [other.cells for other in top[first:] if other.number < row.number + row.header_rows]
        names = [" ".join(dict.fromkeys(filter(None, cells))) for cells in zip_longest(*rows)]
        # A merged cell names neighbouring columns alike; the last columns may have no name.
        named = [name for name, _ in groupby(names) if name]
        if len(top) > first + len(rows) and 2 * len(named) >= len(names) and is_header(named):
            return first, first + len(rows), names
        break
    return 0, 0, []


def is_header(row: Sequence[str]) -> bool:
    """A first row names columns when its cells are all filled, short, all different, and no numbers but years."""
    if not all(0 < len(cell) <= LONGEST_NAME for cell in row) or len(set(row)) != len(row):
        return False
    numbers = [cell for cell in row if _is_number(cell)]
    years = [int(cell) for cell in numbers if cell.isdecimal() and 1900 <= int(cell) < 2100]
    return not numbers or (
        1 < len(years) == len(numbers) < len(row)
        and all(abs(year - following) == 1 for year, following in pairwise(years))
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", ""))
    except ValueError:
        return False
    return True


def sentence(header: Sequence[str], row: Sequence[str]) -> str:
    """`name: cell; name: cell` of the cells that are not empty."""
    names = [*header[: len(row)], *[""] * (len(row) - len(header))]
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in zip(names, row, strict=True) if cell)


def column_name(column: int) -> str:
    """The letters of a column, which counts from 0: A … Z, AA …"""
    letters = ""
    while column >= 0:
        letters = chr(ord("A") + column % 26) + letters
        column = column // 26 - 1
    return letters


def shown(value: object) -> str:
    """A value as text: dates in ISO 8601, numbers without the noise of binary fractions."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return f"{value:.15g}" if abs(value) < 1e15 else f"{value:.0f}" if abs(value) < 1e21 else str(value)
    if isinstance(value, datetime.datetime):
        value += datetime.timedelta(microseconds=500_000)  # days as binary fractions are off by some microseconds
        return value.strftime("%Y-%m-%d %H:%M:%S").removesuffix(" 00:00:00").removesuffix(":00")
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else clean_line(str(value))
