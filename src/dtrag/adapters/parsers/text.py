"""Plain text: paragraphs at empty lines, nothing else is read into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dtrag.adapters.parsers.blocks import paragraphs, title_of, with_tags
from dtrag.adapters.parsers.decoding import clean, decode
from dtrag.core.documents import ParsedDocument
from dtrag.core.statements import stated
from dtrag.errors import ParseFailed


def parse(path: Path, name: str) -> Iterator[ParsedDocument]:
    """One document; its title is the file's name."""
    cleaned = clean(decode(path.read_bytes()))
    text = cleaned.text.strip()
    if not text:
        raise ParseFailed(stated("no_text", "no text in it"))
    yield ParsedDocument(
        title=title_of(None, name),
        text=text,
        content_type="text/plain",
        blocks=paragraphs(text),
        metadata=with_tags({}, cleaned.tag_characters),
    )
