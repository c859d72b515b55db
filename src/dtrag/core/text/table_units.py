"""The tables of a text: which lines are theirs, and the units of one table with header, unit and caption."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dtrag.core.text import line_kinds, table_rows
from dtrag.core.text.unit_types import ContextSpan, Line, Unit


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
        if table_rows.has_pipes(lines[last].text):
            rows += 1
        elif not (line_kinds.is_rule(lines[last].text) or _within(lines, last)):
            break
        last += 1
    if rows == 0 or (rows == 1 and (last > first + 1 or len(table_rows.cells_of(lines[first].text)) < 3)):
        return 0
    return last


def _within(lines: Sequence[Line], number: int) -> bool:
    """Whether a line without separators is a row of one cell: rows follow, and it is not a sentence."""
    line = lines[number].text
    if line_kinds.is_terminated(line) or len(line) > table_rows.LONGEST_HEADER_CELL:
        return False
    below = lines[number + 1 : number + 2]
    return bool(below) and not below[0].gap and table_rows.has_pipes(below[0].text)


def _aligned(lines: Sequence[Line], first: int) -> int:
    """One past the last row of a table in columns that begins here; 0 for none."""
    rows = [first]
    if line_kinds.is_contents(lines[first].text) or len(table_rows.cells_of(lines[first].text)) < 2:
        return 0
    last = first + 1
    while last < len(lines) and not lines[last].gap:
        line = lines[last]
        if len(table_rows.cells_of(line.text)) >= 2 and not line_kinds.is_contents(line.text):
            rows.append(last)
        elif not (line_kinds.is_rule(line.text) or _below_a_column(lines[rows[-1]], line)):
            break
        last += 1
    return last if table_rows.aligned([lines[row].raw for row in rows]) else 0


def _below_a_column(row: Line, line: Line) -> bool:
    """Whether a line continues a cell of the row above: it begins where one of its later cells does."""
    starts = table_rows.column_starts(row.raw)
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
        headers = body[: table_rows.header_rows([rows[number][2] for number in body])]
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
        piped = any(table_rows.has_pipes(line.text) for line in self.lines)
        row: Line | None = None
        for line in self.lines:
            cells = table_rows.cells_of(line.text)
            if not piped and rows and row is not None and len(cells) < 2 and _below_a_column(row, line):
                rows[-1] = (rows[-1][0], line.end, rows[-1][2])
                continue
            row = line
            rows.append((line.start, line.end, cells))
        return rows


def _ordered(spans: Sequence[ContextSpan]) -> tuple[ContextSpan, ...]:
    return tuple(sorted(dict.fromkeys(spans), key=lambda span: (span.start, span.end)))
