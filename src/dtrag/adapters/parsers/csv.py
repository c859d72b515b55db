"""CSV and TSV: each row one paragraph "header: value; header: value", so that a row can be found and quoted by itself.

Read row by row: a file of any size needs the memory of one document, which is at most 2,000 rows.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import IO

from dtrag.adapters.parsers.blocks import TextBuilder, title_of
from dtrag.adapters.parsers.decoding import clean_line, encoding_of
from dtrag.core.documents import ParsedDocument
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

DELIMITERS = ",\t;|"
SAMPLE_ROWS = 20
MAX_COLUMNS = 2_000
MAX_CELL = 1 << 20
MAX_LINE = 32 << 20
"""Characters. A line holds at most 2,000 cells; a longer one is no table."""
LONGEST_NAME = 200
"""Characters of the name of a column, which each row repeats."""
ROWS_PER_DOCUMENT = 2_000
CHARACTERS_PER_DOCUMENT = 4_000_000


def parse(path: Path, name: str) -> Iterator[ParsedDocument]:
    """One document, or several with the parts `rows-1-2000`, `rows-2001-4000` … (the header row is not counted)."""
    title = title_of(None, name)
    encoding = encoding_of(path)
    previous = csv.field_size_limit(MAX_CELL)
    try:
        with path.open(encoding=encoding, newline="", errors="strict") as file:
            yield from _documents(_rows(file), title)
    finally:
        csv.field_size_limit(previous)


def _documents(rows: Iterator[list[str]], title: str) -> Iterator[ParsedDocument]:
    first = next(rows, None)
    if first is None:
        raise ParseFailed(stated("no_text", "no text in it"))
    header = first if _is_header(first) else []
    if not header:
        rows = chain([first], rows)
    start = 1
    pending = next(rows, None)
    while pending is not None:
        builder = TextBuilder()
        count = 0
        while pending is not None and count < ROWS_PER_DOCUMENT and len(builder) < CHARACTERS_PER_DOCUMENT:
            builder.add(_sentence(header, pending))
            count += 1
            pending = next(rows, None)
        whole = start == 1 and pending is None
        part = "" if whole else f"rows-{start}-{start + count - 1}"
        yield builder.document(
            title=title if whole else f"{title} ({start}-{start + count - 1})",
            content_type="text/csv",
            part=part,
            metadata={"rows": count, "first_row": start},
        )
        start += count
    if start == 1:
        raise ParseFailed(stated("csv_no_rows", "no rows in it besides the header"))


def _rows(file: IO[str]) -> Iterator[list[str]]:
    """Non-blank rows of cleaned cells. Raises `ParseFailed`."""
    lines = _lines(file)
    sample = list(islice(lines, SAMPLE_ROWS))
    reader = csv.reader(chain(sample, lines), delimiter=_delimiter(sample))
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            too_long = "field larger" in str(error)
            line = reader.line_num
            if not too_long:
                raise ParseFailed(
                    stated("csv_line_failed", "line {line}: {reason}", line=line, reason=error)
                ) from error
            text = "line {line}: a cell is longer than {limit} characters (a missing quote?)"
            raise ParseFailed(stated("csv_cell_long", text, line=line, limit=f"{MAX_CELL:,}")) from error
        if row is None:
            return
        if len(row) > MAX_COLUMNS:
            text = "line {line}: more than {limit} columns"
            raise ParseFailed(stated("csv_columns", text, line=reader.line_num, limit=f"{MAX_COLUMNS:,}"))
        cells = [clean_line(cell) for cell in row]
        if any(cells):
            yield cells


def _lines(file: IO[str]) -> Iterator[str]:
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            text = "line {line}: longer than {limit} characters"
            raise ParseFailed(stated("csv_line_long", text, line=number, limit=f"{MAX_LINE:,}"))
        # csv refuses NUL in some versions of Python and keeps it in others; it is never data.
        yield line.replace("\x00", "")


def _delimiter(sample: Iterable[str]) -> str:
    """The delimiter that gives the most rows of the same number (> 1) of cells; a comma when none does."""
    lines = [line for line in sample if line.strip()]

    def agreement(delimiter: str) -> tuple[int, int]:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        except csv.Error:
            return (0, 0)
        if not widths or widths[0] == 1:
            return (0, 0)
        return (sum(width == widths[0] for width in widths), widths[0])

    return max(DELIMITERS, key=agreement)


def _is_header(row: list[str]) -> bool:
    """A first row names columns when its cells are all filled, short, all different and none is a number."""
    is_short = all(0 < len(cell) <= LONGEST_NAME for cell in row)
    return is_short and len(set(row)) == len(row) and not any(_is_number(cell) for cell in row)


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", ""))
    except ValueError:
        return False
    return True


def _sentence(header: list[str], row: list[str]) -> str:
    names = header[: len(row)] + [""] * (len(row) - len(header))
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in zip(names, row, strict=True) if cell)
