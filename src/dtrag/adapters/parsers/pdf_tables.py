"""Tables of a PDF page, rebuilt from the positions of its texts: a page stores no rows and no cells.

Texts on one line that are far apart are cells; neighbouring lines with cells below each other are a table. Lines of one
cell are joined: they are closer together than rows, or have no text in the first column.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean

from pypdf import PageObject
from pypdf._text_extraction._layout_mode import text_show_operations
from pypdf._text_extraction._layout_mode._fixed_width_page import BTGroup
from pypdf.generic import ArrayObject, ContentStream, StreamObject

from dtrag.core.text.line_kinds import is_contents, is_terminated, marker_of, width
from dtrag.core.text.tables import is_value

CELL_GAP = 0.9
"""Distance of two cells, as a share of the height of the text; a blank has about .3."""
LINE_SHIFT = 0.4
"""Texts whose baselines differ by less than this share of their height are on one line."""
ROW_DISTANCE = 3.5
"""Lines of one table are at most this many heights apart."""
LOOSER = 1.25
"""A distance between lines that is larger by this factor than the smallest one separates rows."""
LEADING = 1.6
"""Heights of text between two lines of one cell, at most."""
TOLERANCE = 3
"""Points by which the middle of a group of rows and its name may differ."""
OVERLAP = 6
"""Points by which two columns may overlap where widths are estimated."""
NARROW = 0.62
"""Width of a letter or a figure, as a share of the height of the text, at most."""
PROSE = 32
"""Cells wider than this on average, in every column, are the columns of a page and not those of a table."""

_GAPS = re.compile(r" {3,}")
_NUMBER = re.compile(r"\d{1,4}$")


@dataclass(frozen=True, slots=True)
class Placed:
    """A text with its horizontal extent, its baseline, counted upwards, and its height, in points."""

    left: float
    right: float
    y: float
    height: float
    text: str


@dataclass(frozen=True, slots=True)
class PageTable:
    """Rows `cell | cell` of a table between two baselines of a page."""

    top: float
    bottom: float
    rows: tuple[str, ...]


Line = list[Placed]
"""The cells of one line, from left to right."""


def tables_of(page: PageObject) -> list[PageTable]:
    """The tables of a page, from the top."""
    return list(find_tables(placed_texts(page)))


def placed_texts(page: PageObject) -> list[Placed]:
    """The texts of a page with their positions; texts in form objects and rotated ones are left out.

    The positions come from the part of pypdf behind its layout mode, whose result is text without them.
    """
    contents = page.get("/Contents")
    contents = contents.get_object() if contents is not None else None
    if not isinstance(contents, ArrayObject | StreamObject):
        return []
    operations = iter(ContentStream(contents, page.pdf, "bytes").operations)
    groups = text_show_operations(operations, page._layout_mode_fonts())
    return [
        Placed(left, right, group["ty"] * group["flip_sort"], max(group["font_height"], 1.0), text)
        for group in groups
        for left, right, text in _split(group["tx"], _right(group), group["text"])
    ]


def _right(group: BTGroup) -> float:
    """The right end of a text; a font without widths gives each character the width of its height."""
    text = group["text"]
    wide = width(text) - len(text)
    likely = group["font_height"] * (wide + NARROW * (len(text) - wide))
    return group["displaced_tx"] if _GAPS.search(text) else min(group["displaced_tx"], group["tx"] + likely)


def _split(left: float, right: float, text: str) -> Iterator[tuple[float, float, str]]:
    """The parts of a text between wide gaps, with their extent estimated from the widths of the characters."""
    scale = (right - left) / max(1, width(text))
    start = 0
    for gap in [*_GAPS.finditer(text), None]:
        end = gap.start() if gap is not None else len(text)
        part = text[start:end]
        if part.strip():
            first = left + scale * width(text[:start])
            yield first, first + scale * width(part), part.strip()
        start = gap.end() if gap is not None else end


def find_tables(texts: Iterable[Placed]) -> Iterator[PageTable]:
    """The tables among placed texts."""
    lines = lines_of(texts)
    first = 0
    while first < len(lines):
        last = _region(lines, first)
        table = _table(lines[first:last]) if last - first > 1 else None
        if table is not None:
            yield table
        first = max(last, first + 1)


def lines_of(texts: Iterable[Placed]) -> list[Line]:
    """Lines from the top, each with its cells from the left."""
    lines: list[Line] = []
    for text in sorted(texts, key=lambda text: (-text.y, text.left)):
        if lines and lines[-1][0].y - text.y < LINE_SHIFT * min(text.height, lines[-1][0].height):
            lines[-1].append(text)
        else:
            lines.append([text])
    return [_cells(sorted(line, key=lambda text: text.left)) for line in lines]


def _cells(texts: Sequence[Placed]) -> Line:
    """Neighbouring texts of a line joined, unless there is a gap between them."""
    cells: Line = []
    for text in texts:
        before = cells[-1] if cells else None
        if before is None or text.left - before.right > CELL_GAP * text.height:
            cells.append(text)
            continue
        blank = " " if text.left - before.right > 0.12 * text.height else ""
        joined = before.text + blank + text.text
        cells[-1] = Placed(before.left, max(before.right, text.right), before.y, before.height, joined)
    return cells


def _region(lines: Sequence[Line], first: int) -> int:
    """One past the last line that may be of the same table as line `first`; `first` when it is not a row."""
    if len(lines[first]) < 2:
        return first
    last = first + 1
    while last < len(lines) and lines[last - 1][0].y - lines[last][0].y <= ROW_DISTANCE * lines[last][0].height:
        above = lines[first:last]
        part = _continues_cell(above, lines[last]) or _begins_cell(above, lines[last : last + 2])
        if len(lines[last]) < 2 and not (part or _section(lines, last)):
            break
        last += 1
    return last


def _continues_cell(above: Sequence[Line], line: Line) -> bool:
    """Whether the only text of a line is below a cell of the rows above, near enough to belong to it."""
    cell = line[0]
    near = above[-1][0].y - cell.y <= LEADING * cell.height
    return (
        near
        and any(_overlap(cell, other) > 0 and len(row) > 1 for row in above for other in row)
        and not (cell.left <= above[0][0].left + 1 and is_terminated(cell.text) and width(cell.text) > PROSE)
    )


def _begins_cell(above: Sequence[Line], lines: Sequence[Line]) -> bool:
    """Whether the only text of a line is the first line of a cell whose row has its other texts just below."""
    if len(lines) < 2 or len(lines[1]) < 2:
        return False
    cell = lines[0][0]
    near = cell.y - lines[1][0].y <= cell.height
    return near and any(_overlap(cell, other) > 0 for row in above if len(row) > 1 for other in row)


def _section(lines: Sequence[Line], number: int) -> bool:
    """Whether a line of one text is a row: more rows follow, and it is no sentence."""
    cell = lines[number][0]
    below = lines[number + 1 : number + 2]
    follows = bool(below) and len(below[0]) > 1 and cell.y - below[0][0].y <= ROW_DISTANCE * cell.height
    return follows and width(cell.text) <= PROSE and not is_terminated(cell.text)


def _overlap(cell: Placed, other: Placed) -> float:
    return min(cell.right, other.right) - max(cell.left, other.left)


def _table(lines: Sequence[Line]) -> PageTable | None:
    """The table of a region; None when its lines are not rows."""
    columns = _columns(lines)
    if len(columns) < 2 or _is_list_or_prose(lines, columns):
        return None
    grid = [_placed_in(columns, line) for line in lines]
    if sum(sum(map(bool, row)) > 1 for row in grid) < 2:
        return None
    rows = [" | ".join(row).strip() if sum(map(bool, row)) > 1 else "".join(row) for row in _rows(lines, grid)]
    return PageTable(lines[0][0].y, lines[-1][0].y, tuple(rows))


def _columns(lines: Sequence[Line]) -> list[tuple[float, float]]:
    """The horizontal extents of the columns, from the lines with the most cells."""
    counts = Counter(len(line) for line in lines if len(line) > 1)
    frequent = [cells for cells, number in counts.items() if number > 1] or list(counts)
    most = max(frequent)
    full = [line for line in lines if len(line) == most]
    columns = [
        (min(line[place].left for line in full), max(line[place].right for line in full)) for place in range(most)
    ]
    if not _are_apart(columns):
        columns = _merged(cell for line in full for cell in line)
    beside = [cell for line in lines for cell in line if all(_outside(cell, column) for column in columns)]
    return sorted([*columns, *_merged(beside)])


def _outside(cell: Placed, column: tuple[float, float]) -> bool:
    """Whether a cell has no part in a column."""
    return cell.right <= column[0] or cell.left >= column[1]


def _are_apart(columns: Sequence[tuple[float, float]]) -> bool:
    """Whether the cells of the same number in all lines are below each other."""
    return all(left[0] < right[0] and left[1] <= right[0] + OVERLAP for left, right in pairwise(columns))


def _merged(cells: Iterable[Placed]) -> list[tuple[float, float]]:
    """Columns as the extents of cells that overlap."""
    columns: list[tuple[float, float]] = []
    for left, right in sorted((cell.left, cell.right) for cell in cells):
        if columns and left < columns[-1][1]:
            columns[-1] = (columns[-1][0], max(columns[-1][1], right))
        else:
            columns.append((left, right))
    return columns


def _is_list_or_prose(lines: Sequence[Line], columns: Sequence[tuple[float, float]]) -> bool:
    """Whether the columns are marks and items of a list, columns of a page, or titles and page numbers."""
    rows = [line for line in lines if len(line) > 1]
    if len(columns) == 2:
        marks = [marker_of(f"{line[0].text} x") for line in rows]
        if all(mark is not None and mark.length >= len(line[0].text) for mark, line in zip(marks, rows, strict=True)):
            return True
    if all(_NUMBER.match(line[-1].text) and is_contents(f"{line[-2].text} {line[-1].text}") for line in rows):
        return True
    return len(rows) > 3 and all(
        mean(width(line[place].text) for line in rows if len(line) > place) > PROSE for place in range(len(columns))
    )


def _placed_in(columns: Sequence[tuple[float, float]], line: Line) -> list[str]:
    """The texts of a line by columns; a text goes where most of it is."""
    row = [""] * len(columns)
    for cell in line:
        middle = (cell.left + cell.right) / 2
        best = max(
            range(len(columns)),
            key=lambda place: (
                min(cell.right, columns[place][1]) - max(cell.left, columns[place][0]),
                -abs(middle - (columns[place][0] + columns[place][1]) / 2),
            ),
        )
        row[best] = f"{row[best]} {cell.text}".strip()
    return row


def _rows(lines: Sequence[Line], grid: Sequence[list[str]]) -> list[list[str]]:
    """The rows of the table: lines of one cell joined, names of groups beside their rows repeated in each."""
    labels = [number for number in range(len(grid)) if _is_group_name(lines, grid, number)]
    content_lines = [number for number in range(len(grid)) if number not in labels]
    distances = [lines[above][0].y - lines[below][0].y for above, below in pairwise(content_lines)]
    leading = LEADING * min(line[0].height for line in lines)
    close = max((distance for distance in distances if distance <= leading), default=0.0)
    spaced = close > 0 and max(distances) > LOOSER * close
    rows = [list(grid[content_lines[0]])]
    heights = [[lines[content_lines[0]][0].y]]
    for distance, number in zip(distances, content_lines[1:], strict=True):
        cells = grid[number]
        if _belongs_above(rows[-1], cells, near=distance <= close, spaced=spaced):
            rows[-1] = [f"{above} {cell}".strip() for above, cell in zip(rows[-1], cells, strict=True)]
            heights[-1].append(lines[number][0].y)
        else:
            rows.append(list(cells))
            heights.append([lines[number][0].y])
    names = [(lines[number][0].y, grid[number][0]) for number in labels]
    return _with_group_names(rows, [(places[0] + places[-1]) / 2 for places in heights], names)


def _is_group_name(lines: Sequence[Line], grid: Sequence[list[str]], number: int) -> bool:
    """Whether a line has only the first cell and is between the baselines of rows that have none."""
    if not grid[number][0] or any(grid[number][1:]):
        return False
    neighbours = [place for place in (number - 1, number + 1) if 0 <= place < len(lines) and not grid[place][0]]
    return any(abs(lines[place][0].y - lines[number][0].y) < lines[number][0].height * 1.1 for place in neighbours)


def _with_group_names(
    rows: list[list[str]], middles: Sequence[float], names: Sequence[tuple[float, str]]
) -> list[list[str]]:
    """Rows with the name of their group in the first column, if names are in the middle of their rows.

    A group begins behind the one before it, so its last row is as far below its name as its first row is above.
    """
    first = next((number for number, row in enumerate(rows) if not row[0]), len(rows))
    own = [(middle, row[0]) for middle, row in list(zip(middles, rows, strict=True))[first:] if row[0]]
    if not names and not _are_centred(rows, first):
        return rows
    number = first
    for place, name in sorted([*names, *own], reverse=True):
        lowest = 2 * place - middles[number] - TOLERANCE if number < len(rows) else place
        while number < len(rows) and middles[number] >= lowest:
            rows[number][0] = name
            number += 1
    return rows


def _are_centred(rows: Sequence[Sequence[str]], first: int) -> bool:
    """Whether names of groups on the lines of rows are in the middle: the first group begins without its name."""
    return first == 1 and len(rows) > 2 and any(row[0] for row in rows[2:])


def _belongs_above(row: Sequence[str], cells: Sequence[str], *, near: bool, spaced: bool) -> bool:
    """Whether a line continues the row above rather than being a row of its own."""
    filled = [cell for cell in cells if cell]
    values = any(is_value(cell) for cell in filled)
    if (spaced and not near) or (all(row) and all(cells)):
        return False
    if any(is_value(above) and is_value(cell) for above, cell in zip(row, cells, strict=True)):
        return False
    if cells[0] and row[0]:
        partly = not cells[-1] and len(filled) < sum(map(bool, row)) and not values
        return partly and (spaced or cells[0][0].islower())
    return spaced or (not cells[0] and not values)
