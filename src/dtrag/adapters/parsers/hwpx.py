"""Reads HWPX (KS X 6101: a zip of OWPML XML): paragraphs with their style names, headings, and tables in place.

Text stays in reading order: a table inside the run of a paragraph splits the paragraph, text boxes and captions become
paragraphs, a footnote follows its mark in parentheses. Headers, footers, page numbers, hidden comments, form buttons
and tracked deletions are dropped. Numbers and bullets of paragraph shapes, which are not in the text of the file, are
written before it. Tags are matched by local name: namespaces changed between the editions of the
standard, local names did not.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lxml import etree

from dtrag.adapters.parsers.archive import SafeArchive, open_archive, parse_xml
from dtrag.adapters.parsers.blocks import RowSpans, TextBuilder, title_of, whole_number
from dtrag.adapters.parsers.paragraph_numbers import ParagraphNumbers
from dtrag.core.documents import BlockKind, ParsedDocument
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

CONTENT_TYPE = "application/hwp+zip"
PACKAGE = "Contents/content.hpf"
HEADER = "Contents/header.xml"
MANIFEST = "META-INF/manifest.xml"
SMALL_PART_BYTES = 64 << 20
"""Limit of a part that is read whole (the header of a 1,500-page book has 5.5 MB); sections are streamed."""

LOCKED = stated(
    "hwpx_encrypted",
    "it is encrypted or for distribution only; open it in Hangul, remove the password or the protection "
    "(보안 > 문서 암호 변경/해제), and save it as HWPX",
)

_SECTION = re.compile(r"^Contents/section(\d+)\.xml$", re.IGNORECASE)
_NO_TITLE = re.compile(r"^(?:제목\s*없음|빈\s*문서.*|untitled.*|.*\.hwpx?)$", re.IGNORECASE)


def parse(path: Path, name: str) -> Iterator[ParsedDocument]:
    """The one document in the file. Raises `ParseFailed` (encrypted, for distribution only, not HWPX, damaged)."""
    with open_archive(path) as archive:
        entries = set(archive.names())
        _refuse_locked(archive)
        package = _xml(archive, PACKAGE) if PACKAGE in entries else None
        parts = _parts(package)
        sections = [part for part in parts if _SECTION.match(part) and part in entries] or _sections_by_number(entries)
        if not sections:
            raise ParseFailed(
                stated(
                    "hwpx_no_section",
                    "it has no section, so it is not an HWPX document; save it as HWPX in Hangul again",
                )
            )
        styles = read_styles(_xml(archive, HEADER)) if HEADER in entries else Styles({}, {})
        builder = TextBuilder()
        for section in sections:
            for piece in _pieces(archive, section, styles):
                builder.add(piece.text, piece.kind, piece.level if piece.kind == "heading" else 0, piece.style)
    yield builder.document(title=title_of(_title(package), name), content_type=CONTENT_TYPE)


def _refuse_locked(archive: SafeArchive) -> None:
    if MANIFEST not in archive:
        return
    if any(local_name(element) == "encryption-data" for element in _xml(archive, MANIFEST).iter()):
        raise ParseFailed(LOCKED)


def _xml(archive: SafeArchive, name: str) -> Element:
    return parse_xml(archive.read(name, SMALL_PART_BYTES))


def _parts(package: Element | None) -> list[str]:
    """Names of the parts in the order of the spine of `content.hpf`; [] without one."""
    if package is None:
        return []
    items = {item.get("id"): item.get("href", "") for item in package.iter("{*}item")}
    order = [items.get(reference.get("idref"), "") for reference in package.iter("{*}itemref")]
    # Some programs write paths relative to the root of the archive, some relative to the folder of content.hpf.
    return [href if href.startswith("Contents/") else posixpath.join("Contents", href) for href in order if href]


def _sections_by_number(entries: set[str]) -> list[str]:
    numbered = [(int(match[1]), entry) for entry in entries if (match := _SECTION.match(entry))]
    return [entry for _, entry in sorted(numbered)]


def _pieces(archive: SafeArchive, section: str, styles: Styles) -> Iterator[Piece]:
    """The pieces of one section, read as a stream: only one top-level paragraph is in memory at a time."""
    with archive.open(section) as stream:
        events = etree.iterparse(
            stream, events=("end",), tag="{*}p", resolve_entities=False, no_network=True, load_dtd=False
        )
        checked = False
        try:
            for _, paragraph in events:
                checked = checked or _refuse_doctype(paragraph)
                parent = paragraph.getparent()
                if parent is None or local_name(parent) != "sec":
                    continue
                yield from paragraph_pieces(paragraph, styles)
                paragraph.clear()
                while paragraph.getprevious() is not None:
                    del parent[0]
        except etree.XMLSyntaxError as error:
            raise ParseFailed(
                stated(
                    "hwpx_part_damaged",
                    "its part {part} is damaged: line {line} is not well-formed",
                    part=section,
                    line=error.lineno or 0,
                )
            ) from error


def _refuse_doctype(element: Element) -> bool:
    """A declaration can only precede the root, so one check is enough. Raises `ParseFailed`."""
    if element.getroottree().docinfo.doctype:
        raise ParseFailed(stated("xml_doctype", "the XML has a document type declaration, which is refused"))
    return True


def _title(package: Element | None) -> str | None:
    """The title of the metadata, unless it is a word processor's default."""
    if package is None:
        return None
    return next(filter(None, (usable_title(element.text) for element in package.iter("{*}title"))), None)


def usable_title(title: str | None) -> str:
    """The title on one line; "" for a word processor's default."""
    shown = " ".join((title or "").split())
    return "" if _NO_TITLE.match(shown) else shown


Element = Any  # lxml elements: their stubs do not know the tree is read-only here
NOTES = frozenset({"footNote", "endNote"})
SPACES = {"lineBreak": "\n", "tab": " ", "fwSpace": " ", "nbSpace": " ", "hyphen": "-"}
MAX_DEPTH = 24
"""Tables and boxes nested deeper than this are decoration or an attack; their text is dropped."""

_TENS = {chr(0xF0289 + i): str(i + 1) for i in range(9)}
_UNITS = {chr(0xF0292 + i): str(i) for i in range(10)}
_GLYPHS = {
    0xF0852: "“",
    0xF0853: "”",
    0xF09E: "·",
    0xF0A7: "▪",
    0xF0A8: "□",
    0xF0B7: "•",
    0xF0E0: "→",
    0xF0FC: "✓",
    0xF0FE: "☑",
    0x00A0: " ",
    0x00AD: None,
    0x200B: None,
    0xFEFF: None,
}
"""Unicode equivalents of those private-use glyphs of Hangul and Wingdings that carry meaning in a text."""
_PRIVATE = re.compile("[\ue000-\uf8ff\U000f0000-\U0010ffff\x00\u00a0\u00ad\u200b\ufeff]")
_BLANKS = re.compile(r"[ \t\r\f\v\u3000]+")
_OUTLINE_STYLE = re.compile(r"(?:개요|제목|outline|heading)\s*(\d{1,2})$", re.IGNORECASE)
_TITLE_STYLES = {
    "제목": 1,
    "큰제목": 1,
    "title": 1,
    "중간제목": 2,
    "장제목": 2,
    "절제목": 3,
    "작은제목": 3,
    "관제목": 3,
}


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text without blank lines, its role, and the name of its paragraph's style."""

    text: str
    kind: BlockKind = "paragraph"
    level: int = 0
    style: str = ""


@dataclass(frozen=True, slots=True)
class Styles:
    """`names`: style id to style name; `levels`: paragraph shape id to heading level 1..6, outline shapes only."""

    names: dict[str, str]
    levels: dict[str, int]
    numbers: ParagraphNumbers = field(default_factory=ParagraphNumbers)

    def of(self, paragraph: Element) -> tuple[str, int]:
        """Style name and heading level (0 = none) of an `hp:p`."""
        style = self.names.get(paragraph.get("styleIDRef", ""), "")
        level = self.levels.get(paragraph.get("paraPrIDRef", ""), 0)
        return style, level or _level_of_style(style)


def local_name(element: Element) -> str:
    """The tag without its namespace; "" for a comment or a processing instruction."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def read_styles(header: Element) -> Styles:
    """Styles and outline levels from the root of `header.xml`."""
    names: dict[str, str] = {}
    levels: dict[str, int] = {}
    for style in header.iter("{*}style"):
        names[style.get("id", "")] = (style.get("name") or "").strip()
    for shape in header.iter("{*}paraPr"):
        for heading in shape.iterfind("{*}heading"):
            level = heading.get("level", "0")
            if heading.get("type") == "OUTLINE" and level.isascii() and level.isdigit():
                levels[shape.get("id", "")] = min(int(level) + 1, 6)
    return Styles(names, levels, ParagraphNumbers.of(header))


def _level_of_style(style: str) -> int:
    if match := _OUTLINE_STYLE.match(style):
        return min(max(int(match[1]), 1), 6)
    return _TITLE_STYLES.get(style.lower(), 0)


def clean(text: str) -> str:
    """One line's text: private-use glyphs mapped or dropped, runs of blanks to one space, ends stripped."""
    if _PRIVATE.search(text):
        text = _PRIVATE.sub(_glyph, text)
    return _BLANKS.sub(" ", text).strip()


def _glyph(match: re.Match[str]) -> str:
    return _GLYPHS.get(ord(match[0])) or ""


def paragraph_pieces(paragraph: Element, styles: Styles, depth: int = 0) -> Iterator[Piece]:
    """The text of an `hp:p` in reading order: paragraphs, and the tables and boxes inside it."""
    style, level = styles.of(paragraph)
    for section in paragraph.iterfind("{*}run/{*}secPr") if depth == 0 else ():
        styles.numbers.outline = section.get("outlineShapeIDRef", "")
    number = styles.numbers.before(paragraph.get("paraPrIDRef", ""))
    line: list[str] = [f"{number} "] if number and any(text.strip() for text in _own_texts(paragraph)) else []
    deleting = False
    for run in paragraph:
        if local_name(run) != "run":
            continue
        for child in run:
            name = local_name(child)
            if name == "t":
                deleting = _text(child, line, deleting)
            elif deleting or not name:
                continue
            elif name == "ctrl":
                line.extend(_note(note, styles, depth) for note in child if local_name(note) in NOTES)
            elif name == "compose":
                line.append(_composed(child.get("composeText", "")))
            elif name == "equation":
                line.extend(f" {script.text or ''} " for script in child.iterfind("{*}script"))
            else:
                inner = list(_object_pieces(child, name, styles, depth + 1)) if depth < MAX_DEPTH else []
                if inner:
                    yield from _flush(line, style, level)
                    yield from inner
    yield from _flush(line, style, level)


def _own_texts(paragraph: Element) -> Iterator[str]:
    return (text for part in paragraph.iterfind("{*}run/{*}t") for text in part.itertext())


def _flush(line: list[str], style: str, level: int) -> Iterator[Piece]:
    text = "\n".join(filter(None, map(clean, "".join(line).split("\n"))))
    line.clear()
    if text:
        yield Piece(text, "heading" if level else "paragraph", level, style)


def _text(element: Element, line: list[str], deleting: bool) -> bool:
    """Adds the text of an `hp:t` to `line`; returns whether a tracked deletion is open at its end."""
    if element.text and not deleting:
        line.append(element.text.replace("\n", " "))
    for mark in element:
        name = local_name(mark)
        if name == "deleteBegin":
            deleting = True
        elif name == "deleteEnd":
            deleting = False
        elif not deleting:
            line.append(SPACES.get(name, ""))
        if mark.tail and not deleting:
            line.append(mark.tail.replace("\n", " "))
    return deleting


def _composed(text: str) -> str:
    """Characters drawn over each other: `(51)` for a circled number of several glyphs, else the characters."""
    digits = "".join(_TENS.get(c) or _UNITS.get(c) or c for c in text)
    return f"({digits})" if len(digits) > 1 and digits.isascii() and digits.isdigit() else digits


def _note(note: Element, styles: Styles, depth: int) -> str:
    if depth >= MAX_DEPTH:
        return ""
    text = " ".join(piece.text for piece in _sub_lists(note, styles, depth + 1)).replace("\n", " ")
    return f" ({text})" if text else ""


def _object_pieces(element: Element, name: str, styles: Styles, depth: int) -> Iterator[Piece]:
    """A table, or the text and caption of a drawing object."""
    for caption in element.iterfind("{*}caption"):
        yield from _sub_lists(caption, styles, depth)
    if name == "tbl":
        spans = RowSpans()
        rows = "\n".join(filter(None, (spans.row(_cells(row, styles, depth)) for row in element.iterfind("{*}tr"))))
        if rows:
            yield Piece(rows, "table")
        return
    for child in element:
        inner = local_name(child)
        if inner == "drawText":
            yield from _sub_lists(child, styles, depth)
        elif name == "container" and inner not in ("", "caption") and depth < MAX_DEPTH:
            yield from _object_pieces(child, inner, styles, depth + 1)


def _cells(row: Element, styles: Styles, depth: int) -> Iterator[tuple[str, int, int]]:
    """Text, columns and rows of each cell; a cell that spans several columns or rows occurs once in the file."""
    for cell in row.iterfind("{*}tc"):
        text = " ".join(piece.text for piece in _sub_lists(cell, styles, depth))
        span = cell.find("{*}cellSpan")
        columns, rows = ("1", "1") if span is None else (span.get("colSpan", "1"), span.get("rowSpan", "1"))
        yield text.replace("\n", " ").replace(" | ", " "), whole_number(columns, 1), whole_number(rows, 1)


def _sub_lists(element: Element, styles: Styles, depth: int) -> Iterator[Piece]:
    for sub_list in element.iterfind("{*}subList"):
        for paragraph in sub_list.iterfind("{*}p"):
            yield from paragraph_pieces(paragraph, styles, depth)
