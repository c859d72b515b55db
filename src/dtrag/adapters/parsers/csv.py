"""CSV and TSV: each row one paragraph "header: value; header: value", so that a row can be found and quoted by itself.

Read row by row: a file of any size needs the memory of one document, which is at most 2,000 rows.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import IO

from dtrag.adapters.parsers.blocks import title_of
from dtrag.adapters.parsers.decoding import clean_line, encoding_of
from dtrag.adapters.parsers.rows import MAX_COLUMNS, Group, documents, is_header, sentence
from dtrag.core.documents import ParsedDocument
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

DELIMITERS = ",\t;|"
SAMPLE_ROWS = 20
MAX_CELL = 1 << 20
MAX_LINE = 32 << 20
"""Characters. A line holds at most 2,000 cells; a longer one is no table."""


def parse(path: Path, name: str) -> Iterator[ParsedDocument]:
    """One document, or several with the parts `rows-1-2000`, `rows-2001-4000` … (the header row is not counted)."""
    title = title_of(None, name)
    encoding = encoding_of(path)
    previous = csv.field_size_limit(MAX_CELL)
    try:
        with path.open(encoding=encoding, newline="", errors="strict") as file:
            yield from documents(_groups(_rows(file)), title, "text/csv")
    finally:
        csv.field_size_limit(previous)


def _groups(rows: Iterator[list[str]]) -> Iterator[Group]:
    first = next(rows, None)
    if first is None:
        raise ParseFailed(stated("no_text", "no text in it"))
    header = first if is_header(first) else []
    for row in rows if header else chain([first], rows):
        yield Group((sentence(header, row),))


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
