"""Tables in a text: which lines are rows, and which of the rows are headers.

A row of a parsed table is `cell | cell`; in plain text, cells are columns with tabs or several blanks between them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dtrag.core.text import line_kinds
from dtrag.core.text.line_kinds import ContextSpan, Line, Unit, width
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


def tables_in(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Runs of lines `[first, last)` that are tables."""
    number = 0
    while number < len(lines):
        last = _piped(lines, number) or _aligned(lines, number)
        if last:
            yield number, last
            number = last
        else:
            number += 1


def _piped(lines: Sequence[Line], first: int) -> int:
    """One past the last row of a table with separators that begins here; 0 for none."""
    last, rows = first, 0
    while last < len(lines) and (last == first or not lines[last].gap):
        if has_pipes(lines[last].text):
            rows += 1
        elif not (line_kinds.is_rule(lines[last].text) or _within(lines, last)):
            break
        last += 1
    if rows == 0 or (rows == 1 and (last > first + 1 or len(cells_of(lines[first].text)) < 3)):
        return 0
    return last


def _within(lines: Sequence[Line], number: int) -> bool:
    """Whether a line without separators is a row of one cell: rows follow, and it is not a sentence."""
    line = lines[number].text
    if line_kinds.is_terminated(line) or len(line) > LONGEST_HEADER_CELL:
        return False
    below = lines[number + 1 : number + 2]
    return bool(below) and not below[0].gap and has_pipes(below[0].text)


def _aligned(lines: Sequence[Line], first: int) -> int:
    """One past the last row of a table in columns that begins here; 0 for none."""
    rows = [first]
    if line_kinds.is_contents(lines[first].text) or len(cells_of(lines[first].text)) < 2:
        return 0
    last = first + 1
    while last < len(lines) and not lines[last].gap:
        line = lines[last]
        if len(cells_of(line.text)) >= 2 and not line_kinds.is_contents(line.text):
            rows.append(last)
        elif not (line_kinds.is_rule(line.text) or _below_a_column(lines[rows[-1]], line)):
            break
        last += 1
    return last if aligned([lines[row].raw for row in rows]) else 0


def _below_a_column(row: Line, line: Line) -> bool:
    """Whether a line continues a cell of the row above: it begins where one of its later cells does."""
    starts = column_starts(row.raw)
    return line.indent > 0 and any(abs(line.indent - start) <= 2 for start in starts)


@dataclass(slots=True)
class Table:
    """The lines of a table and the context that all its rows share."""

    text: str
    lines: Sequence[Line]
    shared: list[ContextSpan] = field(default_factory=list)
    headers: list[ContextSpan] = field(default_factory=list)
    columns: int = 0
    above: Table | None = None

    def continue_from(self, above: Table | None) -> None:
        """Take header and unit of the table above, unless this one has a header or other columns."""
        self.above = above

    def units(self) -> Iterator[Unit]:
        """The rows with their context, and the headers."""
        rows = self._rows()
        filled = [sum(bool(cell) for cell in cells) for _, _, cells in rows]
        body = [number for number, count in enumerate(filled) if count > 1] or list(range(len(rows)))
        inside = frozenset(body)
        headers = body[: header_rows([rows[number][2] for number in body])]
        repeated = {tuple(rows[number][2]) for number in headers}
        self.columns = max((len(cells) for _, _, cells in rows), default=0)
        self.headers = [ContextSpan("header", rows[number][0], rows[number][1]) for number in headers]
        if not headers and self.above is not None and self.above.columns == self.columns:
            self.headers = self.above.headers
            self.shared = [*(span for span in self.above.shared if span.kind == "unit"), *self.shared]
        shared = [*self.shared, *self.headers]
        section: list[ContextSpan] = []
        left: list[ContextSpan] = []
        for number, (start, end, cells) in enumerate(rows):
            if line_kinds.is_rule(self.text[start:end]):
                yield Unit(start, end, "mark")
            elif tuple(cells) in repeated:
                yield Unit(start, end, "header")
            elif number in inside:
                left = [self._left(start, cells)] if cells[0] else left
                above = left if not cells[0] else []
                yield Unit(start, end, "row", _ordered([*shared, *section, *above]))
            elif number < body[0] or line_kinds.unit_span(self.text[start:end]):
                yield self._title(start, end, shared)
            else:
                section, left = [ContextSpan("header", start, end)], []
                last = number + 1 == len(rows)
                yield Unit(start, end, "row" if last else "header", _ordered(shared) if last else ())

    def _title(self, start: int, end: int, shared: list[ContextSpan]) -> Unit:
        """A row of one cell above the others, or with the unit of the values: part of the context of all rows."""
        span = line_kinds.unit_span(self.text[start:end])
        if span is not None:
            shared.append(ContextSpan("unit", start + span[0], start + span[1]))
        if span is None or span[1] - span[0] < end - start - 2:
            shared.append(ContextSpan("lead_in", start, end))
        return Unit(start, end, "heading" if span is None else "unit")

    def _left(self, start: int, cells: Sequence[str]) -> ContextSpan:
        first = self.text.index(cells[0], start)
        return ContextSpan("header", first, first + len(cells[0]))

    def _rows(self) -> list[tuple[int, int, list[str]]]:
        """Spans and cells of the rows; a line that continues a cell belongs to the row above it."""
        rows: list[tuple[int, int, list[str]]] = []
        piped = any(has_pipes(line.text) for line in self.lines)
        row: Line | None = None
        for line in self.lines:
            cells = cells_of(line.text)
            if not piped and rows and row is not None and len(cells) < 2 and _below_a_column(row, line):
                rows[-1] = (rows[-1][0], line.end, rows[-1][2])
                continue
            row = line
            rows.append((line.start, line.end, cells))
        return rows


def _ordered(spans: Sequence[ContextSpan]) -> tuple[ContextSpan, ...]:
    return tuple(sorted(dict.fromkeys(spans), key=lambda span: (span.start, span.end)))
