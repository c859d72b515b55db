"""The lines of a parsed document with their format attributes: the input of all structure recognition."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dtrag.core.documents import Block, ParsedDocument

_MARKUP = re.compile(r"\s*(?:(#{1,6})\s+)?(?:\*\*|__)?\s*")


@dataclass(frozen=True, slots=True)
class DocumentLine:
    """A line that is not blank. `text == document.text[start:end]`, without Markdown's `#` and `**` before it.

    `level` is that of a heading (of the block or of the `#`), 0 otherwise; `table` is true for a row of a table.
    """

    start: int
    end: int
    text: str
    level: int = 0
    style: str = ""
    table: bool = False


def lines_of(document: ParsedDocument) -> list[DocumentLine]:
    """All lines that are not blank, in order. One pass over text and blocks."""
    lines: list[DocumentLine] = []
    blocks = iter(document.blocks)
    block: Block | None = next(blocks, None)
    position = 0
    for raw in document.text.split("\n"):
        start, position = position, position + len(raw) + 1
        if not raw or raw.isspace():
            continue
        while block is not None and block.end <= start:
            block = next(blocks, None)
        here = block if block is not None and block.start < start + len(raw) else None
        line = _line(raw, start, here)
        if line is not None:
            lines.append(line)
    return lines


def _line(raw: str, start: int, block: Block | None) -> DocumentLine | None:
    if block is not None and block.kind == "table":
        text = raw.strip()
        begin = start + raw.index(text)
        only_cell = text.rstrip(" \t|")
        text = only_cell if only_cell and "|" not in only_cell else text
        return DocumentLine(begin, begin + len(text), text, table=True)
    markup = _MARKUP.match(raw)
    offset = markup.end() if markup else 0
    text = raw[offset:].rstrip()
    if not text:
        return None
    level = len(markup[1]) if markup and markup[1] else 0
    if block is not None and block.kind == "heading":
        level = level or block.level
    return DocumentLine(start + offset, start + offset + len(text), text, level, block.style if block else "")
