"""DOCX with python-docx, after checks of the archive: headings, paragraphs, lists and tables in document order.

python-docx opens the package and reads the styles; the text is read from the XML of the body, because
`paragraph.text` omits tracked insertions and content controls. Deleted and hidden text is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import docx
from docx.opc.exceptions import PackageNotFoundError
from lxml import etree

from dtrag.adapters.parsers.archive import open_archive, refuse_doctype
from dtrag.adapters.parsers.blocks import DEEPEST_INDENT, LONGEST_REPEATED, TextBuilder, title_of
from dtrag.core.documents import ParsedDocument
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

CONTENT_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
MAX_PART_BYTES = 128 << 20
MAX_STYLE_DEPTH = 20
"""Longer chains of `basedOn` are taken for cycles."""

_HEADING = re.compile(r"(?:heading|제목|개요)\s*([1-9])$", re.IGNORECASE)
_TITLES = ("title", "제목")
_SKIPPED = frozenset({f"{WORD}del", f"{WORD}moveFrom", f"{WORD}instrText", f"{WORD}pPr", FALLBACK})
_BREAKS = frozenset({f"{WORD}br", f"{WORD}cr"})


def parse(path: Path, name: str) -> Iterator[ParsedDocument]:
    """One document; its title is the one in the properties, or the first heading. Raises `ParseFailed`."""
    with open_archive(path) as archive:
        for entry in archive.names():
            if entry.lower().endswith((".xml", ".rels")):
                refuse_doctype(archive.read(entry, MAX_PART_BYTES))
    try:
        document = docx.Document(str(path))
    except (PackageNotFoundError, KeyError, ValueError) as error:
        raise ParseFailed(stated("docx_incomplete", "it is not a complete DOCX file")) from error
    builder = TextBuilder()
    reader = _Body(builder, _Styles(document.styles.element))
    reader.read(document.element.body)
    yield builder.document(
        title=title_of(document.core_properties.title or builder.first_heading, name),
        content_type=CONTENT_TYPE,
        metadata={"hidden_runs": reader.hidden} if reader.hidden else {},
    )


class _Styles:
    """Properties of paragraph styles: name, heading level, list or not; inherited along `basedOn`."""

    def __init__(self, element: etree._Element) -> None:
        self._styles = {style.get(f"{WORD}styleId", ""): style for style in element.iter(f"{WORD}style")}

    def name(self, style_id: str) -> str:
        style = self._styles.get(style_id)
        return _value(style, "name") if style is not None else ""

    def chain(self, style_id: str) -> Iterator[etree._Element]:
        """The style and its ancestors, nearest first."""
        for _ in range(MAX_STYLE_DEPTH):
            style = self._styles.get(style_id)
            if style is None:
                return
            yield style
            style_id = _value(style, "basedOn")

    def level(self, style_id: str) -> int:
        """1..6 for a heading, 0 for body text."""
        for style in self.chain(style_id):
            name = _value(style, "name")
            numbered = _HEADING.match(name)
            if numbered:
                return min(6, int(numbered[1]))
            if name.lower() in _TITLES:
                return 1
            outline = _outline_level(style.find(f"{WORD}pPr"))
            if outline:
                return outline
        return 0

    def is_list(self, style_id: str) -> bool:
        return any(style.find(f"{WORD}pPr/{WORD}numPr") is not None for style in self.chain(style_id))

    def hides(self, style_id: str) -> bool:
        return any(_is_on(style.find(f"{WORD}rPr/{WORD}vanish")) for style in self.chain(style_id))


class _Body:
    """Adds paragraphs, lists and tables to the builder; neighbouring list items become one block."""

    def __init__(self, builder: TextBuilder, styles: _Styles) -> None:
        self._builder = builder
        self._styles = styles
        self._items: list[str] = []
        self.hidden = 0

    def read(self, container: etree._Element) -> None:
        self._children(container)
        self._flush_list()

    def _children(self, container: etree._Element) -> None:
        for child in container:
            if child.tag == f"{WORD}p":
                self._paragraph(child)
            elif child.tag == f"{WORD}tbl":
                self._flush_list()
                above: dict[int, str] = {}
                rows = (self._row(row, above) for row in child.iter(f"{WORD}tr") if _nearest(row, "tbl") is child)
                self._builder.add("\n".join(row for row in rows if row), "table")
            elif child.tag in (f"{WORD}sdt", f"{WORD}sdtContent", f"{WORD}ins", f"{WORD}customXml", f"{WORD}moveTo"):
                self._children(child)

    def _paragraph(self, paragraph: etree._Element) -> None:
        text = self.text_of(paragraph)
        if not text.strip():
            return
        properties = paragraph.find(f"{WORD}pPr")
        style_id = _value(properties, "pStyle")
        level = _outline_level(properties) or self._styles.level(style_id)
        if level:
            self._flush_list()
            self._builder.add(text, "heading", level, self._styles.name(style_id))
            return
        numbering = properties.find(f"{WORD}numPr") if properties is not None else None
        if numbering is not None or self._styles.is_list(style_id):
            depth = _value(numbering, "ilvl")
            indent = "  " * min(DEEPEST_INDENT, int(depth) if depth.isdecimal() else 0)
            self._items.append(f"{indent}- {' '.join(text.split())}")
            return
        self._flush_list()
        self._builder.add(text, style=self._styles.name(style_id))

    def _row(self, row: etree._Element, above: dict[int, str]) -> str:
        """`cell | cell`; a short cell that spans several rows is repeated from `above`: column -> text."""
        texts: list[str] = []
        filled = False
        column = _grid_number(row.find(f"{WORD}trPr"), "gridBefore")
        for cell in row.iter(f"{WORD}tc"):
            if _nearest(cell, "tr") is not row:
                continue
            text = " ".join(" ".join(self.text_of(p) for p in cell.iter(f"{WORD}p")).split())
            filled = filled or bool(text)
            properties = cell.find(f"{WORD}tcPr")
            merge = properties.find(f"{WORD}vMerge") if properties is not None else None
            if merge is not None and merge.get(f"{WORD}val", "continue") == "continue":
                text = text or above.get(column, "")
            elif merge is not None:
                above[column] = text if len(text) <= LONGEST_REPEATED else ""
            texts.append(text)
            column += max(1, _grid_number(properties, "gridSpan"))
        return " | ".join(texts) if filled else ""

    def text_of(self, paragraph: etree._Element) -> str:
        """The visible characters of a paragraph."""
        pieces = []
        walker = etree.iterwalk(paragraph, events=("start",))
        for _, element in walker:
            if element.tag in _SKIPPED or (element.tag == f"{WORD}tbl" and element is not paragraph):
                walker.skip_subtree()
            elif element.tag == f"{WORD}r" and self._is_hidden(element):
                self.hidden += 1
                walker.skip_subtree()
            elif element.tag == f"{WORD}t":
                pieces.append(element.text or "")
            elif element.tag == f"{WORD}tab":
                pieces.append("\t")
            elif element.tag == f"{WORD}noBreakHyphen":
                pieces.append("-")
            elif element.tag in _BREAKS:
                pieces.append("\n")
        return "".join(pieces)

    def _is_hidden(self, run: etree._Element) -> bool:
        properties = run.find(f"{WORD}rPr")
        if properties is None:
            return False
        own = properties.find(f"{WORD}vanish")
        return _is_on(own) if own is not None else self._styles.hides(_value(properties, "rStyle"))

    def _flush_list(self) -> None:
        items, self._items = self._items, []
        self._builder.add("\n".join(items), "list")


def _value(parent: etree._Element | None, child: str) -> str:
    element = parent.find(f"{WORD}{child}") if parent is not None else None
    return str(element.get(f"{WORD}val", "")) if element is not None else ""


def _grid_number(properties: etree._Element | None, child: str) -> int:
    """Columns of the table's grid, at most 1,000; 0 without the property."""
    value = _value(properties, child)
    return min(1_000, int(value)) if value.isascii() and value.isdecimal() and len(value) < 6 else 0


def _is_on(switch: etree._Element | None) -> bool:
    return switch is not None and switch.get(f"{WORD}val", "true") not in ("0", "false", "off")


def _outline_level(properties: etree._Element | None) -> int:
    """`outlineLvl` counts from 0; 9 is body text."""
    value = _value(properties, "outlineLvl")
    return min(6, int(value) + 1) if value.isdecimal() and int(value) < 9 else 0


def _nearest(element: etree._Element, tag: str) -> etree._Element | None:
    return next(element.iterancestors(f"{WORD}{tag}"), None)
