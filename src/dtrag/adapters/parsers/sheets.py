"""XLSX and XLS with python-calamine (extra `spreadsheets`): the rows of each sheet, with the values of its formulas."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from python_calamine import (
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
    load_workbook,
)

from dtrag.adapters.parsers.archive import open_archive, refuse_doctype
from dtrag.adapters.parsers.blocks import title_of
from dtrag.adapters.parsers.decoding import clean_line
from dtrag.adapters.parsers.formats import ZIP_MAGICS, format_of
from dtrag.adapters.parsers.rows import Cells, Sheet, documents, groups_of, shown
from dtrag.core.documents import ParsedDocument
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

DECLARATION_BYTES = 1 << 16
"""A document type declaration precedes the root; calamine expands no entities, whatever it declares."""


def parse(path: Path, name: str) -> Iterator[ParsedDocument]:
    """As the rows of all sheets that have cells. Raises `ParseFailed`."""
    with path.open("rb") as file:
        packed = file.read(4) in ZIP_MAGICS
    if packed:
        with open_archive(path) as archive:
            for entry in archive.names():
                if entry.lower().endswith((".xml", ".rels")):
                    with archive.open(entry) as stream:
                        refuse_doctype(stream.read(DECLARATION_BYTES))
    with path.open("rb") as file:
        try:
            workbook = load_workbook(file)
        except PasswordError as error:
            raise ParseFailed(stated("file_encrypted", "it is encrypted; save it without a password")) from error
        hidden = sum(properties.visible is not SheetVisibleEnum.Visible for properties in workbook.sheets_metadata)
        yield from documents(
            chain.from_iterable(map(groups_of, _sheets(workbook))),
            title_of(None, name),
            format_of(name).content_type,
            {"hidden_sheets": hidden} if hidden else {},
        )


def _sheets(workbook: CalamineWorkbook) -> Iterator[Sheet]:
    for number, properties in enumerate(workbook.sheets_metadata):
        if properties.typ is not SheetTypeEnum.WorkSheet:
            continue
        sheet = workbook.get_sheet_by_index(number)
        if sheet.start is not None:
            hidden = properties.visible is not SheetVisibleEnum.Visible
            yield Sheet(clean_line(properties.name), _rows(sheet), sheet.merged_cell_ranges or (), hidden)


def _rows(sheet: CalamineSheet) -> Iterator[Cells]:
    """From row 1 and column A; calamine gives the rows from the first, but the columns from the first filled one."""
    left = [""] * (sheet.start or (0, 0))[1]
    for row in sheet.iter_rows():
        yield [*left, *map(shown, row)]
