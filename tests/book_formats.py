"""Writes the lines of a regulation book as Markdown, DOCX and PDF, as an office would: for tests of the structure.

The PDF is set like a printed book: lines broken at the margin (inside words, as Hangul does, or between them), a
running header, page numbers, paragraphs that go on behind a page break, and no marks of structure but font sizes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Literal

import docx

from dtrag.core.documents import ChunkedDocument
from dtrag.regulations.korean.heads import division_head
from tests.office_files import Part as OfficePart

Id = tuple[str, str, str, int]
"""A provision: code of the regulation, kind, label, occurrence."""
Kind = Literal["contents", "name", "division", "line", "table"]
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#&])")
_LIST_MARK = re.compile(r"^(\s*)(\d{1,9})([.)])(?=\s|$)|^(\s*)([-+=~])")


@dataclass(frozen=True, slots=True)
class Part:
    """One line of the book, or a table: `rows` of a table or of the contents (name, code)."""

    kind: Kind
    text: str = ""
    rows: tuple[tuple[str, ...], ...] = ()


def book(regulations: Sequence[ChunkedDocument]) -> Iterator[Part]:
    """The lines of the book, after a table of contents."""
    yield Part("contents", rows=tuple((one.document.title, str(one.document.metadata["code"])) for one in regulations))
    for regulation in regulations:
        document = regulation.document
        yield Part("name", document.title)
        first = True
        for block in document.blocks:
            lines = [line for line in document.text[block.start : block.end].split("\n") if line.strip()]
            if block.kind == "table":
                yield Part("table", rows=tuple(tuple(cell.strip() for cell in line.split("|")) for line in lines))
                continue
            for line in lines:
                if not (first and "".join(line.split()) == "".join(document.title.split())):
                    yield Part("division" if division_head(line.strip()) else "line", line.strip())
                first = False


def provisions(regulations: Iterable[ChunkedDocument]) -> dict[Id, tuple[str, str]]:
    """Title and text of each provision, without white space and the bars between the cells of tables."""
    texts: dict[Id, tuple[str, str]] = {}
    for regulation in regulations:
        for chunk in regulation.chunks:
            metadata = chunk.metadata
            occurrence = int(str(metadata.get("occurrence", 1)))
            key = (regulation.document.part, str(metadata["kind"]), str(metadata["article"]), occurrence)
            title, text = texts.get(key, ("".join(str(metadata["article_title"]).split()), ""))
            texts[key] = (title, text + re.sub(r"[\s|]+", "", chunk.text))
    return texts


def as_markdown(book: Sequence[Part]) -> str:
    """Headings for names and divisions; everything else is a paragraph."""
    blocks = []
    for part in book:
        if part.kind in ("contents", "table"):
            width = max(map(len, part.rows))
            rows = [[_escaped(cell) for cell in (*row, *[""] * (width - len(row)))] for row in part.rows]
            rows.insert(1, ["---"] * width)
            blocks.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
        else:
            marks = {"name": "# ", "division": "## "}.get(part.kind, "")
            blocks.append(marks + _LIST_MARK.sub(_escaped_mark, _escaped(part.text)))
    return "\n\n".join(blocks) + "\n"


def _escaped(text: str) -> str:
    return " ".join(_SPECIAL.sub(r"\\\1", text).split())


def _escaped_mark(match: re.Match[str]) -> str:
    return f"{match[2]}\\{match[3]}" if match[2] else f"\\{match[5]}"


def write_docx(book: Sequence[Part], path: Path) -> None:
    """Heading styles for names and divisions, paragraphs, tables."""
    document = docx.Document()
    for part in book:
        if part.kind in ("contents", "table"):
            width = max(map(len, part.rows))
            table = document.add_table(0, width)
            for row in part.rows:
                for cell, text in zip(table.add_row().cells, (*row, *[""] * (width - len(row))), strict=True):
                    cell.text = text
        elif part.kind == "line":
            document.add_paragraph(part.text)
        else:
            document.add_heading(part.text, 1 if part.kind == "name" else 2)
    document.save(str(path))


def office_parts(book: Iterable[Part]) -> Iterator[OfficePart]:
    """The book as the parts that the writers of ODT, HWPML and HWP take."""
    for part in book:
        if part.kind in ("contents", "table"):
            yield [
                (row, column, 1, 1, cell) for row, cells in enumerate(part.rows) for column, cell in enumerate(cells)
            ]
        else:
            yield part.text if part.kind == "line" else (part.text, 1 if part.kind == "name" else 2)


PAGE_WIDTH, PAGE_HEIGHT, MARGIN = 595.0, 842.0, 72.0
TOP, BOTTOM = PAGE_HEIGHT - 90.0, 80.0
BODY, LEADING = 10.0, 1.6
SIZES = {"name": 16.0, "division": 12.0}
COLUMNS = 12


@dataclass(slots=True)
class _Pages:
    header: str
    pages: list[list[str]] = field(default_factory=list)
    y: float = 0.0
    high_bytes: set[int] = field(default_factory=set)

    def new(self) -> None:
        number = len(self.pages) + 1
        self.pages.append([])
        self.place(self.header, 8.0, MARGIN, PAGE_HEIGHT - 50.0)
        self.place(f"- {number} -", 8.0, PAGE_WIDTH / 2 - 10.0, 40.0)
        self.y = TOP

    def down(self, size: float) -> float:
        """The height of the next line, on a new page if this one is full."""
        if not self.pages or self.y - size * LEADING < BOTTOM:
            self.new()
        self.y -= size * LEADING
        return self.y

    def place(self, text: str, size: float, x: float, y: float) -> None:
        encoded = text.encode("utf-16-be")
        self.high_bytes.update(encoded[::2])
        codes = encoded.hex().upper()
        self.pages[-1].append(f"BT /F1 {size:g} Tf 1 0 0 1 {x:g} {y:.2f} Tm <{codes}> Tj ET")


def write_pdf(book: Iterable[Part], path: Path, *, header: str, between_words: bool) -> None:
    """A PDF whose lines are broken between words, or after any character."""
    pages = _Pages(header)
    width = PAGE_WIDTH - 2 * MARGIN
    for part in book:
        if part.kind == "name":
            pages.new()
        if part.kind in ("contents", "table"):
            for row in part.rows:
                y = pages.down(BODY)
                step = width - 60.0 if part.kind == "contents" else width / max(1, len(row))
                for column, cell in enumerate(row):
                    pages.place(cell, BODY, MARGIN + column * step, y)
            continue
        size = SIZES.get(part.kind, BODY)
        for line in broken(part.text, size, width, between_words=between_words):
            pages.place(line, size, MARGIN, pages.down(size))
    path.write_bytes(_file(["\n".join(page) for page in pages.pages], pages.high_bytes))


def broken(text: str, size: float, width: float, *, between_words: bool) -> Iterator[str]:
    """The lines of a paragraph of a given width."""
    room = width / size
    while text:
        used, end = 0.0, 0
        while end < len(text) and used + _advance(text[end]) <= room:
            used += _advance(text[end])
            end += 1
        if between_words and end < len(text) and (blank := text.rfind(" ", 0, end + 1)) > 0:
            end = blank
        yield text[:end].rstrip()
        text = text[end:].lstrip()


def _advance(character: str) -> float:
    return 0.5 if ord(character) < 0x300 else 1.0


def _file(streams: list[str], high_bytes: set[int]) -> bytes:
    """One font without a file: codes are UTF-16, mapped by /ToUnicode."""
    ranges = [f"<{high:02X}00> <{high:02X}FF> <{high:02X}00>" for high in sorted(high_bytes)]
    blocks = "\n".join(
        f"{len(part)} beginbfrange\n" + "\n".join(part) + "\nendbfrange"
        for part in (ranges[start : start + 64] for start in range(0, len(ranges), 64))
    )
    to_unicode = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapType 2 def\n"
        f"1 begincodespacerange <0000> <FFFF> endcodespacerange\n{blocks}\nendcmap end end"
    )
    numbers = count(7)
    pages = [(next(numbers), next(numbers)) for _ in streams]
    kids = " ".join(f"{page} 0 R" for page, _ in pages)
    bodies = {
        1: "<< /Type /Catalog /Pages 2 0 R >>",
        2: f"<< /Type /Pages /Count {len(pages)} /Kids [{kids}] /MediaBox [0 0 {PAGE_WIDTH:g} {PAGE_HEIGHT:g}] "
        "/Resources << /Font << /F1 3 0 R >> >> >>",
        3: "<< /Type /Font /Subtype /Type0 /BaseFont /Batang /Encoding /Identity-H /DescendantFonts [4 0 R] "
        "/ToUnicode 6 0 R >>",
        4: "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Batang /CIDSystemInfo << /Registry (Adobe) "
        "/Ordering (Identity) /Supplement 0 >> /FontDescriptor 5 0 R /DW 1000 /W [0 767 500] >>",
        5: "<< /Type /FontDescriptor /FontName /Batang /Flags 4 /FontBBox [0 0 1000 1000] /ItalicAngle 0 /Ascent 880 "
        "/Descent -120 /CapHeight 700 /StemV 80 >>",
        6: f"<< /Length {len(to_unicode) + 1} >>\nstream\n{to_unicode}\nendstream",
    }
    for (page, content), stream in zip(pages, streams, strict=True):
        bodies[page] = f"<< /Type /Page /Parent 2 0 R /Contents {content} 0 R >>"
        bodies[content] = f"<< /Length {len(stream) + 1} >>\nstream\n{stream}\nendstream"
    text, offsets = "%PDF-1.4\n", []
    parts = [text]
    position = len(text)
    for number in sorted(bodies):
        body = f"{number} 0 obj\n{bodies[number]}\nendobj\n"
        offsets.append(position)
        position += len(body)
        parts.append(body)
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    parts.append(
        f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n{table}trailer\n<< /Size {len(bodies) + 1} /Root 1 0 R >>\n"
        f"startxref\n{position}\n%%EOF\n"
    )
    return "".join(parts).encode("ascii")
