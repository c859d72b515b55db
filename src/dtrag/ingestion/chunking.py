"""Cuts a document into passages: by its structure first, then by size. Every passage is an exact span of the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from dtrag.core.documents import Block, Chunk, ChunkedDocument, ParsedDocument
from dtrag.core.page_starts import page_metadata
from dtrag.core.recognised_text import ocr_metadata
from dtrag.core.text.analysis import sentences
from dtrag.core.text.token_counts import passage_tokens

CHUNKER = "structure-1"
PDF_CHUNKER = "structure-2"
"""Of PDFs, whose passages say where pages begin; other formats are not read again for that."""
PDF_READER = "structure-2+ocr"
"""Of the files: PDFs are read again for their scanned pages, but stored again only if they have some."""
MAX_TOKENS = 400
OVERLAP_TOKENS = 40
"""A cut inside a paragraph repeats at most this much of its last sentence, so that a reference across it survives."""

_PARAGRAPH = re.compile(r"\S(?:.|\n(?!\s*\n))*")
_WORD_BREAK = re.compile(r"\s+")


def split(document: ParsedDocument, *, max_tokens: int = MAX_TOKENS, most: int | None = None) -> ChunkedDocument:
    """The document with its passages of at most about `max_tokens`, in reading order; at most `most` of them."""
    return ChunkedDocument(document, tuple(islice(_chunks(document, max_tokens), most)))


def _chunks(document: ParsedDocument, max_tokens: int) -> Iterator[Chunk]:
    ordinal = 0
    for section in _sections(document):
        for start, end in _pieces(document.text, section.blocks, max_tokens):
            metadata = page_metadata(document.page_starts, start, end)
            metadata |= ocr_metadata(document.ocr_words, document.text, start, end)
            yield Chunk(ordinal, start, end, document.text[start:end], section.breadcrumb, metadata)
            ordinal += 1


@dataclass(frozen=True, slots=True)
class _Section:
    breadcrumb: tuple[str, ...]
    blocks: list[Block]


def _sections(document: ParsedDocument) -> Iterator[_Section]:
    """Runs of blocks under the same headings.

    A run begins with the headings before it that have no text: a passage of such a heading alone answers nothing.
    """
    headings: list[Block] = []
    textless: list[Block] = []
    section: _Section | None = None

    def breadcrumb() -> tuple[str, ...]:
        return tuple(" ".join(document.text[heading.start : heading.end].split()) for heading in headings)

    for block in document.blocks or paragraphs(document.text):
        if block.kind != "heading":
            if section is None:
                section = _Section(breadcrumb(), [heading for heading in textless if heading not in headings])
                textless = []
            section.blocks.append(block)
            continue
        if section is not None:
            yield section
            section = None
        while headings and (headings[-1].level or 1) >= (block.level or 1):
            headings.pop()
        headings.append(block)
        textless.append(block)
    if section is not None:
        yield section
    elif textless:
        yield _Section(breadcrumb(), [heading for heading in textless[:-1] if heading not in headings] + textless[-1:])


def paragraphs(text: str) -> list[Block]:
    """The paragraphs of a text without structure: runs between blank lines."""
    return [Block(match.start(), match.start() + len(match[0].rstrip())) for match in _PARAGRAPH.finditer(text)]


def _pieces(text: str, blocks: Sequence[Block], max_tokens: int) -> Iterator[tuple[int, int]]:
    """Whole blocks together while they fit; a block that is too large alone is cut at sentences."""
    start, end, used = -1, -1, 0
    for block in blocks:
        size = passage_tokens(text[block.start : block.end])
        added = size if start < 0 else passage_tokens(text[end : block.end])  # white space between counts, too
        if start >= 0 and used + added > max_tokens:
            yield start, end
            start, used, added = -1, 0, size
        if size > max_tokens:
            yield from _cut(text, block.start, block.end, max_tokens)
            continue
        if start < 0:
            start = block.start
        end, used = block.end, used + added
    if start >= 0:
        yield start, end


def _cut(text: str, start: int, end: int, max_tokens: int) -> Iterator[tuple[int, int]]:
    """A long block in pieces of whole sentences, each repeating the last sentence before it if that is short."""
    units = [
        piece
        for first, last in sentences(text[start:end])
        for piece in _cut_words(text, start + first, start + last, max_tokens)
    ]
    piece_start, piece_end, used = -1, -1, 0
    previous: tuple[int, int] | None = None
    for unit_start, unit_end in units:
        size = passage_tokens(text[unit_start:unit_end])
        added = size if piece_start < 0 else passage_tokens(text[piece_end:unit_end])
        if piece_start >= 0 and used + added > max_tokens:
            yield piece_start, piece_end
            piece_start, used, added = -1, 0, size
            overlap = passage_tokens(text[previous[0] : previous[1]]) if previous else 0
            beyond = passage_tokens(text[previous[1] : unit_end]) if previous else 0
            if previous and overlap <= OVERLAP_TOKENS and overlap + beyond <= max_tokens:
                piece_start, used, added = previous[0], overlap, beyond
        if piece_start < 0:
            piece_start = unit_start
        piece_end, used = unit_end, used + added
        previous = (unit_start, unit_end)
    if piece_start >= 0:
        yield piece_start, piece_end


def _cut_words(text: str, start: int, end: int, max_tokens: int) -> Iterator[tuple[int, int]]:
    """A sentence that is too long alone, cut at white space, or anywhere when there is none."""
    while _exceeds(text, start, end, max_tokens):
        stop = _reach(text, start, end, max_tokens)
        breaks = list(_WORD_BREAK.finditer(text, start + 1, stop))
        cut = breaks[-1].start() if breaks and breaks[-1].start() > start + (stop - start) // 2 else stop
        yield start, start + len(text[start:cut].rstrip())
        start = cut
        while start < end and text[start].isspace():
            start += 1
    if start < end:
        yield start, end


def _exceeds(text: str, start: int, end: int, max_tokens: int) -> bool:
    """Whether `text[start:end]` has more than `max_tokens`, without reading all of a span that is far too long.

    A token has at most 4 characters, so that cutting a text of one line takes time in proportion to its length.
    """
    return end - start > max_tokens * 4 + 8 or passage_tokens(text[start:end]) > max_tokens


def _reach(text: str, start: int, end: int, max_tokens: int) -> int:
    """The largest stop at which `text[start:stop]` has at most `max_tokens`."""
    low, high = start + 1, min(end, start + max_tokens * 4)
    while low < high:
        middle = (low + high + 1) // 2
        if passage_tokens(text[start:middle]) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return low
