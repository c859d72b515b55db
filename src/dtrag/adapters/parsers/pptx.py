"""PPTX with lxml: each slide a section with its title, texts, tables and notes, in the order of the slides."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dtrag.adapters.parsers.archive import SafeArchive, open_archive, parse_xml
from dtrag.adapters.parsers.blocks import DEEPEST_INDENT, RowSpans, TextBuilder, title_of
from dtrag.adapters.parsers.formats import format_of
from dtrag.core.documents import ParsedDocument
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed

Element = Any  # lxml elements: their stubs do not know that their attributes are strings
MAX_PART_BYTES = 64 << 20
PRESENTATION = "ppt/presentation.xml"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_TITLES = ("title", "ctrTitle")
_SHOWN_NOT = ("sldNum", "dt", "ftr", "hdr", "sldImg")
"""Placeholders of page numbers, dates, running texts and, in notes, of the picture of the slide."""


def parse(path: Path, name: str) -> Iterator[ParsedDocument]:
    """One document with the metadata `slides`, and `hidden_slides` if there are any. Raises `ParseFailed`."""
    chosen = format_of(name)
    with open_archive(path) as archive:
        if PRESENTATION not in archive:
            raise ParseFailed(stated("file_not_label", "it is something else, not a {label} file", label=chosen.label))
        targets = _relations(archive, PRESENTATION)
        root = _xml(archive, PRESENTATION)
        slides = [targets.get(slide.get(RELATION, ""), ("", ""))[1] for slide in root.iterfind("{*}sldIdLst/{*}sldId")]
        slides = list(dict.fromkeys(slide for slide in slides if slide in archive))
        builder = TextBuilder()
        hidden = sum(_slide(builder, archive, slide, number) for number, slide in enumerate(slides, 1))
        core = _xml(archive, "docProps/core.xml") if "docProps/core.xml" in archive else None
    title = next((element.text for element in core.iter("{*}title")), None) if core is not None else None
    yield builder.document(
        title=title_of(title, name),
        content_type=chosen.content_type,
        metadata={"slides": len(slides), **({"hidden_slides": hidden} if hidden else {})},
    )


def _xml(archive: SafeArchive, name: str) -> Element:
    return parse_xml(archive.read(name, MAX_PART_BYTES))


def _relations(archive: SafeArchive, part: str) -> dict[str, tuple[str, str]]:
    """Kind and target of the relations of a part to other parts, by id."""
    folder, _, file = part.rpartition("/")
    name = f"{folder}/_rels/{file}.rels"
    if name not in archive:
        return {}
    return {
        relation.get("Id", ""): (
            relation.get("Type", "").rpartition("/")[2],
            posixpath.normpath(posixpath.join(folder, relation.get("Target", ""))).lstrip("/"),
        )
        for relation in _xml(archive, name).iter("{*}Relationship")
        if relation.get("TargetMode") != "External"
    }


def _slide(builder: TextBuilder, archive: SafeArchive, part: str, number: int) -> bool:
    """Adds a slide; returns whether it is hidden."""
    root = _xml(archive, part)
    hidden = root.get("show") in ("0", "false")
    shapes = list(_shapes(root))
    title = next((text for shape in shapes if _kind(shape) in _TITLES and (text := _joined(shape))), "")
    start = f"Slide {number}{' (hidden)' if hidden else ''}"
    builder.add(f"{start}: {title}" if title else start, "heading", 1)
    _add(builder, [shape for shape in shapes if _kind(shape) not in _TITLES])
    for kind, target in _relations(archive, part).values():
        if kind == "notesSlide" and target in archive:
            notes = [shape for shape in _shapes(_xml(archive, target)) if _kind(shape) == "body" and _joined(shape)]
            if notes:
                builder.add("Notes", "heading", 2)
                _add(builder, notes)
    return hidden


def _shapes(root: Element) -> Iterator[Element]:
    """Shapes and frames of tables, also those in groups; without the second form of those for older programs."""
    for shape in root.iter("{*}sp", "{*}graphicFrame"):
        if next(shape.iterancestors("{*}Fallback"), None) is None:
            yield shape


def _kind(shape: Element) -> str:
    """The kind of placeholder; "" for a shape of its own."""
    placeholder = shape.find("{*}nvSpPr/{*}nvPr/{*}ph")
    return "" if placeholder is None else str(placeholder.get("type", "body"))


def _add(builder: TextBuilder, shapes: list[Element]) -> None:
    for shape in shapes:
        if _kind(shape) in _SHOWN_NOT:
            continue
        for table in shape.iterfind("{*}graphic/{*}graphicData/{*}tbl"):
            spans = RowSpans()
            builder.add("\n".join(filter(None, (spans.row(_cells(row)) for row in table.iterfind("{*}tr")))), "table")
        lines = [_line(paragraph) for paragraph in shape.iterfind("{*}txBody/{*}p")]
        lines = [line for line in lines if line.strip()]
        builder.add("\n".join(lines), "list" if any(line.startswith((" ", "- ")) for line in lines) else "paragraph")


def _line(paragraph: Element) -> str:
    """A paragraph, indented by its level."""
    properties = paragraph.find("{*}pPr")
    level = properties.get("lvl", "0") if properties is not None else "0"
    depth = min(DEEPEST_INDENT, int(level)) if level.isascii() and level.isdecimal() else 0
    return "  " * depth + ("- " if depth else "") + _text(paragraph)


def _text(paragraph: Element) -> str:
    pieces = (
        "\n" if element.tag.endswith("}br") else " " if element.tag.endswith("}tab") else element.text or ""
        for element in paragraph.iter("{*}t", "{*}br", "{*}tab")
    )
    return "".join(pieces)


def _joined(shape: Element) -> str:
    return " ".join(" ".join(_text(paragraph) for paragraph in shape.iterfind("{*}txBody/{*}p")).split())


def _cells(row: Element) -> Iterator[tuple[str, int, int]]:
    """Text, columns and rows of each cell; what a merged cell covers is in the file, marked."""
    for cell in row.iterfind("{*}tc"):
        if cell.get("hMerge") in ("1", "true") or cell.get("vMerge") in ("1", "true"):
            continue
        columns, rows = (cell.get(name, "1") for name in ("gridSpan", "rowSpan"))
        yield _joined(cell).replace(" | ", " "), _count(columns), _count(rows)


def _count(number: str) -> int:
    return int(number) if number.isascii() and number.isdecimal() and len(number) < 6 else 1
