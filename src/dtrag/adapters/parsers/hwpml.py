"""HWPML (`.hml`: a Hangul document as one XML file): its elements are renamed to those of HWPX and read as these.

Both write the same model: sections of paragraphs with runs of texts, tables and boxes in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dtrag.adapters.parsers.archive import parse_xml
from dtrag.adapters.parsers.blocks import TextBuilder, title_of
from dtrag.adapters.parsers.hwpx import Piece, Styles, local_name, paragraph_pieces, read_styles, usable_title
from dtrag.core.documents import ParsedDocument
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

_CHARACTER = re.compile(rb'\s*<!ENTITY\s+(\w+)\s+"(&#\d{1,7};)">')
_CHARACTERS = re.compile(rb"<!DOCTYPE HWPML \[(?:%s)+\s*\]>" % _CHARACTER.pattern)
_HEAD_BYTES = 1024
"""Within these, the national law information center (law.go.kr) declares `&nbsp;`."""
Element = Any  # lxml elements: their stubs do not know that the tree may be changed
CONTENT_TYPE = "application/vnd.hancom.hml"
_NAMES = {
    "P": "p",
    "TEXT": "run",
    "CHAR": "t",
    "TABLE": "tbl",
    "ROW": "tr",
    "CELL": "tc",
    "PARALIST": "subList",
    "CAPTION": "caption",
    "DRAWTEXT": "drawText",
    "CONTAINER": "container",
    "EQUATION": "equation",
    "SCRIPT": "script",
    "FOOTNOTE": "footNote",
    "ENDNOTE": "endNote",
    "LINEBREAK": "lineBreak",
    "TAB": "tab",
    "NBSPACE": "nbSpace",
    "FWSPACE": "fwSpace",
    "HYPHEN": "hyphen",
    "STYLE": "style",
    "PARASHAPE": "paraPr",
    "NUMBERING": "numbering",
    "PARAHEAD": "paraHead",
    "BULLET": "bullet",
    "SECDEF": "secPr",
}
_ATTRIBUTES = {
    "P": {"styleIDRef": "Style", "paraPrIDRef": "ParaShape"},
    "STYLE": {"id": "Id", "name": "Name"},
    "PARASHAPE": {"id": "Id"},
    "NUMBERING": {"id": "Id"},
    "PARAHEAD": {"level": "Level", "start": "Start"},
    "BULLET": {"id": "Id", "char": "Char"},
    "SECDEF": {"outlineShapeIDRef": "OutlineShape"},
}
"""By the names of HWPX, by element."""
_HEADINGS = {"Outline": "OUTLINE", "Number": "NUMBER", "Bullet": "BULLET"}
_LIFTED = frozenset({"SHAPEOBJECT", "DRAWINGOBJECT"})
"""Elements around captions and texts of boxes, which HWPX has not."""


def parse(path: Path, name: str) -> Iterator[ParsedDocument]:
    """One document. Raises `ParseFailed`."""
    root = parse_xml(with_characters(path.read_bytes()), huge_tree=True)  # pictures are text nodes
    if not is_hwpml(root):
        raise ParseFailed(stated("file_not_label", "it is something else, not a {label} file", label="HWPML"))
    yield document_of(root, name)


def with_characters(data: bytes) -> bytes:
    """The XML with numbers for the names of single characters, without the declaration of these names, if it has one.

    Any other document type declaration stays, and is refused by who parses it.
    """
    declared = _CHARACTERS.search(data, 0, _HEAD_BYTES)
    if declared is None:
        return data
    data = data[: declared.start()] + data[declared.end() :]
    for name, number in _CHARACTER.findall(declared[0]):
        data = data.replace(b"&%s;" % name, number)
    return data


def is_hwpml(root: Element) -> bool:
    """Whether the root of an XML file is that of a Hangul document."""
    return local_name(root) == "HWPML"


def document_of(root: Element, name: str) -> ParsedDocument:
    """The document of the root, which is changed. Raises `ParseFailed` without text."""
    _rename(root)
    styles = read_styles(root)
    builder = TextBuilder()
    for piece in _pieces(root, styles):
        builder.add(piece.text, piece.kind, piece.level if piece.kind == "heading" else 0, piece.style)
    title = next((usable_title(element.text) for element in root.iter("{*}TITLE")), None)
    return builder.document(title=title_of(title, name), content_type=CONTENT_TYPE)


def _pieces(root: Element, styles: Styles) -> Iterator[Piece]:
    for paragraph in root.iterfind("{*}BODY/{*}SECTION/{*}p"):
        yield from paragraph_pieces(paragraph, styles)


def _rename(root: Element) -> None:
    for element in list(root.iter()):
        tag = local_name(element)
        element.tag = _NAMES.get(tag, element.tag)
        parent = element.getparent()
        for attribute, name in _ATTRIBUTES.get(tag, {}).items():
            element.set(attribute, element.get(name, ""))
        if tag == "PARAHEAD":  # HangulSyllable
            kind = "".join(f"_{letter}" if letter.isupper() else letter for letter in element.get("NumFormat", ""))
            element.set("numFormat", kind.lstrip("_").upper())
        elif tag == "PARASHAPE" and (heading := _HEADINGS.get(element.get("HeadingType", ""))):
            of = {"type": heading, "idRef": element.get("Heading", ""), "level": element.get("Level", "0")}
            element.append(element.makeelement("heading", of))
        elif tag == "CELL":
            span = {"colSpan": element.get("ColSpan", "1"), "rowSpan": element.get("RowSpan", "1")}
            element.append(element.makeelement("cellSpan", span))
        elif tag in ("FOOTNOTE", "ENDNOTE"):
            control = element.makeelement("ctrl")
            parent.replace(element, control)
            control.append(element)
        elif tag in ("CAPTION", "DRAWTEXT") and local_name(parent) in _LIFTED:
            owner = parent
            while local_name(owner) in _LIFTED:
                owner = owner.getparent()
            owner.append(element)
