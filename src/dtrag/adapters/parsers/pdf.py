"""PDF with pypdf: the text of each page, its lines joined into paragraphs with their page number, and its tables.

The limits of pypdf on decompressed streams apply. PDF text has no marked headings: a short line in a font size above
that of the body text counts as one. Running headers and page numbers are left out, and a paragraph that continues after
a page break is one block. `page_starts` of the document say where each page begins.
Pages that are pictures are read by OCR.
"""

from __future__ import annotations

import itertools
import logging
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path

from pypdf import PageObject, PasswordType, PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError, LimitReachedError, PdfReadError

from dtrag.adapters.parsers import ocr, pdf_pictures
from dtrag.adapters.parsers.blocks import LONGEST_HEADING, TextBuilder, title_of
from dtrag.adapters.parsers.page_margins import PageLine, PageText, without_margins
from dtrag.adapters.parsers.pdf_tables import PageTable, tables_of
from dtrag.core.documents import BlockKind, ParsedDocument, Scalar
from dtrag.core.page_starts import PageStart, page_ranges
from dtrag.core.statements import Statement, stated, statement_of
from dtrag.core.text.line_kinds import is_hangul, unit_span, width
from dtrag.core.text.line_wrapping import breaks_words, ends_word
from dtrag.core.text.patterns import explained
from dtrag.errors import ParseFailed

MAX_PAGES = 20_000
NO_TEXT = stated("pdf_no_text", "no text in it, neither letters nor pictures in which OCR (text recognition) found any")
ENCRYPTED = stated("file_encrypted", "it is encrypted; save it without a password")
HEADING_SCALE = 1.15
FULL_LINE = 0.75
"""A line that ends a sentence and is shorter than this share of the page's longest lines ends a paragraph."""

KEPT_BLANKS = 0.1
"""Share of the lines of Korean that end in a blank, from which on the file has the blanks at the ends of lines."""
TABLE = -2
"""Level of a table among headings (1 to 6) and paragraphs (0)."""

_LOG = logging.getLogger(__name__)
_MARK_ALONE = re.compile(r"[-–•·▪◦○●■□※*]|\(?\d{1,3}[.)]|\(?[a-zA-Z가-하][.)]|[①-⑳]")
"""The mark of an item whose text is placed by itself."""
_ITEM = re.compile(rf"(?:{_MARK_ALONE.pattern}|제\s?\d+\s?[장절조관편])\s?(?=\S)")
_CONTENTS_ROW = explained(
    r"\S.{0,80}?(?:\s|[.·…]{3,})\s*\d{1,3}(?:-\d{1,4}){1,3}|\S.{0,80}?(?:[.·…]\s?){4,}\s*\d{1,4}",
    finds=("교원인사규정 2-1-1", "총칙 ..... 3"),
    refuses="총칙 ... 3",
)
"""A row of a table of contents: a name, and its code or page."""
_OPENING, _CLOSING = r"[<〈\[(（【「〔［]", r"[>〉\])）】」〕］]"
_APPENDIX_MARK = (
    rf"(?:{_OPENING}\s?(?:별\s?[표지첨]|서\s?식|양\s?식)[\s\d제호의서식양\-]{{0,20}}{_CLOSING}"
    r"|별\s?[표지]\s?제?\s?\d{1,3}\s?호?(?:의\s?\d+)?\s?(?:서\s?식)?)"
)
_APPENDIX = re.compile(rf"{_APPENDIX_MARK}(?=$|\s?{_OPENING}|\s[^의에과와을를은는\s])")
_APPENDIX_ALONE = re.compile(rf"{_APPENDIX_MARK}(?:\s?[<〈(\[](?:개정|신설|삭제|변경)[^<>〈〉()\[\]]*[>〉)\]])*")
"""The mark of an appendix without its title, which is below it."""
_OPEN_MARK = re.compile(r"[<〈](?:개정|신설|삭제)[^<>〈〉()]{0,400}$")
_MARK_CONTINUES = ("개정", "신설", "삭제", ">", "〉")
"""An amendment mark that is broken at the margin, and the beginning of the next line."""
TAIL = 500
"""Last characters of a paragraph that decide whether the next line continues it."""
LONGEST_APPENDIX_LINE = 70
"""Characters of the mark of an appendix with its title, or of the title below it."""
_OWN_LINE = re.compile(
    rf"{_OPENING}?\s?부\s?칙\s?{_CLOSING}?(?:\s?{_OPENING}.{{0,80}})?"
    r"|(?:제\s?정|개\s?정|전부\s?개정)\s?[\d.,\s년월일]{6,80}"
)
"""A line of a Korean regulation that is a paragraph of its own: 부칙 <2001. 3. 1.>, 제정 2001. 3. 1."""
_SENTENCE_END = re.compile(r"[.!?:;。…][\"'”’)\]]*$")
_HYPHENATED = re.compile(r"[A-Za-zÀ-ɏ]{2}-$")
_PRODUCER_PREFIX = re.compile(r"^Microsoft (?:Word|PowerPoint|Excel) - ")


def parse(path: Path, name: str) -> Iterator[ParsedDocument]:
    """One document with the metadata `pages`, and `unreadable_pages`, `ocr_pages` and `unread_pages` if there are any.

    Raises `ParseFailed`, after the document if pages could only be read by OCR, which is not installed.
    """
    pages: dict[int, PageText] = {}
    pictures: list[int] = []
    with path.open("rb") as file:
        reader = _open(PdfReader(file, strict=False))
        count = len(reader.pages)
        if count > MAX_PAGES:
            raise ParseFailed(
                stated(
                    "pdf_pages",
                    "it has {pages} pages; more than {limit} are refused, split it",
                    pages=f"{count:,}",
                    limit=f"{MAX_PAGES:,}",
                )
            )
        for number in range(1, count + 1):
            try:
                page = reader.pages[number - 1]
                lines = _lines(page)
                if pdf_pictures.needs_ocr(page, lines):
                    pictures.append(number)
                pages[number] = PageText(lines, _tables(page))
            except (PdfReadError, LimitReachedError):
                continue
        title = reader.metadata.title if reader.metadata else None
        unread = [] if ocr.is_usable() else pictures
        if pictures and not unread:
            pages |= pdf_pictures.recognised(file, pictures)
    if count and not pages:
        raise ParseFailed(stated("pdf_no_page", "the PDF is damaged: none of its pages can be read"))
    yield paged_document(
        dict(sorted(pages.items())),
        title=title_of(_PRODUCER_PREFIX.sub("", title) if isinstance(title, str) else None, name),
        content_type="application/pdf",
        metadata={
            "pages": count,
            **({"unreadable_pages": count - len(pages)} if len(pages) < count else {}),
            **({"unread_pages": page_ranges(unread)} if unread else {}),
        },
        no_text=statement_of(ocr.not_read(unread)) if unread else NO_TEXT,
    )
    if unread and not ocr.is_off():
        raise ocr.not_read(unread)


def paged_document(
    pages: Mapping[int, PageText],
    *,
    title: str,
    content_type: str,
    metadata: Mapping[str, Scalar],
    no_text: Statement,
) -> ParsedDocument:
    """The document of the pages by number, without running headers. Raises `ParseFailed(no_text)`."""
    builder = TextBuilder()
    cut = without_margins([page.lines for page in pages.values()])
    lines_of = {
        number: with_tables(lines, page.tables) for (number, page), lines in zip(pages.items(), cut, strict=True)
    }
    levels = _heading_levels([line for lines in lines_of.values() for line in lines])
    keeps_blanks = _keeps_blanks([line.text for lines in lines_of.values() for line in lines])
    blocks = ((_blocks(lines, levels, keeps_blanks), number) for number, lines in lines_of.items())
    for text, level, starts in _joined(blocks):
        kind: BlockKind = "heading" if level > 0 else "table" if level == TABLE else "paragraph"
        builder.add(text, kind, max(0, level), page_starts=starts)
    recognised = {number: page.confidences for number, page in pages.items() if page.confidences}
    if recognised:
        metadata = {**metadata, "ocr_pages": page_ranges(sorted(recognised)), "ocr_languages": ocr.languages()}
    document = builder.document(title=title, content_type=content_type, metadata=metadata, no_text=no_text)
    if not recognised:
        return document
    return replace(document, ocr_words=ocr.ocr_words(document.text, document.page_starts, recognised))


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


def _lines(page: PageObject) -> list[PageLine]:
    """The lines of a page in reading order, each with the font size of most of its characters."""
    pieces: list[PageLine] = []

    def visit(text: str, user: list[float], matrix: list[float], _font: object, size: float) -> None:
        scale = math.hypot(matrix[2], matrix[3]) * math.hypot(user[2], user[3])
        height = matrix[4] * user[1] + matrix[5] * user[3] + user[5]
        pieces.append(PageLine(text, round(size * scale, 1), height))

    page.extract_text(visitor_text=visit)
    lines: list[PageLine] = []
    line, sizes, height = "", Counter[float](), 0.0
    for piece in pieces:
        for position, part in enumerate(piece.text.split("\n")):
            if position:
                lines.append(PageLine(line, _most(sizes), height))
                line, sizes = "", Counter()
            if part.strip() and not line.strip():
                height = piece.height
            line += part
            sizes[piece.size] += len(part.strip())
    return [*lines, PageLine(line, _most(sizes), height)]


def _tables(page: PageObject) -> list[PageTable]:
    """The tables of a page; none when the positions of its texts cannot be read."""
    try:
        return tables_of(page)
    except Exception:  # noqa: BLE001 - a boundary with an alternative: the page keeps its lines, without tables
        _LOG.info("the positions of a page's texts could not be read", exc_info=True)
        return []


def with_tables(lines: list[PageLine], tables: Iterable[PageTable]) -> list[PageLine]:
    """The lines of a page, with those of each table replaced by its rows."""
    for table in tables:
        inside = [line.text.strip() != "" and table.bottom - 1 <= line.height <= table.top + 1 for line in lines]
        if not any(inside) or not _has_all(table.rows, itertools.compress(lines, inside)):
            continue
        first = inside.index(True)
        after = [line for line, is_replaced in zip(lines[first:], inside[first:], strict=True) if not is_replaced]
        lines = [*lines[:first], PageLine("\n".join(table.rows), 0.0, table.top, is_table=True), *after]
    return lines


def _has_all(rows: Iterable[str], lines: Iterable[PageLine]) -> bool:
    """Whether the rows have all letters and figures of the lines, whatever their order."""
    missing = Counter("".join(line.text for line in lines)) - Counter("".join(rows))
    return not any(character.isalnum() for character in missing)


def _most(sizes: Counter[float]) -> float:
    return max(sizes, key=lambda size: (sizes[size], size), default=0.0)


def _heading_levels(lines: Sequence[PageLine]) -> dict[float, int]:
    """Font sizes of headings -> level: those clearly above the size of most characters, the largest first."""
    characters = Counter[float]()
    for line in lines:
        if not line.is_table:
            characters[line.size] += len(line.text.strip())
    body = _most(characters)
    larger = sorted(
        {line.size for line in lines if line.text.strip() and line.size >= HEADING_SCALE * body}, reverse=True
    )
    return {size: min(level, 6) for level, size in enumerate(larger, start=1)} if body else {}


def _joined(pages: Iterable[tuple[Iterable[tuple[str, int]], int]]) -> Iterator[tuple[str, int, list[PageStart]]]:
    """The blocks of all pages, each with its pages; a paragraph without an end continues on the next page."""
    paragraph, level, starts = _Paragraph(), 0, list[PageStart]()
    for blocks, number in pages:
        is_first = True
        for text, text_level in blocks:
            if not (is_first and text_level == level == 0 and paragraph and _continues(paragraph.tail, text)):
                if paragraph:
                    yield paragraph.text, level, starts
                paragraph, level, starts = _Paragraph(), text_level, []
            paragraph.add(text)
            if is_first or not starts:
                starts.append((len(paragraph) - len(text), number))
            is_first = False
    if paragraph:
        yield paragraph.text, level, starts


class _Paragraph:
    """A paragraph that grows line by line, in linear time: only its `tail` is looked at."""

    def __init__(self) -> None:
        self._finished: list[str] = []
        self._finished_length = 0
        self.tail = ""

    def __len__(self) -> int:
        return self._finished_length + len(self.tail)

    @property
    def text(self) -> str:
        return "".join((*self._finished, self.tail))

    @property
    def is_short(self) -> bool:
        """Whether `tail` is the whole paragraph."""
        return not self._finished

    def add(self, line: str, *, is_inside_word: bool = False) -> None:
        """Append a line as `join_lines` does."""
        self.tail = join_lines(self.tail, line, is_inside_word=is_inside_word)
        if len(self.tail) > 2 * TAIL:
            self._finished.append(self.tail[:-TAIL])
            self._finished_length += len(self._finished[-1])
            self.tail = self.tail[-TAIL:]


def _continues(before: str, after: str) -> bool:
    return not (_SENTENCE_END.search(before) or _begins(after) or _is_alone(before) or _is_alone(after))


def _blocks(lines: Sequence[PageLine], levels: dict[float, int], keeps_blanks: bool) -> Iterator[tuple[str, int]]:
    """Headings (with their level), tables (with `TABLE`) and paragraphs (with 0) of a page."""

    def level_of(line: PageLine) -> int:
        if line.is_table:
            return TABLE
        return levels.get(line.size, 0) if line.text.strip() else -1

    for level, run in groupby(lines, key=level_of):
        texts = [line.text for line in run]
        heading = " ".join(" ".join(texts).split())
        if level > 0 and len(heading) <= LONGEST_HEADING:
            yield heading, level
        elif level == TABLE:
            yield from ((text, TABLE) for text in texts)
        elif level >= 0:
            yield from ((paragraph, 0) for paragraph in reflow(texts, keeps_blanks=keeps_blanks))


def reflow(lines: Sequence[str], *, keeps_blanks: bool = False) -> Iterator[str]:
    """Paragraphs from lines, joined with a space, or without one inside a divided word.

    `keeps_blanks`: lines end with the blanks that were there, so that Korean without one ended inside a word.
    """
    lengths = sorted(len(line.strip()) for line in lines if line.strip())
    if not lengths:
        return
    full = FULL_LINE * lengths[int(0.9 * (len(lengths) - 1))]
    divides_words = not keeps_blanks and _divides_words(lines)
    paragraph = _Paragraph()
    is_title = is_inside_word = False
    for raw in lines:
        line = " ".join(raw.split())
        is_short = len(line) < full
        continues = line[:1].isdecimal() or line.startswith(_MARK_CONTINUES)
        is_inside_mark = continues and _OPEN_MARK.search(paragraph.tail) is not None
        is_alone = _is_alone(line) or (is_title and len(line) <= LONGEST_APPENDIX_LINE)
        is_ending = _is_ending(paragraph, line)
        if paragraph and (not line or (not is_inside_mark and not is_ending and (is_alone or _begins(line)))):
            yield paragraph.text
            paragraph = _Paragraph()
        if line:
            paragraph.add(line, is_inside_word=is_inside_word or is_ending)
        is_inside_word = divides_words or (keeps_blanks and not raw[-1:].isspace())
        is_title = paragraph.is_short and _APPENDIX_ALONE.fullmatch(paragraph.tail) is not None  # the next line
        if paragraph and (is_title or is_alone or (is_short and _ends(line))):
            yield paragraph.text
            paragraph = _Paragraph()
    if paragraph:
        yield paragraph.text


def _is_ending(paragraph: _Paragraph, line: str) -> bool:
    """Whether `다.` at the beginning of a line ends a verb of the line above, unless the item 나. is above."""
    is_after_item = paragraph.is_short and paragraph.tail.startswith("나")
    return line.startswith("다.") and is_hangul(paragraph.tail[-1:]) and not is_after_item


def _ends(line: str) -> bool:
    """Whether a sentence ends with the line, and not only the mark of an item."""
    return _SENTENCE_END.search(line) is not None and not _MARK_ALONE.fullmatch(line)


def _begins(line: str) -> bool:
    """Whether a line begins a paragraph: a list item, a heading or the mark of an appendix."""
    return (_ITEM.match(line) or _APPENDIX.match(line) or _MARK_ALONE.fullmatch(line)) is not None


def _is_alone(line: str) -> bool:
    """Whether a line is a paragraph: a row of contents, 부칙, an appendix with its title, the unit of a table."""
    if len(line) <= LONGEST_APPENDIX_LINE and _APPENDIX.match(line) and not _OPEN_MARK.search(line):
        return True
    if unit_span(line) == (0, len(line)):
        return True
    return (_CONTENTS_ROW.fullmatch(line) or _OWN_LINE.fullmatch(line)) is not None


def _keeps_blanks(lines: Sequence[str]) -> bool:
    """Whether lines of Korean have their blanks at the end."""
    korean = [line for line in lines if line.strip() and is_hangul(line.strip()[-1])]
    return bool(korean) and sum(line[-1].isspace() for line in korean) >= KEPT_BLANKS * len(korean)


def _divides_words(lines: Sequence[str]) -> bool:
    """Whether lines of Korean end inside words, which the words at the beginnings of lines tell."""
    bare = [line.strip() for line in lines if line.strip()]
    return breaks_words(list(pairwise(bare)), max(map(width, bare), default=0))


def join_lines(before: str, after: str, *, is_inside_word: bool = False) -> str:
    """Two lines of a paragraph as one: `infor-` + `mation` gives `information`, everything else gets a space.

    `is_inside_word`: a line of Korean ended inside a word.
    """
    if not before:
        return after
    if _HYPHENATED.search(before) and after[:1].islower():
        return before[:-1] + after
    korean = bool(after) and is_hangul(before[-1]) and is_hangul(after[0])
    return before + after if korean and is_inside_word and not ends_word(before) else f"{before} {after}"
