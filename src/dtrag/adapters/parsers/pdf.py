"""PDF with pypdf: the text of each page, its lines flowed back into paragraphs that carry their page number.

pypdf's own limits on unpacked streams stay as they are. A PDF has no headings to speak of: everything is a paragraph,
with the style `page:N`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pypdf import PasswordType, PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError, LimitReachedError, PdfReadError

from dtrag.adapters.parsers.blocks import TextBuilder, title_of
from dtrag.core.documents import ParsedDocument
from dtrag.errors import ParseFailed

MAX_PAGES = 20_000
NO_TEXT = "no text in it; it may be scanned: run OCR (text recognition) on it first"
ENCRYPTED = "it is encrypted; save it without a password"
FULL_LINE = 0.75
"""A line that ends a sentence and is shorter than this share of the page's longest lines ends a paragraph."""

_ITEM = re.compile(r"(?:[-–•·▪◦○●■□※*]|\(?\d{1,3}[.)]|\(?[a-zA-Z가-하][.)]|[①-⑳]|제\s?\d+\s?[장절조관편])\s?(?=\S)")
_SENTENCE_END = re.compile(r"[.!?:;。…][\"'”’)\]]*$")
_HYPHENATED = re.compile(r"[A-Za-zÀ-ɏ]{2}-$")
_PRODUCER_PREFIX = re.compile(r"^Microsoft (?:Word|PowerPoint|Excel) - ")


def parse(path: Path, name: str) -> Iterator[ParsedDocument]:
    """One document with the metadata `pages`, and `unreadable_pages` when there were some. Raises `ParseFailed`."""
    builder = TextBuilder()
    unreadable = 0
    with path.open("rb") as file:
        reader = _open(PdfReader(file, strict=False))
        count = len(reader.pages)
        if count > MAX_PAGES:
            raise ParseFailed(f"it has {count:,} pages; more than {MAX_PAGES:,} are refused, split it")
        for number in range(1, count + 1):
            try:
                text = reader.pages[number - 1].extract_text()
            except (PdfReadError, LimitReachedError):
                unreadable += 1
                continue
            for paragraph in reflow(text):
                builder.add(paragraph, style=f"page:{number}")
        title = reader.metadata.title if reader.metadata else None
    if unreadable and unreadable == count:
        raise ParseFailed("the PDF is damaged: none of its pages can be read")
    yield builder.document(
        title=title_of(_PRODUCER_PREFIX.sub("", title) if isinstance(title, str) else None, name),
        content_type="application/pdf",
        metadata={"pages": count, **({"unreadable_pages": unreadable} if unreadable else {})},
        no_text=NO_TEXT,
    )


def _open(reader: PdfReader) -> PdfReader:
    """The reader, decrypted with the empty password where there is encryption."""
    if reader.is_encrypted:
        try:
            opened = reader.decrypt("") != PasswordType.NOT_DECRYPTED
        except (DependencyError, FileNotDecryptedError, NotImplementedError) as error:
            raise ParseFailed(ENCRYPTED) from error
        if not opened:
            raise ParseFailed(ENCRYPTED)
    return reader


def reflow(text: str) -> Iterator[str]:
    """Paragraphs of a page, from its lines: joined with a space, or without their hyphen where a word was divided."""
    lines = text.splitlines()
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
