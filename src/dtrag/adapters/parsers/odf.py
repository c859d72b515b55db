"""ODT and ODS (OpenDocument: a zip of XML): headings, paragraphs, lists and tables, or the rows of each sheet.

Tracked deletions, comments and text that its style hides are dropped. Numbers of lists are not stored in the file.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from lxml import etree

from dtrag.adapters.parsers.archive import SafeArchive, open_archive, parse_xml
from dtrag.adapters.parsers.blocks import DEEPEST_INDENT, RowSpans, TextBuilder, title_of
from dtrag.adapters.parsers.decoding import clean_line
from dtrag.adapters.parsers.formats import format_of
from dtrag.adapters.parsers.rows import MAX_COLUMNS, MAX_FILLED, Cells, Merge, Sheet, documents, groups_of, shown
from dtrag.core.documents import ParsedDocument
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

Element = Any  # lxml elements: their stubs do not know that their attributes are strings
MAX_PART_BYTES = 128 << 20
MAX_ROWS = 1 << 20
"""Rows of a sheet; spreadsheet programs have no more."""

_OASIS = "{urn:oasis:names:tc:opendocument:xmlns:"
OFFICE, STYLE, TEXT, TABLE, DRAW = (f"{_OASIS}{name}:1.0}}" for name in ("office", "style", "text", "table", "drawing"))
_SKIPPED = frozenset({f"{TEXT}tracked-changes", f"{OFFICE}annotation", f"{TEXT}ruby-text", f"{TEXT}note-citation"})
_ROW_GROUPS = frozenset(f"{TABLE}{name}" for name in ("table-header-rows", "table-rows", "table-row-group"))


def parse(path: Path, name: str) -> Iterator[ParsedDocument]:
    """The document, or the rows of the sheets, by what the file holds. Raises `ParseFailed`."""
    chosen = format_of(name)
    with open_archive(path) as archive:
        if "META-INF/manifest.xml" in archive and any(
            True for _ in _xml(archive, "META-INF/manifest.xml").iter("{*}encryption-data")
        ):
            raise ParseFailed(stated("file_encrypted", "it is encrypted; save it without a password"))
        root = _xml(archive, "content.xml")
        meta = _xml(archive, "meta.xml") if "meta.xml" in archive else None
    title = next((element.text for element in meta.iter("{*}title")), None) if meta is not None else None
    body = root.find(f"{OFFICE}body")
    kind = body[0].tag if body is not None and len(body) else ""
    if kind == f"{OFFICE}spreadsheet":
        hidden = _styles(root, "table-properties", f"{TABLE}display", "false")
        sheets = [_sheet(table, hidden) for table in body[0].iterfind(f"{TABLE}table")]
        count = sum(sheet.hidden for sheet in sheets)
        groups = chain.from_iterable(map(groups_of, sheets))
        metadata = {"hidden_sheets": count} if count else {}
        yield from documents(groups, title_of(title, name), chosen.content_type, metadata)
    elif kind == f"{OFFICE}text":
        builder = TextBuilder()
        reader = _Body(builder, _styles(root, "text-properties", f"{TEXT}display", "none"))
        reader.read(body[0])
        yield builder.document(
            title=title_of(title or builder.first_heading, name),
            content_type=chosen.content_type,
            metadata={"hidden_runs": reader.hidden} if reader.hidden else {},
        )
    else:
        raise ParseFailed(stated("file_not_label", "it is something else, not a {label} file", label=chosen.label))


def _xml(archive: SafeArchive, name: str) -> Element:
    return parse_xml(archive.read(name, MAX_PART_BYTES))


def _styles(root: Element, properties: str, attribute: str, value: str) -> set[str]:
    """Names of the styles with this value of a property."""
    return {
        style.get(f"{STYLE}name", "")
        for style in root.iter(f"{STYLE}style")
        if any(child.get(attribute) == value for child in style.iterfind(f"{STYLE}{properties}"))
    }


def _number(element: Element, attribute: str) -> int:
    """A count of the element, 1 without one."""
    value = element.get(f"{TABLE}{attribute}", "1")
    return max(1, int(value)) if value.isascii() and value.isdecimal() and len(value) < 8 else 1


class _Body:
    """Adds paragraphs, lists and tables to the builder."""

    def __init__(self, builder: TextBuilder, hidden_styles: set[str]) -> None:
        self._builder = builder
        self._hidden_styles = hidden_styles
        self._repeatable = MAX_FILLED
        self.hidden = 0

    def read(self, container: Element) -> None:
        """Headings, paragraphs, lists and tables in it, and in sections, indexes and boxes."""
        for child in container:
            if child.tag in (f"{TEXT}h", f"{TEXT}p"):
                style = child.get(f"{TEXT}style-name", "")
                level = child.get(f"{TEXT}outline-level", "1") if child.tag == f"{TEXT}h" else ""
                depth = min(6, max(1, int(level))) if level.isascii() and level.isdecimal() else 0
                self._builder.add(self.text_of(child), "heading" if depth else "paragraph", depth, style)
                for box in child.iter(f"{DRAW}text-box"):
                    if next(box.iterancestors(f"{TEXT}h", f"{TEXT}p")) is child:
                        self.read(box)
            elif child.tag == f"{TEXT}list":
                self._builder.add("\n".join(self._items(child, 0)), "list")
            elif child.tag == f"{TABLE}table":
                spans = RowSpans()
                rows = (spans.row(self._cells(row)) for row in _rows(child))
                self._builder.add("\n".join(filter(None, rows)), "table")
            elif child.tag not in _SKIPPED and isinstance(child.tag, str):
                self.read(child)

    def _items(self, container: Element, depth: int) -> Iterator[str]:
        for item in container:
            marker = "- "
            for child in item:
                if child.tag == f"{TEXT}list":
                    yield from self._items(child, depth + 1)
                elif text := " ".join(self.text_of(child).split()):
                    yield "  " * min(depth, DEEPEST_INDENT) + marker + text
                    marker = "  "

    def _cells(self, row: Element) -> Iterator[tuple[str, int, int]]:
        for cell in row.iterfind(f"{TABLE}table-cell"):
            text = " ".join(" ".join(self.text_of(p) for p in cell.iter(f"{TEXT}p", f"{TEXT}h")).split())
            count = min(_number(cell, "number-columns-repeated"), MAX_COLUMNS, max(1, self._repeatable))
            self._repeatable -= count
            span = (_number(cell, "number-columns-spanned"), _number(cell, "number-rows-spanned"))
            yield from repeat((text.replace(" | ", " "), *span), count)

    def text_of(self, paragraph: Element) -> str:
        """The visible characters of a paragraph; a footnote follows its mark in parentheses."""
        pieces: list[str] = []
        at_note = False
        walker = etree.iterwalk(paragraph, events=("start", "end"))
        for event, element in walker:
            tag = element.tag
            if event == "start":
                hides = element.get(f"{TEXT}style-name", "") in self._hidden_styles and tag != f"{TEXT}list"
                self.hidden += hides
                nested = tag in (f"{TEXT}p", f"{TEXT}h") and element is not paragraph
                if hides or tag in _SKIPPED or str(tag).startswith(DRAW) or not isinstance(tag, str):
                    walker.skip_subtree()
                elif tag == f"{TEXT}s":
                    pieces.append(" ")
                elif tag == f"{TEXT}tab":
                    pieces.append("\t")
                elif tag == f"{TEXT}line-break":
                    pieces.append("\n")
                else:
                    pieces.append(" (" if tag == f"{TEXT}note-body" else " " if nested and not at_note else "")
                    at_note = tag == f"{TEXT}note-body"
                    pieces.append(" ".join((element.text or "").split("\n")))
            else:
                pieces.append(")" if tag == f"{TEXT}note-body" else "")
                if element is not paragraph:
                    pieces.append(" ".join((element.tail or "").split("\n")))
        return "".join(pieces)


def _rows(table: Element) -> Iterator[Element]:
    for child in table:
        if child.tag == f"{TABLE}table-row":
            yield child
        elif child.tag in _ROW_GROUPS:
            yield from _rows(child)


def _sheet(table: Element, hidden_styles: set[str]) -> Sheet:
    name = clean_line(table.get(f"{TABLE}name", ""))
    merges: list[Merge] = []
    hidden = table.get(f"{TABLE}style-name", "") in hidden_styles
    number = 0
    for row in _rows(table):
        column = 0
        for cell in row:
            columns, rows = _number(cell, "number-columns-spanned"), _number(cell, "number-rows-spanned")
            if columns > 1 or rows > 1:
                merges.append(((number, column), (number + rows - 1, column + columns - 1)))
            column += _number(cell, "number-columns-repeated")
        number += _number(row, "number-rows-repeated")
    return Sheet(name or "1", _sheet_rows(table), merges, hidden)


def _sheet_rows(table: Element) -> Iterator[Cells]:
    left, number = MAX_FILLED, 0
    for row in _rows(table):
        cells: Cells = []
        blank = 0
        for cell in row:
            count = _number(cell, "number-columns-repeated")
            text = _value(cell) if cell.tag == f"{TABLE}table-cell" else ""
            if not text:
                blank += count
                continue
            count = min(count, MAX_COLUMNS + 1, max(1, left))
            cells += [*[""] * min(blank, MAX_COLUMNS + 1), *[text] * count]
            left, blank = left - len(cells), 0
        count = min(_number(row, "number-rows-repeated"), MAX_ROWS - number)
        for _ in range(count if not cells or left > 0 else min(1, count)):
            yield list(cells)
            left -= len(cells)
        number += count


def _value(cell: Element) -> str:
    kind, value = cell.get(f"{OFFICE}value-type"), cell.get(f"{OFFICE}value", "")
    try:
        if kind == "float":
            return shown(float(value))
        if kind == "date":
            return shown(datetime.datetime.fromisoformat(cell.get(f"{OFFICE}date-value", "")))
    except (ValueError, OverflowError):
        kind = ""
    if kind == "boolean":
        return str(cell.get(f"{OFFICE}boolean-value", "")).upper()
    return clean_line(" ".join("".join(p.itertext()) for p in cell.iterfind(f"{TEXT}p")))
