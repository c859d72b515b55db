"""DOCX with python-docx, after checks of the archive: headings, paragraphs, lists and tables in document order.

python-docx opens the package and reads the styles; the text is read from the XML of the body, because
`paragraph.text` omits tracked insertions and content controls. Deleted and hidden text is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import docx
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.exceptions import PackageNotFoundError
from lxml import etree

from dtrag.adapters.parsers.archive import open_archive, refuse_doctype
from dtrag.adapters.parsers.blocks import DEEPEST_INDENT, LONGEST_REPEATED, TextBuilder, title_of, whole_number
from dtrag.adapters.parsers.paragraph_numbers import SERIES, NumberLevel, ParagraphNumbers
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
        with path.open("rb") as file:
            document = docx.Document(file)
    except (PackageNotFoundError, KeyError, ValueError) as error:
        raise ParseFailed(stated("docx_incomplete", "it is not a complete DOCX file")) from error
    builder = TextBuilder()
    styles = _Styles(document.styles.element)
    try:
        numbering = document.part.part_related_by(RELATIONSHIP_TYPE.NUMBERING).element
    except KeyError:
        numbering = None
    reader = _Body(builder, styles, _Numbers(numbering, styles))
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

    def numbering(self, style_id: str) -> Iterator[etree._Element]:
        """What the style and its ancestors say of lists, nearest first."""
        for style in self.chain(style_id):
            yield from style.iterfind(f"{WORD}pPr/{WORD}numPr")

    def hides(self, style_id: str) -> bool:
        return any(_is_on(style.find(f"{WORD}rPr/{WORD}vanish")) for style in self.chain(style_id))


_KINDS = {
    "upperRoman": "ROMAN_CAPITAL",
    "lowerRoman": "ROMAN_SMALL",
    "upperLetter": "LATIN_CAPITAL",
    "lowerLetter": "LATIN_SMALL",
    "ganada": "HANGUL_SYLLABLE",
    "chosung": "HANGUL_JAMO",
    "koreanCounting": "HANGUL_PHONETIC",
    "koreanDigital": "HANGUL_PHONETIC",
    "chineseCounting": "IDEOGRAPH",
    "ideographDigital": "IDEOGRAPH",
    "decimalEnclosedCircle": "CIRCLED_DIGIT",
}


class _Numbers:
    """The numbers of lists and headings. Lists of one kind (`abstractNum`) count on; some begin again."""

    def __init__(self, numbering: etree._Element | None, styles: _Styles) -> None:
        self._styles = styles
        self._lists: dict[str, tuple[str, dict[int, int]]] = {}
        self._by_style: dict[tuple[str, str], int] = {}
        kinds: dict[str, list[NumberLevel]] = {}
        for kind in numbering.iterfind(f"{WORD}abstractNum") if numbering is not None else ():
            name = kind.get(f"{WORD}abstractNumId", "")
            levels = sorted(kind.iterfind(f"{WORD}lvl"), key=lambda level: whole_number(level.get(f"{WORD}ilvl")))
            kinds[name] = [_number_level(level) for level in levels]
            self._by_style |= {(name, _value(level, "pStyle")): place for place, level in enumerate(levels)}
        for each in numbering.iterfind(f"{WORD}num") if numbering is not None else ():
            starts = {
                whole_number(level.get(f"{WORD}ilvl")): whole_number(_value(level, "startOverride"))
                for level in each.iterfind(f"{WORD}lvlOverride")
                if _value(level, "startOverride")
            }
            self._lists[each.get(f"{WORD}numId", "")] = (_value(each, "abstractNumId"), starts)
        self._numbers = ParagraphNumbers(kinds)

    def before(self, properties: etree._Element | None, style_id: str) -> tuple[str, int] | None:
        """The number of the next paragraph ("" for a bullet) and its level; None if it is not in a list."""
        own = list(properties.iterfind(f"{WORD}numPr")) if properties is not None else []
        stated = [*own, *self._styles.numbering(style_id)]
        number = next(filter(None, (_value(each, "numId") for each in stated)), "")
        if not stated or number == "0":
            return None
        name, starts = self._lists.get(number, ("", {}))
        place = next(filter(None, (_value(each, "ilvl") for each in stated)), "")
        level = whole_number(place) if place or own else self._by_style.get((name, style_id), 0)
        if starts:  # the first of this list
            self._numbers.restart(name, min(starts), starts[min(starts)])
            self._lists[number] = (name, {})
        return self._numbers.count(name, level), level


def _number_level(level: etree._Element) -> NumberLevel:
    kind = _value(level, "numFmt")
    form = "" if kind in ("bullet", "none") else _value(level, "lvlText").replace("%", "^")
    start = _value(level, "start")
    in_digits = level.find(f"{WORD}isLgl") is not None
    return NumberLevel(form, SERIES.get(_KINDS.get(kind, ""), ()), whole_number(start, 1), in_digits)


class _Body:
    """Adds paragraphs, lists and tables to the builder; neighbouring list items become one block."""

    def __init__(self, builder: TextBuilder, styles: _Styles, numbers: _Numbers) -> None:
        self._builder = builder
        self._styles = styles
        self._numbers = numbers
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
        text, item = self.text_of(paragraph), self._item(paragraph)
        if not text.strip():
            return
        properties = paragraph.find(f"{WORD}pPr")
        style_id = _value(properties, "pStyle")
        number, depth = item or ("", 0)
        level = _outline_level(properties) or self._styles.level(style_id)
        if level:
            self._flush_list()
            self._builder.add(f"{number} {text}", "heading", level, self._styles.name(style_id))
            return
        if item is not None:
            self._items.append(f"{'  ' * min(DEEPEST_INDENT, depth)}{number or '-'} {' '.join(text.split())}")
            return
        self._flush_list()
        self._builder.add(text, style=self._styles.name(style_id))

    def _item(self, paragraph: etree._Element) -> tuple[str, int] | None:
        """The number of a paragraph and its level. Called once for each, in order: it counts."""
        properties = paragraph.find(f"{WORD}pPr")
        return self._numbers.before(properties, _value(properties, "pStyle"))

    def _row(self, row: etree._Element, above: dict[int, str]) -> str:
        """`cell | cell`; a short cell that spans several rows is repeated from `above`: column -> text."""
        texts: list[str] = []
        filled = False
        column = _grid_number(row.find(f"{WORD}trPr"), "gridBefore")
        for cell in row.iter(f"{WORD}tc"):
            if _nearest(cell, "tr") is not row:
                continue
            numbered = ((self._item(p), self.text_of(p)) for p in cell.iter(f"{WORD}p"))
            pieces = (f"{item[0]} {text}" if item and text.strip() else text for item, text in numbered)
            text = " ".join(" ".join(pieces).split())
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
    return min(1_000, whole_number(_value(properties, child)))


def _is_on(switch: etree._Element | None) -> bool:
    return switch is not None and switch.get(f"{WORD}val", "true") not in ("0", "false", "off")


def _outline_level(properties: etree._Element | None) -> int:
    """`outlineLvl` counts from 0; 9 is body text."""
    value = _value(properties, "outlineLvl")
    return min(6, int(value) + 1) if value.isdecimal() and int(value) < 9 else 0


def _nearest(element: etree._Element, tag: str) -> etree._Element | None:
    return next(element.iterancestors(f"{WORD}{tag}"), None)
