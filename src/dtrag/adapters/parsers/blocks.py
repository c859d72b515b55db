"""Text and its blocks, put together piece by piece so that the spans always fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from dtrag.adapters.parsers.decoding import clean, clean_line
from dtrag.core.documents import Block, BlockKind, ParsedDocument, Scalar
from dtrag.core.page_starts import PageStart
from dtrag.core.statements import Statement, stated
from dtrag.errors import ParseFailed

SEPARATOR = "\n\n"
LONGEST_REPEATED = 80
"""Characters of a cell that is repeated in the rows that it spans; below a longer one they have an empty cell."""
MOST_SPANNED = 1_000
MOST_REPEATED = 10
"""Repeated cells of a table for each one that it has, beyond the first thousand; the others are left out."""
LONGEST_HEADING = 200
"""A heading with more characters is a paragraph: each passage below a heading repeats it."""
DEEPEST_INDENT = 8
"""Levels of a list that are indented; deeper ones are not indented further."""
MOST_DIGITS = 5
MAX_TITLE = 300
"""Longer titles are cut: a title is shown on one line and searched beside every chunk."""


def whole_number(text: str | None, otherwise: int = 0) -> int:
    """A number of at most five digits, as files state spans and levels; `otherwise` for anything else."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS else otherwise


class TextBuilder:
    """Collects cleaned pieces; `text` is all of them with an empty line between, `blocks` the span of each."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._blocks: list[Block] = []
        self._page_starts: list[PageStart] = []
        self._length = 0
        self.tag_characters = 0

    def add(
        self,
        text: str,
        kind: BlockKind = "paragraph",
        level: int = 0,
        style: str = "",
        page_starts: Sequence[PageStart] = (),
    ) -> None:
        """Append a piece; a blank one is passed over. White space around it is dropped, and a heading is one line.
        A heading that is too long is a paragraph.

        `page_starts` are the pages that the piece is on: the first at offset 0 of `text`, the others after it.
        """
        cleaned = clean(text)
        self.tag_characters += cleaned.tag_characters
        heading = " ".join(cleaned.text.split()) if kind == "heading" else ""
        if len(heading) > LONGEST_HEADING:
            kind, level = "paragraph", 0
        piece = heading if kind == "heading" else cleaned.text.strip("\n").rstrip()
        if kind != "code":
            piece = piece.strip()
        if not piece:
            return
        if self._pieces:
            self._length += len(SEPARATOR)
        self._blocks.append(Block(self._length, self._length + len(piece), kind, level, style))
        self._add_pages(text, page_starts, len(cleaned.text) - len(cleaned.text.lstrip()), len(piece))
        self._pieces.append(piece)
        self._length += len(piece)

    def _add_pages(self, text: str, page_starts: Sequence[PageStart], dropped: int, length: int) -> None:
        """The pages that begin with or in the piece; `dropped` characters were cut off its beginning."""
        done, position = 0, -dropped
        for offset, number in page_starts:
            position += len(clean(text[done:offset]).text)
            done = offset
            if not self._page_starts or self._page_starts[-1][1] != number:
                self._page_starts.append((self._length + min(max(0, position), length), number))

    def __len__(self) -> int:
        return self._length

    @property
    def first_heading(self) -> str | None:
        """The text of the first heading, if there is one."""
        for piece, block in zip(self._pieces, self._blocks, strict=True):
            if block.kind == "heading":
                return piece
        return None

    def document(
        self,
        *,
        title: str,
        content_type: str,
        part: str = "",
        metadata: Mapping[str, Scalar] | None = None,
        no_text: Statement = stated("no_text", "no text in it"),
    ) -> ParsedDocument:
        """What has been collected. Raises `ParseFailed(no_text)` when that is nothing."""
        if not self._pieces:
            raise ParseFailed(no_text)
        return ParsedDocument(
            title=title,
            text=SEPARATOR.join(self._pieces),
            content_type=content_type,
            blocks=tuple(self._blocks),
            part=part,
            metadata=with_tags(metadata or {}, self.tag_characters),
            page_starts=tuple(self._page_starts),
        )


class RowSpans:
    """Rows of one table; a short cell that spans several rows is repeated in each, so that every row is complete."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[str, int, int]] = {}
        self._repeatable = MOST_SPANNED

    def row(self, cells: Iterable[tuple[str, int, int]]) -> str:
        """`cell | cell` of the next row from texts, spanned columns and spanned rows; "" when all cells are empty."""
        above, self._open = self._open, {}
        texts: list[str] = []
        column = 0
        filled = False

        def from_above() -> None:
            nonlocal column
            while column in above and self._repeatable > 0:
                self._repeatable -= 1
                text, columns, rows = above[column]
                texts.append(text)
                if rows > 1:
                    self._open[column] = (text, columns, rows - 1)
                column += columns

        for text, columns, rows in cells:
            from_above()
            self._repeatable += MOST_REPEATED
            filled = filled or bool(text)
            texts.append(text)
            width = min(max(1, columns), MOST_SPANNED)
            if rows > 1:
                repeated = text if len(text) <= LONGEST_REPEATED else ""
                self._open[column] = (repeated, width, min(rows, MOST_SPANNED) - 1)
            column += width
        from_above()
        return " | ".join(texts).strip() if filled else ""


def with_tags(metadata: Mapping[str, Scalar], tag_characters: int) -> Mapping[str, Scalar]:
    """`metadata`, with the number of stripped tag characters when there were any: a sign of hidden instructions."""
    return {**metadata, "stripped_tag_characters": tag_characters} if tag_characters else dict(metadata)


def paragraphs(text: str) -> tuple[Block, ...]:
    """One block for each run of lines without an empty line in it, without the white space around it."""
    blocks: list[Block] = []
    start = end = offset = 0
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped:
            first = offset + line.index(stripped[0])
            start = first if end == 0 else start
            end = first + len(stripped)
        elif end:
            blocks.append(Block(start, end))
            end = 0
        offset += len(line) + 1
    if end:
        blocks.append(Block(start, end))
    return tuple(blocks)


def title_of(candidate: str | None, name: str) -> str:
    """`candidate` on one line, or the file's name without its suffix; NFC, at most 300 characters."""
    title = clean_line(candidate or "")
    if not title:
        title = clean_line(PurePosixPath(name.replace("\\", "/")).stem)
    return title[:MAX_TITLE].rstrip() or "untitled"
