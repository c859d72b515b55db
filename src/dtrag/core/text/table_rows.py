"""Tables in a text: which lines are rows, and which of the rows are headers.

A row of a parsed table is `cell | cell`; in plain text, cells are columns with tabs or several blanks between them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from dtrag.core.text.line_kinds import width
from dtrag.core.text.patterns import FIGURE, explained

MOST_HEADER_ROWS = 3
LONGEST_HEADER_CELL = 40
COMPARED_ROWS = 8
"""Rows below a first row that are compared with it."""
SAME_SHAPE = 0.6
"""Share of the values of a column that must look alike in a table of two columns: otherwise each row is a name and its
value, and the first row is not a header."""

_PIPE = re.compile(r"(?:^|(?<=\s))[|│](?=\s|$)")
_GAP = re.compile(r"(?<![.!?。,;:])(?:[ ]*\t\s*|[ ]{2,})|(?:[ ]*\t\s*|[ ]{3,})")
_BARE = re.compile(r"[-+]?\d[\d,.]*$")
_VALUE = re.compile(r"^(?:[-–—○×●✓✔OX]|없음|무료|면제|해당\s?없음|n/?a|none|free|yes|no|있음|가능|불가|미정)$", re.I)
_PERIOD = explained(
    r"^(?:제?\s?\d{1,2}\s?(?:학년|학기|분기|월|차|호봉|급|주|주차|일차|회|단계|종|등급)|(?:19|20)\d\d\s?(?:년도?|학년도|회계연도|fy)?"
    r"|(?:fy\s?)?(?:19|20)\d\d(?:[-/]\d{2,4})?|q[1-4]|\d(?:st|nd|rd|th)\s\w+|(?:level|grade|year|zone|step)\s?\d+)$",
    flags=re.I,
    finds=("1학년", "Q3"),
    refuses=("1학년 1학기", "Q5"),
)
_HEADER_WORD = explained(
    r"^(?:구\s?분|항\s?목|분\s?류|종\s?류|유\s?형|내\s?용|비\s?고|번\s?호|순\s?번|연\s?번|순\s?위|no\.?|item|type|category|description|remarks?|notes?"
    r"|kind|class|step|field|term|topic|event|service|code|과\s?목|품\s?목|단\s?계|등\s?급|직\s?급|기\s?준|세\s?부.*|대\s?상|부\s?서명?)$",
    flags=re.I,
    finds=("구 분", "Remarks"),
    refuses="구분자",
)


def has_pipes(line: str) -> bool:
    """Whether the line has the separators of a parsed table."""
    return ("|" in line or "│" in line) and _PIPE.search(line) is not None


def cells_of(line: str) -> list[str]:
    """The cells of a row, without blanks around them; an outer separator is no cell of its own."""
    if has_pipes(line):
        cells = [cell.strip() for cell in _PIPE.split(line.strip())]
        outer = len(cells) > 2 and not cells[0] and not cells[-1]
        return cells[1:-1] if outer else cells
    if "  " not in line and "\t" not in line:
        return [line.strip()]
    return [cell.strip() for cell in _GAP.split(line.strip())]


def column_starts(line: str) -> list[int]:
    """Where the cells after the first begin in a line of plain text, in cells of the screen."""
    return [width(line[: match.end()]) for match in _GAP.finditer(line) if line[: match.start()].strip()]


def aligned(lines: Sequence[str]) -> bool:
    """Whether neighbouring lines of plain text are rows of one table: cells separated by tabs, or columns in line."""
    if len(lines) < 2 or any(len(cells_of(line)) < 2 for line in lines):
        return False
    if all("\t" in line for line in lines):
        return True
    edges = Counter(edge for line in lines for edge in {*column_starts(line), *_column_ends(line)})
    return bool(edges) and edges.most_common(1)[0][1] * 3 >= 2 * len(lines)


def _column_ends(line: str) -> list[int]:
    """Where the cells after the first end, as negative numbers: figures are often in line on the right."""
    gaps = [match for match in _GAP.finditer(line) if line[: match.start()].strip()]
    return [-width(line[: match.start()]) for match in gaps[1:]] + [-width(line.rstrip())] if gaps else []


def header_rows(rows: Sequence[Sequence[str]]) -> int:
    """How many of the first rows are headers, from the cells alone; 0 when the first row may be data."""
    if len(rows) < 2 or not _is_header(rows[0], rows[1 : 1 + COMPARED_ROWS]):
        return 0
    count = 1
    while count < min(MOST_HEADER_ROWS, len(rows) - 1) and _goes_on(rows[0], rows[count]):
        count += 1
    return count


def _is_header(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    filled = [cell for cell in first if cell]
    if len(filled) < 2 or any(len(cell) > LONGEST_HEADER_CELL for cell in filled):
        return False
    if _heads_figures(first, below):
        return True
    periods = [cell for cell in filled[1:] if _PERIOD.match(cell)]
    valued = any(is_value(cell) and cell not in periods for cell in filled)
    if valued or (periods and any(_shape(first) == _shape(row) for row in below)):
        return False
    if len(first) > 2 or any(_HEADER_WORD.match(cell) for cell in filled):
        return True
    if not any(map(FIGURE.search, filled)) and all(row and FIGURE.search(row[0]) for row in below):
        return True  # Names above periods or ranges: "근속기간 | 연가일수" above "1년 미만 | 월간 개근시 1일".
    values = [row[1] for row in below if len(row) > 1]
    shapes = Counter(FIGURE.sub("9", cell) for cell in values if is_value(cell))
    return len(values) > 1 and bool(shapes) and max(shapes.values()) >= SAME_SHAPE * len(values)


def _heads_figures(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether most columns have bare figures below, and something else (a range, a year with its word) in this row."""
    columns = range(1, len(first))
    figures = [
        place
        for place in columns
        if below
        and all(len(row) <= place or not row[place] or _BARE.match(row[place]) for row in below)
        and any(len(row) > place and row[place] for row in below)
    ]
    return len(figures) * 2 >= len(columns) > 1 and not any(_BARE.match(first[place]) for place in figures)


def _goes_on(first: Sequence[str], row: Sequence[str]) -> bool:
    """Whether a row below the first header row is one, too: its first cell belongs to the row above."""
    if row[0] and row[0] == first[0]:
        return True
    return not row[0] and not any(is_value(cell) and not _PERIOD.match(cell) for cell in row)


def is_value(cell: str) -> bool:
    """Whether the cell is a figure, an amount, a date or a mark rather than a name."""
    if _VALUE.match(cell):
        return True
    figures = sum(len(match[0]) for match in FIGURE.finditer(cell))
    return figures > 0 and figures * 4 >= len(cell)


def _shape(row: Sequence[str]) -> tuple[str, ...]:
    return tuple(FIGURE.sub("9", cell) for cell in row[1:])
