"""PDF with pypdf: the text of each page, its lines joined into paragraphs with their page number.

The limits of pypdf on decompressed streams apply. PDF text has no marked headings: a short line in a font size above
that of the body text counts as one. Every block has the style `page:N`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from pypdf import PageObject, PasswordType, PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError, LimitReachedError, PdfReadError

from dtrag.adapters.parsers.blocks import TextBuilder, title_of
from dtrag.core.documents import ParsedDocument
from dtrag.errors import ParseFailed

MAX_PAGES = 20_000
NO_TEXT = "no text in it; it may be scanned: run OCR (text recognition) on it first"
ENCRYPTED = "it is encrypted; save it without a password"
HEADING_SCALE = 1.15
LONGEST_HEADING = 200
FULL_LINE = 0.75
"""A line that ends a sentence and is shorter than this share of the page's longest lines ends a paragraph."""

Line = tuple[str, float]
"""Text and font size in points."""

_ITEM = re.compile(r"(?:[-–•·▪◦○●■□※*]|\(?\d{1,3}[.)]|\(?[a-zA-Z가-하][.)]|[①-⑳]|제\s?\d+\s?[장절조관편])\s?(?=\S)")
_SENTENCE_END = re.compile(r"[.!?:;。…][\"'”’)\]]*$")
_HYPHENATED = re.compile(r"[A-Za-zÀ-ɏ]{2}-$")
_PRODUCER_PREFIX = re.compile(r"^Microsoft (?:Word|PowerPoint|Excel) - ")


def parse(path: Path, name: str) -> Iterator[ParsedDocument]:
    """One document with the metadata `pages`, and `unreadable_pages` if there are any. Raises `ParseFailed`."""
    builder = TextBuilder()
    pages: list[tuple[int, list[Line]]] = []
    unreadable = 0
    with path.open("rb") as file:
        reader = _open(PdfReader(file, strict=False))
        count = len(reader.pages)
        if count > MAX_PAGES:
            raise ParseFailed(f"it has {count:,} pages; more than {MAX_PAGES:,} are refused, split it")
        for number in range(1, count + 1):
            try:
                pages.append((number, _lines(reader.pages[number - 1])))
            except (PdfReadError, LimitReachedError):
                unreadable += 1
        title = reader.metadata.title if reader.metadata else None
    levels = _heading_levels([line for _, lines in pages for line in lines])
    for number, lines in pages:
        for text, level in _blocks(lines, levels):
            builder.add(text, "heading" if level else "paragraph", level, style=f"page:{number}")
    if unreadable and unreadable == count:
        raise ParseFailed("the PDF is damaged: none of its pages can be read")
    yield builder.document(
        title=title_of(_PRODUCER_PREFIX.sub("", title) if isinstance(title, str) else None, name),
        content_type="application/pdf",
        metadata={"pages": count, **({"unreadable_pages": unreadable} if unreadable else {})},
        no_text=NO_TEXT,
    )


def _open(reader: PdfReader) -> PdfReader:
    """The reader, decrypted with the empty password if it is encrypted."""
    if reader.is_encrypted:
        try:
            opened = reader.decrypt("") != PasswordType.NOT_DECRYPTED
        except (DependencyError, FileNotDecryptedError, NotImplementedError) as error:
            raise ParseFailed(ENCRYPTED) from error
        if not opened:
            raise ParseFailed(ENCRYPTED)
    return reader


def _lines(page: PageObject) -> list[Line]:
    """The lines of a page in reading order, each with the font size of most of its characters."""
    pieces: list[Line] = []

    def visit(text: str, user: list[float], matrix: list[float], _font: object, size: float) -> None:
        scale = math.hypot(matrix[2], matrix[3]) * math.hypot(user[2], user[3])
        pieces.append((text, round(size * scale, 1)))

    page.extract_text(visitor_text=visit)
    lines: list[Line] = []
    line, sizes = "", Counter[float]()
    for text, size in pieces:
        for position, part in enumerate(text.split("\n")):
            if position:
                lines.append((line, _most(sizes)))
                line, sizes = "", Counter()
            line += part
            sizes[size] += len(part.strip())
    return [*lines, (line, _most(sizes))]


def _most(sizes: Counter[float]) -> float:
    return max(sizes, key=lambda size: (sizes[size], size), default=0.0)


def _heading_levels(lines: Sequence[Line]) -> dict[float, int]:
    """Font sizes of headings -> level: those clearly above the size of most characters, the largest first."""
    characters = Counter[float]()
    for text, size in lines:
        characters[size] += len(text.strip())
    body = _most(characters)
    larger = sorted({size for text, size in lines if text.strip() and size >= HEADING_SCALE * body}, reverse=True)
    return {size: min(level, 6) for level, size in enumerate(larger, start=1)} if body else {}


def _blocks(lines: Sequence[Line], levels: dict[float, int]) -> Iterator[tuple[str, int]]:
    """Headings (with their level) and paragraphs (with 0) of a page."""
    for level, run in groupby(lines, key=lambda line: levels.get(line[1], 0) if line[0].strip() else -1):
        texts = [text for text, _ in run]
        heading = " ".join(" ".join(texts).split())
        if level > 0 and len(heading) <= LONGEST_HEADING:
            yield heading, level
        elif level >= 0:
            yield from ((paragraph, 0) for paragraph in reflow(texts))


def reflow(lines: Sequence[str]) -> Iterator[str]:
    """Paragraphs from lines, joined with a space, or without the hyphen of a divided word."""
    lengths = sorted(len(line.strip()) for line in lines if line.strip())
    if not lengths:
        return
    full = FULL_LINE * lengths[int(0.9 * (len(lengths) - 1))]
    paragraph = ""
    for raw in lines:
        line = " ".join(raw.split())
        if not line or _ITEM.match(line):
            if paragraph:
                yield paragraph
            paragraph = line
        else:
            paragraph = join_lines(paragraph, line)
        if paragraph and len(line) < full and _SENTENCE_END.search(line):
            yield paragraph
            paragraph = ""
    if paragraph:
        yield paragraph


def join_lines(before: str, after: str) -> str:
    """Two lines of a paragraph as one: `infor-` + `mation` gives `information`, everything else gets a space."""
    if not before:
        return after
    if _HYPHENATED.search(before) and after[:1].islower():
        return before[:-1] + after
    return f"{before} {after}"
